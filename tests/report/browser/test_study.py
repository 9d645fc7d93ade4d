"""Tests the page of a study in a browser: its tables, a timeline of each pipeline, and that no text is cut off or overlaps.
GYRE is the program; scripts/test-report runs it."""
import json
import shutil
import unittest

from test_report import CONFIGURATION, InBrowser

STUDY = CONFIGURATION + """
[study]
stages = [1, 3]
learning_rates = [1e-3, 3e-3]
smooth = 1
[[study.method]]
name = "AdamW"
set = ["run.updates=12", "optimizer.kind=adamw"]
[[study.method]]
name = "Basis rotation with a name of some length"
set = ["run.updates=12", "optimizer.kind=basis-rotation"]
"""


class StudyPage(InBrowser):
    OFFLINE = True

    @classmethod
    def make_runs(cls):
        (cls.work / "study.toml").write_text(STUDY)
        cls.gyre("study", "study.toml", "--out", "study", "--jobs", "1")
        cls.gyre("report", "study", "--out", "study.html")

    def test_it_has_tables_and_a_timeline_of_each_pipeline(self):
        self.open("study.html")
        tables = self.ask("document.querySelector('#studies').textContent")
        for words in ("Basis rotation with a name of some length", "P\u00a0=\u00a03", "Last training loss", "Learning rates"):
            self.assertIn(words, tables)
        self.assertEqual(self.ask("gyre.timelines.map(timeline => timeline.tracks.length)"), [1, 3])
        self.assertEqual(self.ask("gyre.curves.runs.length"), 8)
        self.assertEqual(self.asked_urls(), [f"file://{self.work}/study.html"])
        self.assertEqual(self.browser.get_log("browser"), [])

    def with_results(self, change):
        """The page of the study after `change` of its results."""
        name = self._testMethodName
        shutil.copytree(self.work / "study", self.work / name)
        results = json.loads((self.work / name / "results.json").read_text())
        change(results)
        (self.work / name / "results.json").write_text(json.dumps(results))
        self.gyre("report", name, "--out", f"{name}.html")
        self.open(f"{name}.html")

    def test_what_was_not_measured_is_a_dash(self):
        def change(results):
            norms = {"hessian_norm": 4, "rotated_norm": 1}
            results["arms"][0]["diagnostics"] = {**norms, "cosine": None, "oscillation": None}
            results["arms"][1]["diagnostics"] = {**norms, "cosine": 0.5, "oscillation": 0.25}
        self.with_results(change)
        cells = self.ask("[...document.querySelectorAll('#studies td')].map(cell => cell.textContent)")
        self.assertIn("-", cells)
        self.assertIn("0.500; 0.250", cells)
        self.assertEqual(self.browser.get_log("browser"), [])

    def test_a_section_that_cannot_be_drawn_hides_no_other(self):
        self.with_results(lambda results: results.update(targets=["not a loss"]))
        self.assertIn("This part cannot be drawn: target.toFixed", self.ask("document.querySelector('#studies').textContent"))
        self.assertEqual(self.ask("gyre.curves.runs.length"), 8)
        self.assertEqual(self.ask("[...document.querySelectorAll('main section[id]')].filter(section => section.hidden).map(section => section.id)"), [])

    def test_no_text_is_cut_or_lies_over_other_text(self):
        self.check_boxes("study.html", 500)


if __name__ == "__main__":
    unittest.main(verbosity=2)
