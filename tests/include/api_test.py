#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public API of C++ is the one that api.txt records: see docs/compatibility.md.

    tests/include/api_test.py            compares
    tests/include/api_test.py --write    records what is there now

One line per declaration of include/penstock: types, bases, members with their types, functions with their arguments,
values of enumerations. Order in the headers does not matter.
"""
import pathlib
import subprocess
import sys
import unittest

import clang.cindex
from clang.cindex import AccessSpecifier, CursorKind

ROOT = pathlib.Path(__file__).parents[2]
HEADERS = ROOT / "include" / "penstock"
RECORD = pathlib.Path(__file__).with_name("api.txt")
TYPES = (CursorKind.CLASS_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_TEMPLATE, CursorKind.ENUM_DECL)
FUNCTIONS = (
    CursorKind.FUNCTION_DECL,
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
    CursorKind.FUNCTION_TEMPLATE,
)
VALUES = (CursorKind.FIELD_DECL, CursorKind.VAR_DECL)
ALIASES = (CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_TEMPLATE_DECL)
IMPLEMENTATION = ("internal", "_internal")  # namespaces whose names end so are not part of the API


def system_includes():
    """The include folders of the compiler, which libclang does not know by itself."""
    asked = subprocess.run(["c++", "-E", "-x", "c++", "-", "-v"], input="", capture_output=True, text=True, check=True)
    lines = asked.stderr.split("#include <...> search starts here:")[1].split("End of search list")[0]
    return [f"-isystem{line.strip()}" for line in lines.strip().split("\n")]


def parse():
    text = "".join(f'#include "penstock/{header.name}"\n' for header in sorted(HEADERS.glob("*.h")))
    unit = clang.cindex.Index.create().parse(
        "api.cc",
        args=["-std=c++20", f"-I{ROOT / 'include'}", "-fparse-all-comments", *system_includes()],
        unsaved_files=[("api.cc", text)],
        options=clang.cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES,
    )
    errors = [str(problem) for problem in unit.diagnostics if problem.severity >= clang.cindex.Diagnostic.Error]
    if errors:
        raise RuntimeError("\n".join(errors[:5]))
    return unit.cursor


def is_public(cursor):
    here = cursor.location.file is not None and pathlib.Path(cursor.location.file.name).resolve().parent == HEADERS
    hidden = cursor.access_specifier in (AccessSpecifier.PRIVATE, AccessSpecifier.PROTECTED)
    return here and not hidden and cursor.kind != CursorKind.FRIEND_DECL


def signature(cursor):
    constant = " const" if cursor.is_const_method() else ""
    fixed = "static " if cursor.is_static_method() else ""
    return f"{fixed}{cursor.displayname}{constant} -> {cursor.result_type.spelling}"


def described(cursor, scope):
    """Lines of `cursor` and of what it contains."""
    inside = f"{scope}{cursor.spelling}::"
    if cursor.kind == CursorKind.NAMESPACE:
        if not cursor.spelling.endswith(IMPLEMENTATION):
            for child in cursor.get_children():
                yield from described(child, inside)
    elif not is_public(cursor):
        return
    elif cursor.kind in TYPES:
        if not cursor.is_definition():
            return
        yield f"{scope}{cursor.displayname}"
        for child in cursor.get_children():
            if child.kind == CursorKind.CXX_BASE_SPECIFIER:
                yield f"{inside} base {child.type.spelling}"
            elif child.kind == CursorKind.ENUM_CONSTANT_DECL:
                yield f"{inside}{child.spelling} = {child.enum_value}"
            else:
                yield from described(child, inside)
    elif cursor.kind in FUNCTIONS:
        yield f"{scope}{signature(cursor)}"
    elif cursor.kind in VALUES:
        yield f"{scope}{cursor.spelling}: {cursor.type.spelling}"
    elif cursor.kind in ALIASES:
        yield f"{scope}{cursor.spelling} = {cursor.underlying_typedef_type.spelling}"


def api():
    return sorted({line for cursor in parse().get_children() for line in described(cursor, "")
                   if line.startswith("penstock::")})


class Api(unittest.TestCase):
    maxDiff = None

    def test_is_the_one_that_is_recorded(self):
        recorded, now = set(RECORD.read_text().splitlines()), set(api())
        gone, new = sorted(recorded - now), sorted(now - recorded)
        self.assertFalse(
            gone or new,
            "The public API has changed. A declaration may go only after a release in which it was deprecated "
            "(docs/compatibility.md); then run tests/include/api_test.py --write.\n"
            + "\n".join([f"gone: {line}" for line in gone] + [f"new:  {line}" for line in new]),
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("\n".join(api()) + "\n")
    else:
        unittest.main()
