#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/operating.md: shells and systemd can read them, every flag exists, and Penstock makes every
metric and event that an alarm uses. Usage: operating_test.py SOURCE PENSTOCK"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, COMMAND = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
PAGE = (ROOT / "docs/operating.md").read_text()


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
    assert found, f"no block of {language}"
    return found


def run(*command, **keywords):
    return subprocess.run(command, capture_output=True, text=True, **keywords)


class Sketches(unittest.TestCase):
    def test_shells_read_the_scripts(self):
        for block in blocks("bash"):
            checked = run("bash", "-n", input=block)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), block)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_systemd_reads_the_units(self):
        for block in blocks("ini"):
            with tempfile.TemporaryDirectory() as folder:
                unit = pathlib.Path(folder, "penstock-of-the-page.service")
                unit.write_text(block.replace("/opt/penstock/bin/penstock", str(COMMAND)).replace("User=penstock\n", ""))
                checked = run("systemd-analyze", "verify", "--man=no", unit)
                complaints = [line for line in checked.stderr.splitlines() if unit.name in line]
                self.assertEqual(complaints, [], block)

    def test_a_dispatcher_and_a_worker_take_the_flags(self):
        commands = [c for block in blocks("bash") + blocks("ini") for c in
                    re.findall(r"penstock (dispatcher|worker|status)\b((?:[^\n\\&]|\\\n)*)", block)]
        commands += [(name, rest) for name, rest in re.findall(r"args: \[penstock, (\w+), (.*)\]", PAGE)]
        self.assertGreater(len(commands), 7)
        for name, rest in commands:
            known = re.findall(r"--[a-z0-9-]+", run(COMMAND, name, "--help").stdout)
            for flag in re.findall(r"--[a-z0-9-]+", rest):
                self.assertIn(flag, known, f"penstock {name}")

    def test_alarms_use_existing_metrics_and_events(self):
        alarms = PAGE[PAGE.index("## What to watch"):]
        sources = "\n".join(
            source.read_text()
            for folder in ("control", "dataplane", "tools")
            for source in (ROOT / folder).rglob("*.cc")
        )
        names = set(re.findall(r"\bpenstock_(?:dispatcher|client|worker)_\w+", alarms))
        names |= set(re.findall(r"event `(\w+)`", alarms))
        self.assertGreater(len(names), 6)
        for name in names:
            self.assertIn(f'"{name}', sources)


if __name__ == "__main__":
    unittest.main()
