#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include against the layers: a folder may include what its row names
and what those rows name in turn (docs/architecture.md, "Folders").

Four things are checked: that each penstock_component() declares only what the
table allows, that each #include "…" is allowed, that folders of one component
include each other in one direction only, and that Protobuf and gRPC headers do
not cross folders through another header.
"""
import collections
import functools
import pathlib
import re
import sys
import tempfile

# folder -> folders whose headers it may include, in addition to its own. All may include headers of OPEN.
OPEN = {"include", "control/env", "control/observe", "control/sync"}
ALLOWED = {
    "include": set(),
    "control/sync": {"include"},
    "control/proto": {"control/protocol"},
    "control/env": {"include", "control/settings"},
    "control/observe": {"include"},
    "control/settings": {"include"},
    "control/protocol": {"include"},
    "control/state": {"control/protocol", "control/proto"},
    "control/journal": {"control/state", "control/proto", "control/etcd"},
    "control/policy": {"control/state", "control/protocol"},
    "control/stub": {"control/protocol"},
    "control/rpc": {"control/proto", "control/stub"},
    "control/etcd": {"control/rpc"},
    "control/leadership": {"control/etcd"},
    "control/dispatcher": {"control/policy", "control/journal", "control/leadership", "control/rpc"},
    "dataplane/element": {"include"},
    "dataplane/memory": {"include", "dataplane/element"},
    "dataplane/dataset/image": {"dataplane/memory"},
    "dataplane/dataset/expr": {"dataplane/dataset/image", "dataplane/memory"},
    "dataplane/dataset/graph": {"dataplane/dataset/expr", "control/proto"},
    "dataplane/dataset/engine": {"dataplane/dataset/graph"},
    "dataplane/dataset/sources": {"dataplane/dataset/engine"},
    "dataplane/dataset/transforms": {"dataplane/dataset/sources"},
    "dataplane/dataset": {"dataplane/dataset/transforms"},
    "dataplane/python": {"dataplane/dataset"},
    "dataplane/transfer": {"dataplane/element", "dataplane/memory", "control/rpc", "control/protocol"},
    "dataplane/worker": {"dataplane/dataset", "dataplane/python", "dataplane/transfer", "control/stub"},
    "dataplane/client": {"dataplane/dataset", "dataplane/transfer", "control/settings", "control/stub"},
    "dataplane/replica": {"dataplane/client"},
    "cuda": {"dataplane/memory", "dataplane/replica"},
}
RPC_SIDE = {"control/rpc", "control/journal", "control/dispatcher"}  # whose private headers may
RPC = re.compile(r"(\.pb\.h|grpcpp/|google/protobuf)")
LAYERED = ("include", "control", "dataplane", "cuda")
# Files that list what the folders below their own define, in a table.
TABLES = {"control/env/scheme_files.cc", "dataplane/transfer/builtin_transports.cc",
          "dataplane/transfer/builtin_transports_without_rpc.cc"}
FREE = {"tools", "python", "bench", "tests", "examples"}  # may include everything


def closure(folder):
    seen, queue = set(), [folder]
    while queue:
        for other in ALLOWED[queue.pop()] | OPEN:
            if other not in seen and other != folder:
                seen.add(other)
                queue.append(other)
    return seen | {folder}


def folder_of(path):
    """Returns the component that a path from the root belongs to; None outside of them."""
    if path.startswith("penstock/"):
        return "include"
    matches = [f for f in ALLOWED if path == f or path.startswith(f + "/")]
    return max(matches, key=len) if matches else None


def includes(root):
    """Yields the path, the line number and the included path of each #include in a component."""
    for file in sorted(f for part in LAYERED for f in (root / part).rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix not in {".h", ".cc", ".cu", ".cuh"} or folder_of(path) is None:
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if found := re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line):
                yield path, number, found.group(1)


