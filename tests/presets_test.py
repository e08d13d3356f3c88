#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each preset that can be configured can be built and tested by its name, as `./run` does, and its
usage names them all."""
import json
import pathlib
import sys

root = pathlib.Path(sys.argv[1])
presets = json.loads((root / "CMakePresets.json").read_text())
kinds = {kind: {preset["name"] for preset in presets[kind] if not preset.get("hidden")}
         for kind in ("configurePresets", "buildPresets", "testPresets")}
usage = (root / "run").read_text().split("TEXT")[1]
listed = set(usage.split("configure and build (")[1].split(";")[0].split(", "))

faults = [f"{name} is in configurePresets, not in {kind}"
          for kind in kinds for name in sorted(kinds["configurePresets"] - kinds[kind])]
faults += [f"{name} is in CMakePresets.json or in the usage of run, not in both"
           for name in sorted(kinds["configurePresets"] ^ listed)]
sys.exit("\n".join(faults) or 0)
