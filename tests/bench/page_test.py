#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `penstock bench page`, made from recorded runs: recorded/, with the tables that these runs printed.

    page_test.py PENSTOCK [unittest arguments]
"""
import html.parser
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "bench/page/page.py"
RECORDED = {run: (HERE / f"recorded/{run}.jsonl").read_text() for run in ("bench", "cluster")}
PENSTOCK = None


class Page(html.parser.HTMLParser):
    """The contents of a page: tables as lists of lines, titles of sections, plots, and resources that it would load."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.sections, self.plots, self.tips, self.loads, self.text = [], [], [], [], [], ""
        self.within = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.within.append(tag)
        self.loads += [value for name, value in attributes if name in ("src", "href", "xlink:href") and value[0] != "#"]
        self.loads += [tag] if tag in ("script", "link", "img", "iframe") else []
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "svg":
            self.plots.append("")
        elif tag == "h2":
            self.sections.append("")

    def handle_endtag(self, tag):
        while self.within and self.within.pop() != tag:
            pass

    def handle_data(self, data):
        self.text += data
        if "style" in self.within:
            self.loads += ["@import"] if "@import" in data or "url(http" in data else []
        elif "svg" in self.within:
            self.plots[-1] += data
            if self.within[-1] == "title":
                self.tips.append(data)
        elif self.within and self.within[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif self.within and self.within[-1] == "h2":
            self.sections[-1] += data


def make(records, *flags):
    """Returns the exit code, the page if it was made, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        given, page = pathlib.Path(folder, "given.jsonl"), pathlib.Path(folder, "page.html")
        given.write_text(records)
        done = subprocess.run([PENSTOCK, "bench", "page", given, page, *flags], capture_output=True, text=True, timeout=120)
        return done.returncode, page.read_text() if page.exists() else "", done.stderr


def summaries(text):
    return [record for record in map(json.loads, text.splitlines()) if "summary" in record]


def with_text(plots, text):
    return [" ".join(plot.split()) for plot in plots if text in plot]


class OfRecordedRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.html = {}
        for run, records in RECORDED.items():
            code, cls.html[run], said = make(records)
            assert code == 0, said
        cls.pages = {run: Page(text) for run, text in cls.html.items()}

    def test_their_table_is_the_one_that_the_bench_printed(self):
        for run, page in self.pages.items():
            printed = (HERE / f"recorded/{run}.txt").read_text().split("\n\n")[0].splitlines()
            self.assertEqual([" ".join(cells).split() for cells in page.tables[-1]], [line.split() for line in printed])

    def test_each_workload_has_a_section_with_its_question_and_plots(self):
        page = self.pages["bench"]
        self.assertEqual([title.split(":")[0] for title in page.sections], ["T1", "Range", "L2", "All rows"])
        self.assertIn("T1: buffers ", page.sections[0])
        self.assertEqual(len(page.plots), 6)
        rates, ratios = with_text(page.plots, "GB/s at the reader"), with_text(page.plots, "share of the limit")
        self.assertEqual((len(rates), len(ratios)), (3, 3))
        for text in ("64 KiB", "1 MiB", "bytes of an element", "shm", "tcp", "fill1", "socket cubic"):
            self.assertIn(text, rates[0])
        for text in ("1:2", "1:4", "workers : trainers", "shm coordinated", "uncoordinated"):
            self.assertIn(text, rates[2])

    def test_a_level_is_compared_with_each_limit_and_pairs_are_a_matrix(self):
        page = self.pages["cluster"]
        self.assertEqual(page.sections, ["host", "link", "pair", "All rows"])
        self.assertIn("shm by memcpy", with_text(page.plots, "share of the limit")[0])
        self.assertEqual(len(page.plots), 4)  # links were measured without limits
        matrix, = with_text(page.plots, "GB/s of the fastest row of each pair")
        of_pair = [record["gb_per_s"] or 0 for record in summaries(RECORDED["cluster"])
                   if record["workload"] == "pair" and record["hosts"] == ["127.0.0.1", "127.0.0.2"]]
        self.assertIn(f"{max(of_pair):.2f}", matrix)

    def test_each_point_has_its_figures(self):
        records = [record for record in summaries(RECORDED["bench"]) if record["gb_per_s"]]
        self.assertEqual(len(records), 10)
        for record in records:
            figures = f"{record['gb_per_s']:.3g} GB/s, {record['limit']} {record['limit_gb_per_s']:.3g}, ratio {record['ratio']:.2f}"
            # One at the rate, one at its limit, one at the ratio.
            self.assertEqual(len([tip for tip in self.pages["bench"].tips if tip.endswith(figures)]), 3, figures)

    def test_they_load_nothing_and_name_the_machines(self):
        for run, page in self.pages.items():
            self.assertEqual(page.loads, [])
            self.assertNotIn("nan", self.html[run])
            machine = json.loads(RECORDED[run].splitlines()[0])
            self.assertIn(machine["description"] + "; penstock ", page.text)
        self.assertIn("host (127.0.0.2): ", self.pages["cluster"].text)


class OfOtherRecords(unittest.TestCase):
    def test_a_row_that_did_not_run_has_a_note_and_no_plot(self):
        row = summaries(RECORDED["bench"])[0]
        row.update(pairs=0, clean_pairs=0, gb_per_s=None, note="no <such> device & no other")
        code, text, said = make(json.dumps(row))
        self.assertEqual(code, 0, said)
        page = Page(text)
        self.assertEqual(page.plots, [])
        self.assertIn("no &lt;such&gt; device &amp; no other", text)
        self.assertEqual(page.tables[-1][1][-1], "no <such> device & no other")

    def test_gpu_measurements_are_beside_their_limits(self):
        figures = ('{"what": "raw copy of 1024 KiB", "beside": "", "gb_per_second": 50.00, "least": 49.00, "most": 51.00}\n'
                   '{"what": "landing of 1024 KiB", "beside": "raw copy of 1024 KiB", "gb_per_second": 48.00, '
                   '"least": 47.50, "most": 48.25}\n{"not_measured": "no <driver>"}\n')
        with tempfile.NamedTemporaryFile("w", suffix=".figures") as file:
            file.write(figures)
            file.flush()
            pages = [make("", "--gpu-figures", file.name), make(figures)]  # gpu-day appends them to the records
        for code, text, said in pages:
            self.assertEqual(code, 0, said)
            page = Page(text)
            self.assertEqual(page.sections[0], "On a GPU")
            self.assertEqual(page.tables[0], [["what", "GB/s", "least", "most", "ratio", "of"],
                                              ["raw copy of 1024 KiB", "50.00", "49.00", "51.00", "", ""],
                                              ["landing of 1024 KiB", "48.00", "47.50", "48.25", "0.960", "raw copy of 1024 KiB"]])
            self.assertIn("Not measured: no &lt;driver&gt;", text)
        self.assertNotIn("GPU", make("")[1])

    def test_what_is_no_figure_is_refused_by_line(self):
        for line in ("1", "{}", "{", '{"what": "x", "gb_per_second": -1}', '{"what": 3, "gb_per_second": 1, "least": 1, "most": 1}'):
            with tempfile.NamedTemporaryFile("w", suffix=".figures") as file:
                file.write("\n" + line)
                file.flush()
                code, text, said = make(RECORDED["bench"], "--gpu-figures", file.name)
            self.assertEqual((code, text), (1, ""), line)
            self.assertRegex(said, f"in {file.name}: line 2 is not a (figure of gpu_bench|JSON object)")
        code, _, said = make("{")
        self.assertEqual(code, 1)
        self.assertIn("line 1 is not a JSON object", said)
        self.assertIn("cannot read /nowhere", make(RECORDED["bench"], "--gpu-figures", "/nowhere")[2])

    def test_a_machine_that_cannot_make_it_measures_and_is_told_how(self):
        with tempfile.TemporaryDirectory() as folder:
            program, records, page = (pathlib.Path(folder, name) for name in ("penstock-bench", "a.jsonl", "a.html"))
            shutil.copy2(pathlib.Path(PENSTOCK).with_name("penstock-bench"), program)  # alone, so without page.py
            command = [program, "bench", "Range", "--protocol", "local", "--window", "0.05", "--pairs", "1", "--html", page]
            done = [subprocess.run([*command, *more], capture_output=True, text=True, timeout=120)
                    for more in ([], ["--json", records])]
            self.assertFalse(page.exists())
            self.assertEqual(len(summaries(records.read_text())), 1)
        for run in done:
            self.assertIn("no page can be made here: ", run.stderr)
            self.assertIn("penstock bench page RECORDS PAGE", run.stderr)
        self.assertEqual([run.returncode for run in done], [1, 0])
        self.assertEqual(done[0].stdout, "")
        self.assertIn("limit GB/s", done[1].stdout)

    def test_a_python_without_the_libraries_is_told_so(self):
        done = subprocess.run([sys.executable, "-I", "-S", PAGE, "--check"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no matplotlib and no jinja2 (Debian: python3-matplotlib, python3-jinja2)", done.stderr)


if __name__ == "__main__":
    PENSTOCK = sys.argv.pop(1)
    unittest.main()
