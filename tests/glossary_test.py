#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds code to the glossary of docs/architecture.md ("Words"): a word has one row, the names that it cites exist, and
words that were given up (docs/decisions/0011-names.md) do not come back in identifiers."""
import collections
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[1]
# The present name of each.
GIVEN_UP = {
    "desk": "context, coordinator", "outlet": "sender, stream writer", "workshop": "context", "lander": "device copy engine",
    "stranger": "unauthenticated", "aside": "background, passive", "dealt": "assigned, positions", "hub": "collective server",
    "wish": "preference", "speaker": "message router", "saying": "pending reply", "standing": "status", "letter": "message",
    "parcel": "pending send", "deaf": "draining", "bell": "wake descriptor, doorbell", "remark": "details", "pythons": "python host",
}
# Where a word has its meaning of the glossary alone.
ONLY_IN = {"lane": ("dataplane/transfer/ucx/", "dataplane/transfer/verbs/")}  # those of UCX, and of a port's wires
SETTINGS_OF_UCX = {"ucx_lanes", "SetLanes"}
COMPONENTS = ("include/", "control/", "dataplane/", "cuda/")


def sources():
    files = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.cu"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in files.stdout.split() if name.startswith(COMPONENTS)]


def identifiers_of(text):
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.findall(r"[A-Za-z_][A-Za-z0-9_]*", re.sub(r"//[^\n]*", "", text))


def words_of(identifier):
    """The words of an identifier, without a plural's s."""
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]
    return set(parts) | {part.removesuffix("s") for part in parts}


def rows_of(page):
    section = re.search(r"^## Words\n(.*?)^## ", page, re.M | re.S)[1]
    return [row for row in re.findall(r"^\| (.+?) \| (.+) \|$", section, re.M) if row[0] != "word"]


def misused(name, text):
    found = []
    for identifier in sorted(set(identifiers_of(text)) - SETTINGS_OF_UCX):
        words = words_of(identifier)
        found += [f"{name}: {identifier} (better: {GIVEN_UP[word]})" for word in sorted(words & GIVEN_UP.keys())]
        found += [f"{name}: {identifier} ({word} has another meaning)" for word in sorted(words & ONLY_IN.keys())
                  if not name.startswith(ONLY_IN[word])]
    return found


class Glossary(unittest.TestCase):
    def setUp(self):
        self.rows = rows_of((ROOT / "docs/architecture.md").read_text())

    def test_a_word_has_one_row(self):
        words = collections.Counter(word.strip() for row in self.rows for word in re.sub(r"\(.*?\)", "", row[0]).split(","))
        self.assertGreater(len(words), 80)
        self.assertEqual([word for word, rows in words.items() if rows > 1], [])

    def test_names_that_a_row_cites_exist(self):
        known = {identifier for name in sources() for identifier in identifiers_of((ROOT / name).read_text())}
        cited = {name for _, meaning in self.rows for name in re.findall(r"`(?:\w+::)*([A-Z]\w+)`", meaning)}
        self.assertGreater(len(cited), 5)
        self.assertEqual(sorted(cited - known - {"FILE", "DATA", "HINT"}), [])

    def test_words_that_were_given_up_stay_so(self):
        self.assertEqual([line for name in sources() for line in misused(name, (ROOT / name).read_text())], [])

    def test_a_word_that_comes_back_is_noticed(self):
        self.assertEqual(misused("control/a.h", "class RoundsDesk {};  // desk"), ["control/a.h: RoundsDesk (better: context, coordinator)"])
        self.assertEqual(misused("dataplane/client/a.h", "int lanes_;"), ["dataplane/client/a.h: lanes_ (lane has another meaning)"])
        self.assertEqual(misused("dataplane/transfer/ucx/a.h", "int lanes_; int understanding;"), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
