#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpenstock.so exports the functions and objects that exported_names.txt records: see docs/compatibility.md.

    tests/include/exported_names_test.py LIBRARY            compares
    tests/include/exported_names_test.py LIBRARY --write    records what is there now

Names without arguments; what the compiler makes from templates and inline functions is left out.
"""
import pathlib
import re
import subprocess
import sys
import unittest

RECORD = pathlib.Path(__file__).with_name("exported_names.txt")


def exported(library):
    symbols = subprocess.run(["nm", "--dynamic", "--defined-only", library], capture_output=True, text=True, check=True)
    strong = [line.split()[-1] for line in symbols.stdout.splitlines() if line.split()[-2] in "TDBR"]
    plain = subprocess.run(["c++filt"], input="\n".join(strong), capture_output=True, text=True, check=True)
    return sorted({without_arguments(name) for name in plain.stdout.splitlines()})


def without_arguments(name):
    name = name.replace("operator()", "operator<call>").replace("[abi:cxx11]", "")
    return re.sub(r"\(.*", "", name).replace("operator<call>", "operator()")


class ExportedNames(unittest.TestCase):
    def test_are_those_that_are_recorded(self):
        recorded, now = set(RECORD.read_text().splitlines()), set(exported(LIBRARY))
        self.assertEqual(
            (sorted(recorded - now), sorted(now - recorded)),
            ([], []),
            "gone and new; if that is meant, run tests/include/exported_names_test.py LIBRARY --write",
        )


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("\n".join(exported(LIBRARY)) + "\n")
    else:
        unittest.main()
