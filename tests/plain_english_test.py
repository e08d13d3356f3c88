#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the files that were rewritten to plain English, and the tells to their own examples."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "cmake"))
import plain_english  # noqa: E402


def found(name, text):
    return [sentence for _, _, sentence in plain_english.tells_in(name, text)]


class PlainEnglish(unittest.TestCase):
    def test_finished_files_have_no_tells(self):
        for name in plain_english.finished_files():
            with self.subTest(name):
                self.assertEqual(found(name, (ROOT / name).read_text()), [])

    def test_each_tell_finds_its_before_and_not_its_after(self):
        for tell in plain_english.TELLS:
            with self.subTest(tell.pattern):
                self.assertIn(tell, [each for _, each, _ in plain_english.tells_in("a.h", "// " + tell.before)])
                self.assertEqual(found("a.h", "// " + tell.after), [])

    def test_a_sentence_may_span_lines(self):
        self.assertEqual(found("a.h", "// Frees it. Those\n// that are left.\nint x;"), ["Those that are left."])

    def test_a_trailing_comment_is_a_comment(self):
        self.assertEqual(found("a.h", "int x = 0;  // so many\n"), ["so many"])

    def test_docstrings_and_comments_of_python_are_prose(self):
        text = '"""Reads\n  so many."""\nbehind = "behind"  # anew\ndef f():\n    """Those of a file."""\n'
        self.assertEqual(found("a.py", text), ["Reads so many.", "anew", "Those of a file."])

    def test_code_is_not_prose(self):
        self.assertEqual(found("a.h", "int behind = 0;\n"), [])
        self.assertEqual(found("a.md", "```\nbehind\n```\n\n    behind\n\nThe flag `behind` is set.\n"), [])

    def test_nothing_follows_a_licence_on_its_line(self):
        for name in plain_english.licensed_files():
            with self.subTest(name):
                self.assertEqual(plain_english.licences_in((ROOT / name).read_text()), [])
        joined = "// SPDX-License-Identifier: Apache-2.0 Reads a file."
        self.assertEqual(plain_english.licences_in(joined), [joined])
        self.assertEqual(plain_english.licences_in("// SPDX-License-Identifier: Apache-2.0\n// Reads a file."), [])

    def test_a_licence_is_not_part_of_a_sentence(self):
        self.assertEqual(found("a.h", "// SPDX-License-Identifier: Apache-2.0\n// Of all readers."), ["Of all readers."])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
