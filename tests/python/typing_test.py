# SPDX-License-Identifier: Apache-2.0
"""The stubs of the extension module agree with the module, and mypy finds no fault in the package."""
import ast
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import tempfile
import unittest

import penstock as ps

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUBS = ROOT / "python" / "penstock" / "_core"
sys.path.append(str(ROOT / "python" / "core"))

import write_stubs  # noqa: E402

PROGRAM = """
import numpy as np
import penstock as ps
import penstock.tf as tf

ds: ps.Dataset = ps.Dataset.range(10).map(lambda x: {"x": x * 2}).batch(4)
for batch in ds:
    total: float = float(batch["x"].numpy().sum())
iterator: ps.Iterator = iter(ds)
state: bytes = iterator.save()
dispatcher = ps.data.service.DispatchServer(ps.data.service.DispatcherConfig(port=0, work_dir="/tmp"))
far = ds.apply(ps.data.service.distribute("distributed_epoch", dispatcher.target))
image = ps.ops.resize(np.zeros((2, 2, 3), np.float32), 4, 4)
tf.data.Dataset.from_tensors(tf.constant([1])).map(tf.abs)
"""
MISTAKES = {
    "ps.Dataset.rnge(2)": "rnge",
    "ps.ops.resize(image, 4)": "width",
    "ps.ops.resize(image, '4', 4)": "incompatible type",
    "ps.data.service.WorkerConfig()": "dispatcher_address",
    "ps.data.service.DispatcherConfig(port='5050')": "incompatible type",
}


def named(source):
    """Returns every class, function and overload of a stub, with the names of its arguments."""
    found = []

    def visit(body, within):
        for node in body:
            if isinstance(node, ast.ClassDef):
                found.append((within, node.name))
                visit(node.body, node.name)
            elif isinstance(node, ast.FunctionDef):
                given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                found.append((within, node.name, [one.arg for one in given]))
            elif isinstance(node, ast.AnnAssign):
                found.append((within, node.target.id))

    visit(ast.parse(source).body, "")
    return sorted(found, key=repr)


def mypy(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *arguments],
        env={"MYPYPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )


class Stubs(unittest.TestCase):
    maxDiff = None

    def test_they_are_the_modules(self):
        for name, text in write_stubs.stubs().items():
            self.assertEqual(named((STUBS / name).read_text()), named(text), f"run python/core/write_stubs.py: {name}")

    def test_public_names_have_a_docstring(self):
        without = []
        for module in (ps, ps.data.service, ps.distribute, ps.errors):
            for name, value in vars(module).items():
                if name.startswith("_") or not getattr(value, "__module__", "").startswith("penstock"):
                    continue
                members = [(name, value)]
                if inspect.isclass(value):
                    members += [(f"{name}.{key}", one) for key, one in vars(value).items() if not key.startswith("_")]
                for key, one in members:
                    one = getattr(one, "__func__", one)
                    if (inspect.isfunction(one) or inspect.isclass(one)) and not inspect.getdoc(one):
                        without.append(f"{module.__name__}.{key}")
        self.assertEqual(without, [])


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed (pip install mypy)")
class Checked(unittest.TestCase):
    def test_the_package(self):
        done = mypy("-p", "penstock")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_program_and_its_mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.py"
            program.write_text(PROGRAM)
            done = mypy(program)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            program.write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
            wrong = mypy(program)
        lines = wrong.stdout.splitlines()
        first = len(PROGRAM.splitlines()) + 1
        for number, (mistake, said) in enumerate(MISTAKES.items(), first):
            self.assertIn(said, " ".join(line for line in lines if f":{number}:" in line), wrong.stdout + wrong.stderr)


if __name__ == "__main__":
    unittest.main()
