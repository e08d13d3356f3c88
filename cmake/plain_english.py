#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds wording that makes a reader stumble, in comments and pages: `plain_english.py [FILE…]`.

Each tell below has a sentence as it was and as it should be. Without arguments all files under FINISHED are read; those
are the ones that were rewritten so far, and tests/plain_english_test.py holds them to it.
"""
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
FINISHED = ("include/", "control/", "dataplane/", "cuda/", "tools/", "bench/", "python/", "docs/", "cmake/", "examples/", "tests/",
            "README.md", "CONTRIBUTING.md", "CHANGELOG.md")


class Tell(NamedTuple):
    pattern: str  # in one sentence; ^ is its start
    before: str
    after: str


TELLS = [
    Tell(r"\bbehind\b", "The value behind a restart.", "The value after a restart."),
    Tell(r"\banew\b", "It is shuffled anew in each pass.", "It is shuffled again in each pass."),
    Tell(r"\bso many\b", "Keeps so many elements.", "Keeps this many elements."),
    Tell(r"\bwho(m)?ever\b", "Whoever comes late gets FailedPrecondition.", "A late reader gets FailedPrecondition."),
    Tell(r"\bof late\b", "Spins unless it failed of late.", "Spins unless the last spins failed."),
    Tell(r"\blet(s|ting)? go of\b", "Letting go of it returns the slot.", "Destroying it returns the slot."),
    Tell(r"^(That|Those) (of|that|who|which|in|with|on)\b", "Those that nobody needs.", "Entries that no reader needs."),
    Tell(r"^The same (of|with|where)\b", "The same of a file.", "Reads a file in the same way."),
    Tell(r"^(Of|As|Whether|By) (a|an|the|all|each|which|what|those|this|that|it)\b",
         "Of all readers of the job.", "The sum over all readers of the job."),
    Tell(r"^What (is|was|are|were|came|comes|became|it|they|a|an|the|this|each|nobody|who)\b",
         "What a worker has sent.", "The elements that a worker has sent."),
    Tell(r"\b(is|are|was|were) (said|told) (so|to|in|by|why|what|that|of)\b",
         "Who is late is told so.", "A late reader gets an error."),
    Tell(r"\b(lies|lie|stands|stand) (in|at|before|on|beside|there|where)\b",
         "The body lies in the slot.", "The body is in the slot."),
    Tell(r"\bin words\b", "FailedPrecondition in words.", "FailedPrecondition with the reason."),
    Tell(r"\b(of|for|to|by|with|from|what) who\b", "The token of who asks for a page.", "The token of the client that asks for a page."),
    Tell(r"\bthat (is|are) none\b", "A mode that is none.", "An unknown mode."),
    Tell(r"^The (most|least) (?!of\b)\w+s\b", "The most bytes of a frame.", "The maximum size of a frame in bytes."),
    Tell(r"\bfrom outside\b", "The number comes from outside.", "The number is not trusted."),
    Tell(r"^(As|Otherwise as) [A-Z]\w+(::\w+)?\(\)", "As Next(), but OutOfRange at the end.", "Same as Next(), but OutOfRange at the end."),
    Tell(r"\b(last|no longer) heard\b(?! (from|of)\b)", "Counts from when it was last heard.", "Counts from when it was last heard from."),
    Tell(r"\b(lost|loses?|losing) (n?or|and) doubl|\bdoubl(ed|es?) (n?or|and) los",
         "Nothing is lost or doubled.", "Nothing is lost or duplicated."),
    Tell(r"\b(everything|all|session|placements?)( \w+){0,2} in force\b",
         "The session is in force.", "The session is open."),
    Tell(r"\bone of this many\b", "One of this many calls is timed.", "One in this many calls is timed."),
    Tell(r"\b(wheel|hello|message|file|package)s? (has|have) (at most |about )?\d\S* (MB|GB|KiB|MiB|GiB|bytes)\b",
         "The wheel has 22 MB.", "The wheel is 22 MB."),
    Tell(r"\bgiv(es?|en|ing) up (a|the|its|such a) (peer|worker|link)\b(?!')",
         "UCX gives up such a peer.", "UCX gives up on such a peer."),
    Tell(r"\bas far as ((both|it|this|that) )?(is|are) known\b",
         "The reader has nothing, as far as is known.", "The reader has nothing, according to the reports."),
    Tell(r"\b(whose \w+|which|that) not all\b", "A row that not all have received.", "A row that some lack."),
    Tell(r"\bin work\b", "Elements ready or in work.", "Elements ready or in progress."),
    Tell(r"\band what (that|this|these|it|they) may\b", "It may include the engine and what that may.",
         "It may include the engine and whatever that may include."),
    Tell(r"^As [a-z]\w*\.\w", "As np.minimum.", "Like np.minimum."),
    Tell(r"\b(links?|has|have|holds?|gets?|uses?|needs?) nothing of (?!(its|their|your) own\b)",
         "Your library links nothing of Penstock.", "Your library does not link Penstock."),
    Tell(r"\bbest (made|placed|written)\b", "Returns where an element is best made.", "Returns the best pool for making an element."),
    Tell(r"\bthe reason of (a|an|the|its|this|that)\b", "The reason of the link's end.", "The reason for the link's end."),
    Tell(r"\bdiffers? by much\b", "If they differ by much, ask.", "If they differ a lot, ask."),
    Tell(r"\bin vain\b", "Partitions would wait in vain.", "Partitions would wait forever."),
    Tell(r"\bbusy without a pause\b", "It is busy without a pause.", "It is continuously busy."),
    Tell(r"\badds? up in\b", "Floats add up in double.", "Floats are summed in double."),
]
LICENCE = re.compile(r"\s*(//|#)?\s*SPDX-License-Identifier:")


def prose_of(path, text):
    """The comments of C++, comments and docstrings of Python, or a page without its code: each sentence, with its line."""
    lines = text.split("\n")
    if path.endswith(".md"):
        inside = False
        for i, line in enumerate(lines):
            fence = line.lstrip().startswith("```")
            inside ^= fence
            if inside or fence or line.startswith(("    ", "#")):  # headings are no sentences
                lines[i] = ""
    elif path.endswith(".py"):
        lines = ["" if LICENCE.match(line) else line for line in python_prose(text)]
    else:
        lines = ["" if LICENCE.match(line) else (re.search(r"(?<![:\"])//+ ?(.*)", line) or [None, ""])[1] for line in lines]
    paragraph, begin = "", 0
    for number, line in enumerate([*lines, ""], 1):
        starts = re.match(r"\s*([-*|]|\d+\.)\s|   ", line)  # a list, a table, a heading, sample code
        if paragraph and (not line.strip() or starts):
            yield from ((begin, sentence) for sentence in sentences_of(paragraph))
            paragraph = ""
        if line.strip():
            begin = begin if paragraph else number
            paragraph += " " + line.strip()


def python_prose(text):
    """The lines of a Python file, with only its comments and docstrings."""
    lines = [""] * (text.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = token.string.lstrip("# ")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            docstring = ast.get_docstring(node).split("\n")
            begin = node.body[0].lineno - 1
            lines[begin:begin + len(docstring)] = docstring
    return lines


def sentences_of(paragraph):
    plain = re.sub(r"`[^`]*`", "`", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)).strip()
    for sentence in re.split(r"(?<=[.!?:;])\s+|\s*\|\s*", plain):
        yield re.sub(r"^[-*]+\s*", "", sentence)


def tells_in(path, text):
    """(line of the paragraph, tell, sentence) of each found."""
    return [(line, tell, sentence) for line, sentence in prose_of(path, text)
            for tell in TELLS if re.search(tell.pattern, sentence, re.I if tell.pattern[0] != "^" else 0)]


def licences_in(text):
    """Lines of licences with more after the licence: a comment that was wrapped together with it."""
    return [line for line in text.split("\n")
            if LICENCE.match(line) and not re.fullmatch(r"(//|#) SPDX-License-Identifier: [\w.-]+", line)]


def tracked(*patterns):
    files = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return files.stdout.split()


def finished_files():
    return [name for name in tracked("*.h", "*.cc", "*.cu", "*.py", "*.md") if name.startswith(FINISHED)]


def licensed_files():
    return tracked("*.h", "*.cc", "*.cu", "*.proto", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt")


def main(names):
    found = 0
    for name in names or licensed_files():
        for line in licences_in((ROOT / name).read_text()):
            print(f'{name}: "{line}"\n    begin the comment on the line after the licence')
            found += 1
    for name in names or finished_files():
        for line, tell, sentence in tells_in(name, (ROOT / name).read_text()):
            print(f'{name}:{line}: "{sentence}"\n    like "{tell.before}"; better: "{tell.after}"')
            found += 1
    return found > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
