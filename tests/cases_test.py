#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that some test runs every case of every test program: none may fall between the files and filters in tests/.

    cases_test.py BUILD            fails with the names of cases that no test runs
    cases_test.py BUILD --count    how many cases there are, by program, and in all
"""
import collections
import json
import pathlib
import re
import subprocess
import sys


def cases(command):
    """Returns the names of the cases that this command runs, without those that only run by hand (DISABLED_)."""
    listing = subprocess.run(command + ["--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
    names, suite = set(), ""
    for line in listing.splitlines():
        word = line.split("#")[0].rstrip()
        if word and not word.startswith(" "):
            suite = word
        elif word:
            names.add(suite + word.strip())
    return {name for name in names if "DISABLED_" not in name}


def main():
    build = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    commands = collections.defaultdict(list)
    for test in json.loads(listed.stdout)["tests"]:
        command = test.get("command", [])  # empty if its program is not built
        if any(word.startswith("--files=") for word in command):
            commands[command[0]].append(command)
    total, lost = 0, []
    for program, its in sorted(commands.items()):
        every = cases([program])
        total += len(every)
        if "--count" in sys.argv:
            print(f"{len(every):6} {pathlib.Path(program).name}")
        lost += [f"{pathlib.Path(program).name} {name}" for name in sorted(every - set().union(*map(cases, its)))]
    if "--count" in sys.argv:
        root = pathlib.Path(__file__).resolve().parent
        python = sum(len(re.findall(r"^\s+def test_", path.read_text(), re.M)) for path in root.rglob("*_test.py"))
        print(f"{total:6} cases of C++ in {len(commands)} programs, {python} methods of Python")
    if not commands:
        sys.exit("no test program was found: is all of it built?")
    if lost:
        sys.exit("\n".join(["no test runs these cases:"] + lost))


main()
