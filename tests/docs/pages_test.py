#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ read well in a repository and on the site: each is in the site's nav, their links and those of the
READMEs lead to existing files, and a list follows an empty line, without which the site does not show it as a list."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "site" not in page.relative_to(ROOT).parts]


def prose(text):
    """Returns the text without code blocks and inline code."""
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def missing_from_nav(names, nav):
    listed = set(re.findall(r"^\s+- (\S+\.md)$", nav, re.M))
    return sorted(set(names) ^ listed)


def dead_links(page, text):
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", prose(text))
    return [target for target in targets if "://" not in target and not (page.parent / target).exists()]


def lists_without_room(text):
    """Returns the lines at which a list begins directly after a paragraph."""
    before, found = "", []
    for line in prose(text).splitlines():
        begins = re.match(r"(- |\d+\. |\| )", line)
        if begins and before and not re.match(r"(- |\d+\. |\||\s)", before):
            found.append(line)
        before = line
    return found


class Pages(unittest.TestCase):
    def test_each_is_in_the_nav(self):
        names = [str(page.relative_to(ROOT / "docs")) for page in PAGES]
        self.assertEqual(missing_from_nav(names, (ROOT / "mkdocs.yml").read_text()), [])

    def test_links_lead_to_existing_files(self):
        for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
            self.assertEqual(dead_links(page, page.read_text()), [], page)

    def test_lists_are_lists_for_every_reader(self):
        for page in PAGES:
            self.assertEqual(lists_without_room(page.read_text()), [], page)


class WhatIsNoticed(unittest.TestCase):
    def test_a_page_that_is_missing_and_one_too_many(self):
        self.assertEqual(missing_from_nav(["a.md", "b.md"], "nav:\n  - a.md\n  - G:\n      - c.md\n"), ["b.md", "c.md"])

    def test_a_dead_link(self):
        here = ROOT / "README.md"
        self.assertEqual(dead_links(here, "[a](docs) [b](no_such.md#x) [c](https://e.org) `[d](gone)`"), ["no_such.md"])

    def test_a_list_after_a_paragraph(self):
        self.assertEqual(lists_without_room("these:\n- one\n- two\n\n- three\n  more\n- four"), ["- one"])


if __name__ == "__main__":
    unittest.main()
