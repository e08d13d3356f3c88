# SPDX-License-Identifier: Apache-2.0
"""Hooks of MkDocs, in addition to mkdocs.yml: targets of links out of docs/, and the reference of the Python package."""
import logging
import pathlib
import re
import sys

from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import reference  # noqa: E402 (beside this file)

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```)", re.M | re.S)
log = logging.getLogger("mkdocs.hooks.penstock")


def on_config(config):
    config.nav.append({"Python reference": [f"reference/{page.name}.md" for page in reference.PAGES]})
    return config


def on_files(files, config):
    for page in reference.PAGES:
        text, undocumented = page.markdown()
        for name in undocumented:
            log.warning("%s has no docstring", name)
        files.append(File.generated(config, f"reference/{page.name}.md", content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Rewrites links that leave docs/: to the published tree if there is a `repo_url`, else to plain text. Warns of a link
    to a missing file."""

    def rewritten(match):
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or not page.file.abs_src_path:
            return match[0]
        path = (pathlib.Path(page.file.abs_src_path).parent / target).resolve()
        if path.is_relative_to(config.docs_dir):
            return match[0]
        if not path.exists():
            log.warning("%s: the link %s leads nowhere", page.file.src_path, target)
        if not config.repo_url:
            return text
        return f"[{text}]({config.repo_url.rstrip('/')}/blob/HEAD/{path.relative_to(ROOT)}{anchor})"

    parts = FENCED.split(markdown)
    return "".join(part if i % 2 else LINK.sub(rewritten, part) for i, part in enumerate(parts))
