#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from a fresh kernel, and print and show what they should. Usage: notebooks_test.py SOURCE BUILD
COMMAND"""
import base64
import os
import pathlib
import struct
import sys
import tempfile
import unittest

ROOT, BUILD, COMMAND = (pathlib.Path(sys.argv[i]).resolve() for i in (1, 2, 3))
TOOLS = ROOT / "build/docs-tools/bin/python"


def executed(name, scratch):
    """Runs the notebook in its own folder; returns it with its outputs."""
    import nbclient
    import nbformat
    from jupyter_client.manager import AsyncKernelManager

    notebook = nbformat.read(ROOT / "examples/notebooks" / name, as_version=4)
    for cell in notebook.cells:
        assert not cell.get("outputs"), f"{name} is kept with outputs: clear them"
    kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=f"{scratch}/kernel.json")
    return nbclient.NotebookClient(
        notebook, km=kernel, timeout=300, resources={"metadata": {"path": str(ROOT / "examples/notebooks")}}
    ).execute()


def printed(notebook):
    return "".join(
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stdout"
    ).splitlines()


def pictures(notebook):
    """Returns (width, height) of each PNG that a cell shows."""
    return [
        struct.unpack(">II", base64.b64decode(output.data["image/png"])[16:24])
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]


class Notebooks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        os.environ.update(
            PYTHONPATH=str(BUILD / "python"), PENSTOCK_COMMAND=str(COMMAND), JUPYTER_RUNTIME_DIR=scratch.name,
            IPYTHONDIR=scratch.name,
        )

    def test_quick_start(self):
        lines = printed(executed("quick_start.ipynb", self.scratch))
        self.assertEqual(lines[3:], ["lost 0 doubled 0"] * 2 + ["elements 1000 each once True"])

    def test_images(self):
        notebook = executed("images.ipynb", self.scratch)
        lines = printed(notebook)
        self.assertEqual([line.split()[0] for line in lines[:2]], ["../photos/china.jpg", "../photos/flower.jpg"])
        self.assertEqual(lines[2:], ["24 images of (96, 96, 3)"])
        wide = 8 * 98 - 2
        self.assertEqual(pictures(notebook), [(482, 160), (wide, 3 * 98 - 2), (wide, 96), (488, 488)])


if __name__ == "__main__":
    if not TOOLS.exists():
        print("nbclient is not installed: ./run deps docs")
        sys.exit(77)
    if pathlib.Path(sys.prefix) != TOOLS.parents[1]:
        os.execv(TOOLS, [TOOLS, *sys.argv])
    del sys.argv[1:]
    unittest.main()
