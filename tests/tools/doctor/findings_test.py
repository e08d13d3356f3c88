#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every finding that is not "ok" has a row in docs/doctor.md, a test where it fires
and one where it is silent (TEST(RdmaSmallMtu, Fires…) and TEST(RdmaSmallMtu, IsSilent…)).
"""
import pathlib
import re
import sys


def ids(root):
    """Returns the ids that some check gives a severity."""
    text = "".join(f.read_text() for f in sorted((root / "tools/doctor").glob("*.cc")))
    return sorted(set(re.findall(r'\.id = "([a-z_.]+)",\s*\.severity', text))
                  | set(re.findall(r'finding\.id = "([a-z_.]+)"', text)))


def problems(root):
    tests = "".join(f.read_text() for f in sorted((root / "tests/tools/doctor").glob("*.cc")))
    page = (root / "docs/doctor.md").read_text()
    for file in sorted((root / "tools/doctor").glob("*.cc")):
        if not file.read_text().isascii():
            yield f"{file.name} is not ASCII: findings also go to terminals and pipes that know nothing else"
    for name in ids(root):
        suite = "".join(word.capitalize() for word in re.split(r"[._]", name))
        if f"| `{name}` |" not in page:
            yield f"{name} has no row in docs/doctor.md"
        for behaviour in ("Fires", "IsSilent"):
            if f"TEST({suite}, {behaviour}" not in tests:
                yield f"{name} has no TEST({suite}, {behaviour}…)"


if __name__ == "__main__":
    top = pathlib.Path(sys.argv[1])
    if len(ids(top)) < 20:
        sys.exit("findings_test does not see the findings any more")
    found = list(problems(top))
    print("\n".join(found) or "every finding is tested and described")
    sys.exit(1 if found else 0)
