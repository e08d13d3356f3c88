#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site builds without a warning, and its pages have the expected contents. Usage: site_test.py SOURCE BUILD"""
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
TOOLS = ROOT / "build/docs-tools/bin/python"  # not resolved: a link to the system's interpreter


def build(folder, *options, **environment):
    return subprocess.run(
        [TOOLS, "-m", "mkdocs", "build", "--strict", "--site-dir", folder, *options],
        cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(BUILD / "python"), "NO_MKDOCS_2_WARNING": "1", **environment},
    )


def words(page):
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = pathlib.Path(folder.name)
        cls.built = build(folder.name)

    def test_no_warning(self):
        said = self.built.stdout + self.built.stderr
        self.assertEqual((self.built.returncode, [line for line in said.splitlines() if "WARNING" in line]), (0, []), said)

    def test_a_page_that_is_in_no_nav_fails_it(self):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder, "mkdocs.yml")
            hooks = ROOT / "docs/site/hooks.py"
            config.write_text(f"INHERIT: {ROOT}/mkdocs.yml\ndocs_dir: {ROOT}/docs\nhooks: [{hooks}]\nnav: [README.md]\n")
            built = build(f"{folder}/site", "--config-file", str(config))
        self.assertNotEqual(built.returncode, 0)
        self.assertRegex(built.stderr, r'not included in the "nav"[^W]*quick_start\.md')

    def test_a_page_for_each_and_nothing_from_elsewhere(self):
        pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
        for page in pages:
            if page.parts[0] != "site":
                made = page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")
                self.assertTrue((self.site / made).is_file(), made)
        for page in self.site.rglob("*.html"):
            loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text())
            self.assertEqual(loaded, [], page)

    def test_the_reference_has_signatures_and_docstrings(self):
        datasets = words(self.site / "reference/dataset.html")
        self.assertIn("batch(batch_size, drop_remainder=False, num_parallel_calls=None", datasets)
        self.assertIn("Produces the file names that match one pattern or several", datasets)
        headings = re.findall(r"^(Dataset\.\w+)", datasets, re.M)  # of the base classes, and of the class itself
        for name in ("range", "from_generator", "map", "interleave", "window", "shuffle", "as_numpy_iterator"):
            self.assertEqual(headings.count(f"Dataset.{name}"), 1, headings)
        self.assertNotIn("Sources", datasets)
        self.assertIn("matmul(a: Expr, b: Expr) -> Expr", words(self.site / "reference/ops.html"))
        self.assertIn("One of OFF, DYNAMIC, FILE, DATA, FILE_OR_DATA, HINT.", words(self.site / "reference/service.html"))

    def test_the_sketches_for_kubernetes_are_yaml(self):
        page = (ROOT / "docs/operating.md").read_text()
        for block in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S):
            script = "import sys, yaml; print([o['kind'] for o in yaml.safe_load_all(sys.stdin)])"
            read = subprocess.run([TOOLS, "-c", script], input=block, capture_output=True, text=True)
            self.assertEqual(read.stdout.strip(), "['Service', 'StatefulSet', 'Deployment']", read.stderr)

    def test_links_out_of_the_pages(self):
        plain = (self.site / "plugins.html").read_text()
        self.assertNotIn('href="../examples/plugin"', plain)
        self.assertIn("<code>examples/plugin</code>", plain)
        with tempfile.TemporaryDirectory() as folder:
            published = build(folder, PENSTOCK_REPOSITORY="https://example.org/penstock")
            self.assertEqual(published.returncode, 0, published.stderr)
            self.assertIn(
                'href="https://example.org/penstock/blob/HEAD/examples/plugin"',
                pathlib.Path(folder, "plugins.html").read_text(),
            )


if __name__ == "__main__":
    if not TOOLS.exists():
        print("the site's tools are not installed: ./run deps docs")
        sys.exit(77)
    unittest.main()
