"""Tests the HTML report in a browser: it requests nothing from the network, curves end where metrics.jsonl does, the timeline
zooms, finds and names actions, and no text is cut off or overlaps. GYRE is the program; scripts/test-report runs it."""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

GYRE = os.environ["GYRE"]
BOXES = (pathlib.Path(__file__).parent / "boxes.js").read_text()
CONFIGURATION = """
[model]
layers = 3
width = 32
heads = 2
context = 32
[data]
tokens = "tokens"
[pipeline]
stages = 3
microbatch = 4
accumulate = 2
[optimizer]
lr = 3e-3
[run]
updates = 40
eval_every = 10
eval_batches = 2
"""


def start_browser(offline=True):
    options = Options()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1000,900"):
        options.add_argument(word)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    browser.execute_cdp_cmd("Network.enable", {})
    if offline:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions",
                                {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
    return browser


class InBrowser(unittest.TestCase):
    """A folder with a configuration and tokens, and a browser."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.directory.name)
        (cls.work / "text.txt").write_text("".join(
            f"verse {i}: and the waters of {i * 7919 % 1000} were upon the {i * 31 % 17} hills\n" for i in range(400)))
        (cls.work / "run.toml").write_text(CONFIGURATION)
        cls.gyre("prepare", "text.txt", "--out", "tokens")
        cls.make_runs()
        cls.browser = start_browser(cls.OFFLINE)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.directory.cleanup()

    @classmethod
    def gyre(cls, *words):
        done = subprocess.run([GYRE, *words], cwd=cls.work, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"gyre {' '.join(words)}: {done.stderr}")
        return done

    def settle(self):
        """Waits until everything requested is drawn."""
        self.browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def ask(self, script, *values):
        return self.browser.execute_script("return " + script, *values)

    def mouse(self, kind, x, y, **more):
        self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})
        self.settle()

    def open(self, page="report.html", width=1000, scheme="light"):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(f"file://{self.work / page}")
        self.settle()

    def check_boxes(self, page, least):
        """Asserts that no text of the page is cut off or overlaps, and that there are at least `least` texts."""
        for width in (400, 1000, 1920):
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    self.open(page, width=width, scheme=scheme)
                    self.ask("document.querySelectorAll('details').forEach(details => details.open = true)")
                    self.ask("gyre.timelines.forEach(timeline => timeline.show(0.5 * timeline.length, 0.52 * timeline.length))")
                    self.settle()
                    found = self.browser.execute_script(BOXES)
                    self.assertEqual(found["faults"], [])
                    self.assertGreater(found["boxes"], least)
                    self.assertLessEqual(found["width"], width)
                    self.assertEqual(self.ask("document.documentElement.dataset.theme"), scheme)

    def asked_urls(self):
        """Network requests since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        urls = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith("data:")]


