# SPDX-License-Identifier: Apache-2.0
"""The Python of README.md and docs/python.md runs as it stands there."""
import contextlib
import io
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]


class Docs(unittest.TestCase):
    def run_page(self, page):
        """Runs all blocks of a page, one behind the other; what they print."""
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
        self.assertEqual((len(sums), sum(sums)), (10, 1000000))

    def test_the_guide(self):
        self.assertEqual(self.run_page("docs/python.md").split()[-1], "1000000")


if __name__ == "__main__":
    unittest.main()
