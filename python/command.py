#!python
# SPDX-License-Identifier: Apache-2.0
"""The command `penstock` of the wheel: runs the program in the package, without importing the package."""

import importlib.util
import os
import sys

folder = importlib.util.find_spec("penstock").submodule_search_locations[0]
program = os.path.join(folder, "bin", "penstock")
os.execv(program, [program, *sys.argv[1:]])