class ReportPage(InBrowser):
    OFFLINE = True

    @classmethod
    def make_runs(cls):
        cls.gyre("train", "run.toml", "--out", "first", "--trace", "first.json")
        cls.gyre("train", "run.toml", "--out", "a-run-with-a-rather-long-name-that-has-to-be-broken-somewhere",
                 "--set", "optimizer.lr=1e-3", "--set", "pipeline.weights=latest")
        cls.gyre("report", "first", "a-run-with-a-rather-long-name-that-has-to-be-broken-somewhere", "first.json",
                 "--out", "report.html")

    def canvas_place(self):
        self.ask("gyre.timelines[0].canvas.scrollIntoView({block: 'center'})")
        self.settle()
        return self.ask("(box => [box.left, box.top])(gyre.timelines[0].canvas.getBoundingClientRect())")

    def span(self):
        return self.ask("gyre.timelines[0].to - gyre.timelines[0].from")

    def test_asks_nothing_of_the_network_and_complains_of_nothing(self):
        self.open()
        self.ask("setTheme('dark')")
        self.settle()
        self.assertEqual(self.asked_urls(), [f"file://{self.work}/report.html"])
        self.assertEqual(self.browser.get_log("browser"), [])

    def test_curves_end_where_the_metrics_do(self):
        self.open()
        lines = [json.loads(line) for line in (self.work / "first" / "metrics.jsonl").read_text().splitlines()]
        for name, event in {"loss": "step", "lr": "step", "grad_norm": "step", "tokens_per_second": "step",
                            "val_loss": "eval"}.items():
            last = [line for line in lines if line["event"] == event][-1]
            drawn = self.ask("""(chart => {
                const row = chart.graph.numRows() - 1;
                return [chart.graph.getValue(row, 0), chart.graph.getValue(row, 1), chart.readout.textContent];
            })(gyre.curves.charts.find(chart => chart.quantity.name === arguments[0]))""", name)
            self.assertEqual(drawn[0], last["step"], name)
            self.assertAlmostEqual(drawn[1] / last[name], 1, places=6, msg=name)  # a float's digits
            # Read as a number: a quick update makes more than a million tokens/s, which JavaScript and Python write in two ways.
            read_out = float(re.search(r"first: (\S+) at", drawn[2])[1])
            self.assertAlmostEqual(read_out / last[name], 1, delta=1e-5, msg=name)
        self.assertEqual(self.ask("gyre.curves.charts[0].graph.getLabels().length"), 3)

    def test_a_run_may_have_any_name(self):
        shutil.copytree(self.work / "first", self.work / "__proto__")
        self.gyre("report", "__proto__", "first", "--out", "proto.html")
        self.open("proto.html")
        self.assertEqual(self.browser.get_log("browser"), [])
        self.assertEqual(self.ask("gyre.curves.charts[0].graph.numColumns()"), 3)
        self.assertIn("__proto__: ", self.ask("gyre.curves.charts[0].readout.textContent"))

    def test_curves_zoom_together_by_wheel_and_by_keys(self):
        self.open()
        place = "(box => [box.left + box.width / 2, box.top + box.height / 2])(gyre.curves.charts[0].plot.getBoundingClientRect())"
        self.ask("gyre.curves.charts[0].plot.scrollIntoView({block: 'center'})")
        width = "(range => range[1] - range[0])(gyre.curves.charts[1].graph.xAxisRange())"
        before = self.ask(width)
        self.mouse("mouseWheel", *self.ask(place), deltaX=0, deltaY=-120)
        wheeled = self.ask(width)
        self.assertLess(wheeled, before)
        plot = self.browser.find_elements(By.CSS_SELECTOR, ".plot")[0]
        plot.send_keys("+")
        self.assertLess(self.ask(width), wheeled)
        self.mouse("mouseMoved", *self.ask(place))
        self.assertRegex(self.ask("gyre.curves.charts[0].readout.textContent"), r"first: [0-9.]+ at [0-9]+ updates")

    def test_the_wheel_narrows_the_timeline_and_keys_move_it(self):
        self.open()
        left, top = self.canvas_place()
        before = self.span()
        self.mouse("mouseWheel", left + 500, top + 60, deltaX=0, deltaY=-120)
        narrowed = self.span()
        self.assertLess(narrowed, before)
        canvas = self.browser.find_element(By.CSS_SELECTOR, ".timeline canvas")
        canvas.send_keys("+")
        self.settle()
        self.assertLess(self.span(), narrowed)
        start = self.ask("gyre.timelines[0].from")
        canvas.send_keys(Keys.ARROW_RIGHT)
        self.assertGreater(self.ask("gyre.timelines[0].from"), start)
        canvas.send_keys("0")
        self.assertEqual(self.span(), before)
        canvas.send_keys("/")
        self.assertEqual(self.ask("document.activeElement.type"), "search")

    def test_a_slice_that_is_hovered_is_named(self):
        self.open()
        # Uses a forward in the middle, since the times of actions differ from run to run.
        name = self.ask("""(timeline => {
            const track = timeline.tracks[1], middle = Math.floor(track.names.length / 2), index = track.kinds.indexOf("f", middle);
            timeline.show(track.start[index] - 2 * track.duration[index], track.start[index] + 3 * track.duration[index]);
            return track.names[index];
        })(gyre.timelines[0])""")
        left, top = self.canvas_place()
        label = next(label for label in self.ask("gyre.timelines[0].labels") if label["text"] == name)
        self.mouse("mouseMoved", left + (label["left"] + label["right"]) / 2, top + (label["top"] + label["bottom"]) / 2)
        said = self.ask("gyre.timelines[0].said.textContent")
        self.assertTrue(said.startswith(label["text"] + ", forward, on worker " + label["text"][0]), said)
        self.assertGreater(self.ask("gyre.timelines[0].arrowsDrawn"), 0)

    def report_of(self, name, slices):
        """Opens the report of another program's trace with these slices: name, start, duration."""
        (self.work / f"{name}.json").write_text(json.dumps(
            [{"ph": "X", "name": name, "tid": 0, "ts": start, "dur": duration} for name, start, duration in slices]))
        self.gyre("report", f"{name}.json", "--out", f"{name}.html")
        self.open(f"{name}.html")

    def test_slices_within_others_are_seen_below_them(self):
        # The first three are written as programs do that write a slice when it ends.
        self.report_of("nested", [("innermost", 100, 100), ("inner", 100, 300), ("whole", 0, 1000), ("later", 500, 300), ("same", 500, 300), ("next", 1000, 200)])
        lanes = self.ask("Object.fromEntries(gyre.timelines[0].tracks[0].names.map((name, i) => [name, gyre.timelines[0].tracks[0].lanes[i]]))")
        self.assertEqual(lanes, {"whole": 0, "inner": 1, "innermost": 2, "later": 1, "same": 2, "next": 0})
        labels = {label["text"]: label for label in self.ask("gyre.timelines[0].labels")}
        self.assertLessEqual(set(lanes), set(labels))
        left, top = self.canvas_place()
        for name, label in labels.items():
            if name not in lanes:
                continue
            self.mouse("mouseMoved", left + (label["left"] + label["right"]) / 2, top + (label["top"] + label["bottom"]) / 2)
            said = self.ask("gyre.timelines[0].said.textContent")
            self.assertTrue(said.startswith(name + ", other, on "), said)
        colour = """[...gyre.timelines[0].canvas.getContext('2d').getImageData(gyre.timelines[0].xOf(arguments[0]), arguments[1], 1, 1).data].join()"""
        row = labels["whole"]["top"]
        self.assertEqual(self.ask(colour, 20, row), self.ask(colour, 150, row), "the whole is seen above the inner one")
        self.assertEqual(self.ask(colour, 450, labels["inner"]["top"]), "0,0,0,0", "nothing is below it between two others")
        self.check_boxes("nested.html", 10)

    def test_rows_have_as_many_lanes_as_there_is_room_for(self):
        self.report_of("deep", [(f"level {i}", i, 1000 - 2 * i) for i in range(100)])
        self.assertEqual(self.ask("[gyre.timelines[0].tracks[0].laneCount, gyre.timelines[0].tracks[0].lanes[99]]"), [32, 31])
        self.check_boxes("deep.html", 10)
        self.open()
        self.assertEqual(self.ask("gyre.timelines[0].tracks.map(track => track.laneCount)"), [1, 1, 1], "actions of a run lie in no others")

    def test_an_action_is_found_by_its_name(self):
        self.open()
        search = self.browser.find_element(By.CSS_SELECTOR, "input[type=search]")
        search.send_keys("2F17")
        self.settle()
        slices = [event for event in json.loads((self.work / "first.json").read_text())["traceEvents"]
                  if event["ph"] == "X"]
        wanted = [event for event in slices if event["name"] == "2F17"]
        self.assertEqual(len(wanted), 1)
        self.assertEqual(self.ask("gyre.timelines[0].count.textContent"), "1 of 1")
        self.assertIn("2F17, forward, on worker 2", self.ask("gyre.timelines[0].said.textContent"))
        at = wanted[0]["ts"] - min(event["ts"] for event in slices)
        self.assertLess(self.ask("gyre.timelines[0].from"), at)
        self.assertGreater(self.ask("gyre.timelines[0].to"), at)
        search.clear()
        search.send_keys("9F9999")
        self.assertEqual(self.ask("gyre.timelines[0].count.textContent"), "none")

    def test_waits_are_of_what_the_trace_says(self):
        self.open()
        reasons = self.ask("[...new Set(gyre.timelines[0].tracks[0].waits.map(wait => wait[2]))]")
        self.assertIn(1, reasons, "the first stage waits for gradients")
        self.assertNotIn(0, reasons, "and never for an activation")

    def test_a_hundred_thousand_actions_are_usable_within_two_seconds(self):
        self.gyre("simulate", "--schedule", "1f1b", "--stages", "8", "--microbatches", "6400", "--window", "32",
                  "--trace", "large.json")
        self.gyre("report", "large.json", "--out", "large.html")
        taken = []
        for _ in range(3):  # the machine may have other things to do
            self.open("large.html")
            self.assertGreater(self.ask("gyre.data.timelines[0].kept"), 100_000)
            begin = self.ask("performance.now()")
            before = self.span()
            left, top = self.canvas_place()
            self.mouse("mouseWheel", left + 500, top + 60, deltaX=0, deltaY=-120)
            self.assertLess(self.span(), before)
            # From the request for the page to the end of its scripts, and then to the picture after a turn of the wheel.
            loaded = self.ask("performance.getEntriesByType('navigation')[0].loadEventEnd")
            taken.append((loaded + self.ask("performance.now()") - begin) / 1000)
        print(f"100,000 actions: {min(taken):.2f} s")
        self.assertLess(min(taken), 2, taken)

    def test_no_text_is_cut_or_lies_over_other_text(self):
        self.check_boxes("report.html", 300)

    def test_everything_is_reached_and_worked_by_keys(self):
        self.open(scheme="dark")
        reached, faults = set(), []
        wanted = self.ask("[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex]')].filter(one => one.checkVisibility()).length")
        for _ in range(wanted + 5):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            at = self.ask("""(here => [[...document.querySelectorAll("*")].indexOf(here), here.tagName, here.outerHTML.slice(0, 80),
                here.getAttribute("aria-label") || here.textContent || (here.labels && [...here.labels].map(label => label.textContent).join("")),
                getComputedStyle(here).outlineStyle])(document.activeElement)""")
            if at[1] == "BODY":
                break
            reached.add(at[0])
            if not at[3]:
                faults.append(f"has no name: {at[2]}")
            if at[4] == "none":
                faults.append(f"does not show that it is chosen: {at[2]}")
        self.assertEqual(faults, [])
        self.assertEqual(len(reached), wanted)
        theme = self.browser.find_element(By.ID, "theme")
        theme.send_keys(Keys.ENTER)
        self.assertEqual(self.ask("document.documentElement.dataset.theme"), "light")
        summary = self.browser.find_elements(By.CSS_SELECTOR, "#configuration summary")[0]
        summary.send_keys(Keys.ENTER)
        self.assertTrue(self.ask("document.querySelector('#configuration details').open"))

    def test_memory_is_predicted_and_measured(self):
        self.open()
        last = [json.loads(line) for line in (self.work / "first" / "metrics.jsonl").read_text().splitlines()
                if '"event":"segment"' in line][-1]
        mebibytes = f"{last['peak_resident_bytes'][0] / 2**20:.1f} MiB"
        self.assertIn(mebibytes, self.ask("document.querySelector('#memory').textContent"))
        self.assertRegex(self.ask("document.querySelector('#memory').textContent"), r"measured over predicted: [0-9.]+")

    def test_a_resumed_run_has_the_figures_of_all_its_sessions(self):
        shutil.copytree(self.work / "first", self.work / "resumed")
        self.gyre("train", "--resume", "resumed", "--set", "run.updates=42")
        self.gyre("report", "resumed", "--out", "resumed.html")
        self.open("resumed.html")
        lines = [json.loads(line) for line in (self.work / "resumed" / "metrics.jsonl").read_text().splitlines()]
        segments = [line for line in lines if line["event"] == "segment"]
        trained = sum(segment["seconds"] for segment in segments)
        waited = sum(segment["seconds"] * sum(segment["bubbles"]) / 3 for segment in segments)
        first, last = [line["seconds"] for line in lines if line["event"] == "step" and line["step"] == 40][0], lines[-1]
        row = self.ask("""Object.fromEntries([...document.querySelectorAll('#overview th')].map((head, i) =>
            [head.textContent, document.querySelectorAll('#overview td')[i].textContent]))""")
        self.assertEqual(row["tokens/s"], self.ask("short(arguments[0])", last["tokens"] / trained))
        self.assertEqual(row["waiting"], self.ask("percent(arguments[0])", waited / trained))
        self.assertEqual(row["trained for"], self.ask("seconds(arguments[0])", first + last["seconds"]))
        times = self.ask("[...document.querySelectorAll('#times td')].map(cell => cell.textContent)")
        self.assertEqual(times[2], self.ask("short(arguments[0])", last["tokens_per_second"]), "compared with its own costs")

    def test_numbers_are_short_whatever_their_size(self):
        self.open()
        for value, text in [(9.63e16, "9.63e16"), (1e300, "1e300"), (-2.5e12, "-2.5e12"), (999.9e9, "999.9G"), (1.2345e9, "1.234G"), (12345, "12.35k"),
                            (2.25, "2.25"), (0, "0"), (1.2e-4, "1.2e-4"), (1.5e-300, "1.5e-300")]:
            self.assertEqual(self.ask("short(arguments[0])", value), text)

    def test_runs_that_share_nothing_and_losses_beyond_measure(self):
        self.gyre("prepare", "text.txt", "--out", "elsewhere")
        self.gyre("train", "run.toml", "--out", "other", "--set", "model.width=64", "--set", "data.tokens=elsewhere", "--set", "run.updates=12")
        metrics = self.work / "other" / "metrics.jsonl"
        metrics.write_text(re.sub(r'"loss":[0-9.]+', '"loss":9.63e16', metrics.read_text()))
        self.gyre("report", "first", "other", "--out", "strangers.html")
        self.check_boxes("strangers.html", 300)
        self.assertIn("have neither their model nor their data in common", self.ask("document.querySelector('.notes').textContent"))
        self.assertIn("9.63e16", self.ask("document.querySelector('#overview').textContent"))
        self.assertEqual(self.browser.get_log("browser"), [])

    def test_a_last_loss_that_is_not_finite_is_not_replaced_by_one_before(self):
        shutil.copytree(self.work / "first", self.work / "lost")
        metrics = self.work / "lost" / "metrics.jsonl"
        metrics.write_text(re.sub(r'("step":40,"loss":)[0-9.]+', r"\1null", metrics.read_text()))
        self.gyre("report", "lost", "--out", "lost.html")
        self.open("lost.html")
        self.assertIn("not finite", self.ask("document.querySelector('#overview').textContent"))

    def test_boxes_that_overlap_are_found(self):
        self.open()
        self.ask("document.body.insertAdjacentHTML('beforeend', '<p style=\"position:absolute;top:20px;left:20px\">on top of it</p>')")
        self.assertTrue(any("lies over" in fault for fault in self.browser.execute_script(BOXES)["faults"]))

    def test_it_prints(self):
        self.open(scheme="dark")
        self.ask("window.addEventListener('beforeprint', () => { gyre.printed = [document.documentElement.dataset.theme, document.querySelectorAll('details:not([open])').length]; })")
        pdf = base64.b64decode(self.browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
        self.assertGreater(len(pdf), 20_000)
        self.settle()
        self.assertEqual(self.ask("gyre.printed"), ["light", 0], "on paper all is white and unfolded")
        self.assertEqual(self.ask("document.documentElement.dataset.theme"), "dark")
        self.assertGreater(self.ask("document.querySelectorAll('details:not([open])').length"), 0)
        self.assertEqual(self.browser.get_log("browser"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
