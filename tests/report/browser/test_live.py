"""Tests the page of gyre serve in a browser: it follows metrics.jsonl while it grows, does not disturb what somebody looks at,
and requests nothing except from its server. GYRE is the program; scripts/test-report runs it."""
import json
import subprocess
import time
import unittest
import urllib.request

from test_report import GYRE, InBrowser


class LivePage(InBrowser):
    OFFLINE = False

    @classmethod
    def make_runs(cls):
        cls.gyre("train", "run.toml", "--out", "whole")

    def setUp(self):
        """A run that has just begun, and its page."""
        self.run_path = self.work / self._testMethodName
        self.run_path.mkdir()
        (self.run_path / "config.toml").write_text((self.work / "whole" / "config.toml").read_text())
        self.lines = (self.work / "whole" / "metrics.jsonl").read_text().splitlines(keepends=True)
        self.server = subprocess.Popen([GYRE, "serve", self.run_path, "--port", "0"], cwd=self.work,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(self.end_server)
        self.url = self.server.stdout.readline().strip()
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.browser.get(self.url)

    def end_server(self):
        self.server.terminate()
        self.server.wait()
        self.server.stdout.close()

    def write(self, lines):
        with open(self.run_path / "metrics.jsonl", "a") as file:
            file.writelines(lines)

    def wait_for(self, script, *values):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            found = self.ask(script, *values)
            if found:
                return found
            self.settle()
        self.fail(f"never: {script}")

    last_step = "gyre.curves && (graph => graph.getValue(graph.numRows() - 1, 0))(gyre.curves.charts[0].graph)"

    def test_it_follows_the_metrics_and_asks_nobody_else(self):
        self.wait_for("document.body.textContent.includes('no update is recorded yet')")
        self.write(self.lines[:8])
        first = [json.loads(line)["step"] for line in self.lines[:8] if '"step"' in line][-1]
        self.assertEqual(self.wait_for(self.last_step), first)
        self.assertFalse(self.ask("document.body.textContent.includes('no update is recorded yet')"))
        self.write(self.lines[8:])
        self.wait_for(f"{self.last_step} === 40")
        self.wait_for("document.querySelector('#overview').textContent.includes('finished')")
        self.assertEqual(self.ask("document.getElementById('live').textContent"), "Live: follows the files of what is shown.")
        self.assertEqual(set(self.asked_urls()), {self.url, self.url + "data", self.url + "timelines"})
        self.assertEqual(self.browser.get_log("browser"), [])

    def test_what_is_looked_at_stays(self):
        steps = [line for line in self.lines if '"event":"step"' in line]
        self.write(steps[:20])
        self.assertEqual(self.wait_for(self.last_step), 20)
        self.ask("document.querySelectorAll('#configuration details')[1].open = true")
        self.ask("gyre.curves.show([5, 12])")
        self.ask("document.querySelector('#overview .scroll').focus()")
        self.write(steps[20:30])
        self.wait_for(f"{self.last_step} === 30")
        self.assertEqual(self.ask("gyre.curves.charts[0].graph.xAxisRange()"), [5, 12])
        self.assertTrue(self.ask("document.querySelectorAll('#configuration details')[1].open"))
        self.assertTrue(self.ask("document.activeElement === document.querySelector('#overview .scroll')"))
        # The first evaluation brings a chart of its own.
        self.write([line for line in self.lines if '"event":"eval"' in line])
        self.wait_for("gyre.curves.charts.some(chart => chart.quantity.name === 'val_loss')")
        self.assertEqual(self.ask("gyre.curves.charts[1].graph.xAxisRange()"), [5, 12])
        # While a mouse button is held, nothing moves.
        self.mouse("mousePressed", 5, 5, button="left", clickCount=1)
        self.write(steps[30:])
        updates = self.ask("gyre.live.updates")
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self.settle()
        self.assertEqual(self.ask("gyre.live.updates"), updates)
        self.mouse("mouseReleased", 5, 5, button="left", clickCount=1)
        self.wait_for(f"{self.last_step} === 40")
        self.ask("gyre.curves.show(null)")
        self.assertEqual(self.ask("gyre.curves.charts[0].graph.xAxisRange()"), [1, 40])

    def test_trouble_is_said(self):
        self.write(self.lines[:8])
        self.wait_for(self.last_step)
        self.write(["no line of metrics\n"])
        self.wait_for("document.getElementById('live').textContent.includes('is not a line of metrics')")
        self.assertGreater(self.ask(self.last_step), 0)
        self.server.terminate()
        self.wait_for("document.getElementById('live').textContent.includes('No answer from gyre serve')")

    def test_an_error_in_a_section_is_said_and_the_page_goes_on(self):
        self.write(self.lines[:8])
        self.wait_for(self.last_step)
        self.ask("void (window.drawn = delayTable, window.delayTable = () => { throw new Error('no such delay'); })")
        self.write(self.lines[8:-1])
        self.wait_for("document.getElementById('live').textContent.includes('not all of it can be drawn: Delay and mismatch by stage: no such delay')")
        self.assertEqual(self.ask(self.last_step), 40)
        self.assertIn("This part cannot be drawn", self.ask("document.querySelector('#delays').textContent"))
        self.ask("void (window.delayTable = window.drawn)")
        self.write(self.lines[-1:])
        self.wait_for("document.querySelector('#overview').textContent.includes('finished')")
        self.assertIn("mean delay", self.ask("document.querySelector('#delays').textContent"))
        self.assertEqual(self.ask("document.getElementById('live').textContent"), "Live: follows the files of what is shown.")

    def test_what_came_while_text_was_selected_is_shown_later(self):
        self.write(self.lines[:8])
        self.wait_for(self.last_step)
        self.ask("getSelection().selectAllChildren(document.querySelector('#overview table'))")
        self.write(self.lines[8:])
        self.wait_for(f"{self.last_step} === 40")
        self.assertNotIn("finished", self.ask("document.querySelector('#overview').textContent"))
        self.ask("getSelection().removeAllRanges()")
        self.wait_for("document.querySelector('#overview').textContent.includes('finished')")

    def test_curves_of_what_is_gone_go(self):
        self.write(self.lines)
        self.wait_for(f"{self.last_step} === 40")
        (self.run_path / "metrics.jsonl").write_text("")
        self.wait_for("document.body.textContent.includes('no update is recorded yet')")
        self.assertTrue(self.ask("document.querySelector('#curves').hidden && gyre.curves === null"))
        self.write(self.lines[:8])
        self.assertGreater(self.wait_for(self.last_step), 0)
        self.assertFalse(self.ask("document.querySelector('#curves').hidden"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
