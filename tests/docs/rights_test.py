#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every method and stream of every .proto service of Penstock, and every status page, is a row of the tables of
docs/security.md, with the same rights in the test that tries each cell (tests/cluster/authorization_test.cc).

    rights_test.py [ROOT]
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
FOREIGN = ROOT / "control/etcd/etcd.proto"  # etcd serves these methods, and no process of Penstock does
COLUMNS = ["unknown process", "worker", "trainer, of another's", "trainer, of its own", "operator"]


def methods(text):
    """Returns the methods and streams that a .proto file defines."""
    return re.findall(r"^\s*rpc\s+(\w+)\s*\(", re.sub(r"//.*", "", text), re.M)


def documented(text):
    """Returns the rights of each name in the first cells of the tables with COLUMNS; a cell that is "–" grants nothing."""
    rights = {}
    for table in re.findall(rf"^\|[^|\n]*\| {re.escape(' | '.join(COLUMNS))} \|\n(?:\|.*\n)+", text, re.M):
        for row in table.splitlines()[2:]:
            name, *cells = [cell.strip() for cell in row.strip("|").split("|")]
            for each in re.findall(r"`([^`]+)`", name):
                rights[each] = [cell != "–" for cell in cells]
    return rights


def tried(text):
    """Returns the rights of each method that the test tries."""
    return {name: [word.strip() == "true" for word in may.split(",")]
            for name, may in re.findall(r'\{"(\w+)",\s*\{((?:(?:true|false),?\s*){5})\},', text)}


class Rights(unittest.TestCase):
    proto = [name for part in ("control", "dataplane") for file in sorted((ROOT / part).rglob("*.proto"))
             if file != FOREIGN for name in methods(file.read_text())]
    page = documented((ROOT / "docs/security.md").read_text())
    test = tried((ROOT / "tests/cluster/authorization_test.cc").read_text())

    def test_every_method_is_documented(self):
        self.assertIn("GetStatus", self.proto)
        self.assertEqual([name for name in self.proto if name not in self.page], [])

    def test_every_method_is_tried(self):
        self.assertEqual(sorted(self.test), sorted(self.proto))

    def test_the_page_and_the_test_agree(self):
        # A list that shows nothing of another's is an answer, and the test counts it as one.
        self.assertEqual({name: self.page[name] for name in self.test}, self.test)

    def test_the_pages_are_documented(self):
        text = (ROOT / "control/dispatcher/server/server.cc").read_text()
        paths = re.findall(r'\{"(/\w*)", \[', text)
        self.assertEqual(paths, ["/", "/metrics"])
        for path in paths:
            self.assertIn(path, self.page)


class WhatIsNoticed(unittest.TestCase):
    def test_a_new_method(self):
        self.assertEqual(methods("service S {\n  rpc A(X) returns (Y);\n  // rpc B(X)\n  rpc C (stream X) returns (Y);\n}"),
                         ["A", "C"])

    def test_rows(self):
        head = f"| method | {' | '.join(COLUMNS)} |\n|---|---|---|---|---|---|\n"
        self.assertEqual(documented(head + "| `A`, `B` (x) | – | yes | sees | – | yes |\n\n| `C` | yes |\n"),
                         dict.fromkeys("AB", [False, True, True, False, True]))
        self.assertEqual(tried('{"A",\n {false, true, true, false, true},\n f}'), {"A": [False, True, True, False, True]})


if __name__ == "__main__":
    unittest.main()
