#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/tfdata-service.md has one row for each feature of tf.data service, with a
valid state, and names only tests that exist."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
FEATURES = {"A": 20, "B": 16, "C": 10, "D": 13, "E": 13, "F": 10, "G": 11, "H": 9, "I": 8, "J": 14,
            "K": 13, "L": 13, "M": 12, "N": 19, "O": 8, "P": 16, "Q": 8, "R": 6, "S": 16,
            "T": 8, "U": 8, "V": 9, "W": 11, "X": 6}
WEAK_SPOTS = 65
STATES = ("✓", "changed", "why not", "not yet", "later")
NEED_A_TEST = ("✓", "changed")


def rows(text):
    """Returns (id, state, tests) of each row, in the order of the page."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and re.fullmatch(r"[A-X]?\d+", cells[0]):
            found.append((cells[0], cells[2], re.findall(r"`([^`]+)`", cells[3])))
    return found


def examples(text):
    """Returns (name, tests) of each row of the documentation's own examples."""
    section = text.split("## The documentation's own examples")[1].split("\n## ")[0]
    return [(name, re.findall(r"`(\w+\.\w+)`", tests))
            for name, tests in re.findall(r"^\| (X\d+) \|.*\| (.*) \|$", section, re.M)]


def tests_in(tree):
    """Returns Suite.Test and Class.test_name of all sources below the folder, and its scripts."""
    names = set()
    for source in tree.rglob("*.cc"):
        for suite, test in re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)", source.read_text(), re.M):
            names.add(f"{suite}.{test}")
    for source in tree.rglob("*.py"):
        names.add(str(source.relative_to(tree)))
        of = None
        for line in source.read_text().splitlines():
            if match := re.match(r"class (\w+)", line):
                of = match[1]
            elif match := re.match(r"    def (test_\w+)", line):
                names.add(f"{of}.{match[1]}")
    return names


class ServicePage(unittest.TestCase):
    def setUp(self):
        self.rows = rows((ROOT / "docs" / "tfdata-service.md").read_text())

    def test_has_each_row_once_and_no_other(self):
        wanted = [f"{letter}{i}" for letter, count in FEATURES.items() for i in range(1, count + 1)]
        wanted += [str(i) for i in range(1, WEAK_SPOTS + 1)]
        self.assertEqual([row[0] for row in self.rows], wanted)

    def test_states_are_valid_and_finished_features_name_a_test(self):
        for row, state, tests in self.rows:
            with self.subTest(row):
                self.assertTrue(state.startswith(STATES), state)
                if state.startswith(NEED_A_TEST):
                    self.assertTrue(tests, "names no test")

    def test_each_example_has_a_test_in_c_and_in_python(self):
        found = examples((ROOT / "docs" / "tfdata-service.md").read_text())
        self.assertEqual([name for name, _ in found], [f"X{i}" for i in range(1, 17)])
        known = tests_in(ROOT / "tests")
        for name, tests in found:
            self.assertEqual(["test_" in test for test in tests], [False, True], name)
            for test in tests:
                self.assertTrue(test in known, f"{name}: there is no test {test}")

    def test_names_tests_that_exist(self):
        known = tests_in(ROOT / "tests")
        for row, _, tests in self.rows:
            for test in tests:
                self.assertTrue(test in known, f"row {row}: there is no test {test}")


if __name__ == "__main__":
    unittest.main()