def check_includes(root):
    problems = []
    for path, number, included in includes(root):
        folder, target = folder_of(path), folder_of(included)
        first = included.split("/")[0]
        if target is None and first in FREE and (root / first).is_dir():
            problems.append(f"{path}:{number}: {folder} may not include {included}")
        elif target is not None and target not in closure(folder):
            problems.append(f"{path}:{number}: {folder} may not include {target} ({included})")
        elif path.endswith(".h") and folder != target and folder not in RPC_SIDE and brings_rpc(root, included):
            problems.append(f"{path}:{number}: brings Protobuf or gRPC into a header of {folder}")
        elif folder == "include" and RPC.search(included):
            problems.append(f"{path}:{number}: no Protobuf or gRPC header in the public API")
    return problems


def check_cycles(root):
    """Checks the sub-folders of components: no folder includes another that includes it, directly or indirectly."""
    places, uses = [], collections.defaultdict(set)
    for path, number, included in includes(root):
        here, there = (name.rpartition("/")[0] for name in (path, included))
        if path not in TABLES and here != there and folder_of(path) == folder_of(included):
            places.append((f"{path}:{number}", here, there))
            uses[here].add(there)

    def reached(folder):
        seen, queue = set(), [folder]
        while queue:
            new = uses[queue.pop()] - seen
            seen |= new
            queue += new
        return seen

    return [f"{place}: {there} includes {here} too" for place, here, there in places if here in reached(there)]


@functools.cache
def brings_rpc(root, header):
    """Returns whether one of our headers includes Protobuf or gRPC, directly or indirectly."""
    file = root / header
    if folder_of(header) is None or not file.is_file():
        return False
    included = re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', file.read_text(), re.M)
    return any(RPC.search(name) or brings_rpc(root, name) for name in included)


def check_targets(root):
    problems = []
    for file in sorted(f for part in LAYERED for f in (root / part).rglob("CMakeLists.txt")):
        if folder_of(file.parent.relative_to(root).as_posix()) is None:
            continue
        for call in re.findall(r"penstock_component\(([^)]*)\)", file.read_text()):
            words = call.split()
            folder, declared = folder_of(words[0]), []
            if "DEPS" in words:
                for word in words[words.index("DEPS") + 1:]:
                    if word in {"SOURCES", "LIBS"}:
                        break
                    if not word.startswith("$"):  # a list that depends on an option
                        declared.append(word)
            for dep in declared:
                if folder_of(dep) not in closure(folder):
                    problems.append(f"{file.relative_to(root)}: {words[0]} may not depend on {dep}")
    return problems


def self_test():
    """Makes a tree with four wrong lines and a cycle; the checks must report each."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for part in ("dataplane/worker/sub", "dataplane/transfer/grpc", "include/penstock", "tests"):
            (root / part).mkdir(parents=True)
        (root / "dataplane/transfer/grpc/b.h").write_text("#include <grpcpp/grpcpp.h>\n")
        (root / "include/penstock/c.h").write_text("#include <google/protobuf/message.h>\n")
        (root / "dataplane/worker/a.h").write_text(
            '#include "dataplane/client/session/session.h"\n#include "tests/x.h"\n'
            '#include "dataplane/transfer/grpc/b.h"\n#include "dataplane/dataset/graph/graph.h"\n')
        (root / "dataplane/worker/d.h").write_text('#include "dataplane/worker/sub/e.h"\n')
        (root / "dataplane/worker/sub/e.h").write_text('#include "dataplane/worker/a.h"\n')
        found = [p.split(":")[0:2] for p in check_includes(root)]
        cycle = [p.split(":")[0] for p in check_cycles(root)]
    worker, public = "dataplane/worker/a.h", "include/penstock/c.h"
    if sorted(found) != [[worker, "1"], [worker, "2"], [worker, "3"], [public, "1"]]:
        sys.exit(f"layers_test does not see what it should: {found}")
    if sorted(cycle) != ["dataplane/worker/d.h", "dataplane/worker/sub/e.h"]:
        sys.exit(f"layers_test does not see the cycle: {cycle}")


if __name__ == "__main__":
    self_test()
    top = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = check_includes(top) + check_cycles(top) + check_targets(top)
    print("\n".join(found) or "every include keeps to the layers")
    sys.exit(1 if found else 0)
