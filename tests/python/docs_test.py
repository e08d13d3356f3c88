# SPDX-License-Identifier: Apache-2.0
"""Runs the Python code of README.md and of the pages in docs/ unchanged."""
import contextlib
import io
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]


class Docs(unittest.TestCase):
    def setUp(self):
        os.chdir(ROOT)  # the pages name files relative to it

    def run_page(self, page):
        """Runs all blocks of a page, one after the other; returns what they print."""
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
        self.assertTrue(blocks)
        printed = io.StringIO()
        names = {}
        with contextlib.redirect_stdout(printed):
            for block in blocks:
                exec(compile(block, page, "exec"), names)
        names["worker"].stop()
        names["dispatcher"].stop()
        return printed.getvalue()

    def test_the_readmes_quick_start(self):
        sums = [int(line) for line in self.run_page("README.md").split()]
        self.assertEqual((len(sums), sum(sums)), (20, 2000000))  # in one process, then through a service

    def test_the_guide(self):
        self.assertEqual(self.run_page("docs/python.md").split()[-1], "1000000")

    def test_the_quick_start(self):
        lines = self.run_page("docs/quick_start.md").splitlines()
        self.assertEqual(lines, ["(100,) int64"] * 10 + ["499500", "9"])

    def test_choosing_a_mode(self):
        self.assertEqual(self.run_page("docs/choosing_a_mode.md").splitlines(), ["100", "True 32", "True False"])

    def test_coming_from_elsewhere(self):
        lines = self.run_page("docs/migration.md").splitlines()
        self.assertEqual(lines, ["81", "(2, 224, 224, 3) (2,)", "97"])

    def test_no_page_is_left_out(self):
        run = {"README.md", *re.findall(r'"(docs/[a-z_]+\.md)"', pathlib.Path(__file__).read_text())}
        pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        self.assertEqual(run, {str(p.relative_to(ROOT)) for p in pages if "```python\n" in p.read_text()})


if __name__ == "__main__":
    unittest.main()
