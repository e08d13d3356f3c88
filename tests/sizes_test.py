#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large classes, large folders and small files are in sizes.md, each with its one reason to change. A row that is no longer
needed fails too. At most one function in a hundred is longer than LONG_FUNCTION lines."""
import collections
import pathlib
import re
import subprocess
import sys
import unittest

from cpp_outline import Outline

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
LISTED = pathlib.Path(__file__).with_name("sizes.md")
CORE = ("include/", "control/", "dataplane/", "cuda/")
CPP = (".h", ".cc", ".cu", ".cuh")
SOURCES = (*CPP, ".py")
METHODS, MEMBERS, FOLDER_FILES, FILE_LINES, LONG_FUNCTION = 30, 20, 40, 30, 36


def tracked():
    names = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if (ROOT / name).is_file()]


def large_classes(outlines):
    return {f"{path} {found.name}": f"{found.methods} methods, {found.members} members"
            for path, outline in outlines.items() for found in outline.classes
            if found.methods > METHODS or found.members > MEMBERS}


def large_folders(paths):
    files = collections.Counter(path.rpartition("/")[0] for path in paths if path.endswith(SOURCES))
    return {folder: f"{count} files" for folder, count in files.items() if count > FOLDER_FILES}


def small_files(lines):
    """`lines`: of each path. A header and its source count as one file."""
    units = collections.defaultdict(list)
    for path in lines:
        units[path.rpartition(".")[0]].append(path)
    together = {unit[0]: sum(lines[path] for path in unit) for unit in units.values()}
    return {path: f"{count} lines" for path, count in together.items() if count < FILE_LINES}


def listed(text):
    """The first cells of the tables' rows, without the marks of code."""
    return [cell.replace("`", "") for cell in re.findall(r"^\| (`[^|]*`) \|", text, re.M)]


class Sizes(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        paths = tracked()
        texts = {path: (ROOT / path).read_text() for path in paths if path.startswith(CORE) and path.endswith(CPP)}
        cls.outlines = {path: Outline(text) for path, text in texts.items()}
        cls.need_reason = {**large_classes(cls.outlines), **large_folders(paths),
                           **small_files({path: text.count("\n") for path, text in texts.items()})}

    def test_each_beyond_the_bounds_has_a_reason(self):
        have = listed(LISTED.read_text())
        self.assertEqual(len(have), len(set(have)), "a row is there twice")
        missing = {name: size for name, size in self.need_reason.items() if name not in have}
        self.assertEqual(missing, {}, f"make it smaller or larger, or give its one reason to change in {LISTED.name}")
        self.assertEqual([name for name in have if name not in self.need_reason], [], f"{LISTED.name} need not list these")

    def test_functions_are_short(self):
        functions = [(found.lines, f"{path} {found.name}") for path, outline in self.outlines.items() for found in outline.functions]
        long = sorted((function for function in functions if function[0] > LONG_FUNCTION), reverse=True)
        self.assertLessEqual(len(long), len(functions) / 100, "\n".join(f"{lines} {name}" for lines, name in long))


class WhatIsCounted(unittest.TestCase):
    def test_methods_and_members(self):
        (found, inner) = sorted(Outline("""
            template <class T>
            class CAPABILITY("lock") Box final : public Base<T, int> {
             public:
              explicit Box(std::function<void(int)> f) : f_{std::move(f)}, sizes_({1, 2}) { Use(f_); }
              Box(const Box&) = delete;
              friend class Maker;
              static constexpr int kMost = 3;
              bool operator<(const Box& other) const { return a_ < other.a_; }  // not a(member);
              virtual int Size() REQUIRES(mu_) = 0;
              using Row = std::vector<int>;

             private:
              struct Inner {
                int64_t height = 0, width = 0;
              } inner_;
              const std::function<void(int)> f_;
              std::map<int, std::pair<int, int>> sizes_ GUARDED_BY(mu_) = {{1, {2, 3}}};
              char text_[10] = "};";
              void (*call_)(int) = nullptr;
            };""").classes, key=lambda found: found.name)
        self.assertEqual((found.name, found.methods, found.members), ("Box", 3, 5))
        self.assertEqual((inner.name, inner.methods, inner.members), ("Inner", 0, 2))

    def test_lines_of_functions(self):
        outline = Outline("namespace a {\nconst int kRows[] = {1, 2};\n\nint\nF(int a,\n  int b) {\n  if (a) {\n  }\n}\n"
                          "B::B()\n    : a_{1},\n      b_(2) {\n}\n}\n")
        self.assertEqual([(found.name, found.lines) for found in outline.functions], [("F", 5), ("B", 4)])

    def test_small_files(self):
        self.assertEqual(small_files({"a/b.h": 20, "a/b.cc": 20, "a/c.h": 20, "a/d.cc": 30}), {"a/c.h": "20 lines"})

    def test_large_folders(self):
        self.assertEqual(large_folders(["a/README.md", *(f"a/{i}.cc" for i in range(41)), *(f"b/{i}.h" for i in range(40))]), {"a": "41 files"})

    def test_rows(self):
        self.assertEqual(listed("| file | reason |\n|---|---|\n| `a/b.h` `C` | x |\n| `a` | y |\n"), ["a/b.h C", "a"])


if __name__ == "__main__":
    unittest.main()
