#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the stubs of the extension module, python/penstock/_core/*.pyi, from the module itself: its docstrings have
the types of the arguments. tests/python/typing_test.py checks that the stubs are up to date.

    PYTHONPATH=build/release/python python3 python/core/write_stubs.py
"""
import inspect
import pathlib
import re
import types

from penstock import _core

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "penstock" / "_core"
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by python/core/write_stubs.py; do not edit.
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Optional, Tuple

from penstock.dtypes import DType
'''
SIGNATURE = re.compile(r"^(?:\d+\. )?\w*\((.*)\) -> (.+)$")
NAMED = {
    "function": "Callable[..., Any]",
    "handle": "Any",
    "object": "Any",
    "capsule": "Any",
    "Spec": "Any",
    "Shape": "Any",
    "dict": "dict[Any, Any]",
    "list": "list[Any]",
    "tuple": "Tuple[Any, ...]",
}


def written_type(text, taken):
    """Returns a type of a pybind11 docstring as an annotation; `taken`: the type is an argument's."""
    text = text.replace("penstock._core.ops.", "").replace("penstock._core.", "").replace("penstock::", "")
    text = re.sub(r"\bList\b", "Sequence" if taken else "list", text)
    text = re.sub(r"\b(function|handle|object|capsule|Spec|Shape)\b", lambda found: NAMED[found[0]], text)
    if text in NAMED:
        return NAMED[text]
    # A parameter for traced values also accepts arrays and numbers.
    return re.sub(r"\bExpr\b", "Any", text) if taken else text


def split(arguments):
    """Splits at the commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(arguments):
        depth += (letter in "[(<{") - (letter in "])>}")
        if letter == "," and depth == 0:
            parts.append(arguments[begin:i].strip())
            begin = i + 1
    last = arguments[begin:].strip()
    return parts + [last] if last else parts


def argument(text):
    name, _, rest = text.partition(": ")
    if not rest:
        return text  # *, or *args
    kind, equals, _ = rest.partition(" = ")
    if name == "self":
        return "self"
    return f"{name}: {written_type(kind, True)}" + (" = ..." if equals else "")


def signatures(doc):
    """Returns (arguments, result) of each overload."""
    found = []
    for line in (doc or "").splitlines():
        match = SIGNATURE.match(line)
        if match:
            arguments = [argument(part) for part in split(match[1])]
            # An argument without a name is positional.
            unnamed = [i for i, part in enumerate(arguments) if re.match(r"arg\d+:", part)]
            if unnamed:
                arguments.insert(unnamed[-1] + 1, "/")
            found.append((", ".join(arguments), written_type(match[2], False)))
    return found


def function(name, value, indent="", how=""):
    """Returns the lines of a function of the extension, or of a Python function in its module."""
    if inspect.isfunction(value):
        kinds = inspect.Parameter
        parts = []
        for i, one in enumerate(inspect.signature(value).parameters.values()):
            stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(one.kind, "")
            default = " = ..." if one.default is not kinds.empty else ""
            parts.append("self" if i == 0 and indent and not stars else f"{stars}{one.name}: Any{default}")
        return [f"{indent}def {name}({', '.join(parts)}) -> Any: ..."]
    overloads = signatures(value.__doc__)
    lines = []
    for arguments, result in overloads:
        if len(overloads) > 1:
            lines.append(f"{indent}@overload")
        if how:
            lines.append(f"{indent}@{how}")
        lines.append(f"{indent}def {name}({arguments}) -> {result}: ...")
    return lines


def class_(cls):
    members = getattr(cls, "__members__", None)
    if isinstance(members, dict):
        lines = [f"    {name}: ClassVar[{cls.__name__}]" for name in members]
        lines += ["    __members__: ClassVar[dict[str, Any]]", "    name: str", "    value: int"]
        return [f"class {cls.__name__}:", *lines, "    def __init__(self, value: int) -> None: ..."]
    lines = []
    for name, value in sorted(vars(cls).items()):
        if isinstance(value, property):
            found = signatures(value.fget.__doc__) if not inspect.isfunction(value.fget) else []
            lines += ["    @property", f"    def {name}(self) -> {found[0][1] if found else 'Any'}: ..."]
        elif isinstance(value, staticmethod):
            lines += function(name, value.__func__, "    ", "staticmethod")
        elif name in ("__hash__", "__module__", "__doc__", "__qualname__") or not callable(value):
            continue
        elif name.startswith("_pybind11") or inspect.isclass(value):
            continue
        else:
            lines += function(name, getattr(value, "__func__", value), "    ")
    return [f"class {cls.__name__}:", *(lines or ["    ..."])]


def module(of):
    lines = []
    for name, value in sorted(vars(of).items()):
        if name.startswith("__") or isinstance(value, types.ModuleType):
            continue
        lines += ["", *class_(value)] if inspect.isclass(value) else function(name, value)
    return lines


def stubs():
    """Returns the text of each stub by file name."""
    inner = module(_core.ops)
    outer = ["__version__: str", *module(_core)]
    texts = {
        "__init__.pyi": [HEAD + "\nfrom . import ops as ops\n", *outer],
        "ops.pyi": [HEAD + "\nfrom . import Expr, LeafSpec\n", *inner],
    }
    for name, lines in texts.items():
        text = "\n".join(lines) + "\n"
        if "@overload" in text:
            text = text.replace("Tuple\n", "Tuple, overload\n", 1)
        texts[name] = text
    return texts


if __name__ == "__main__":
    for name, text in stubs().items():
        (FOLDER / name).write_text(text)
