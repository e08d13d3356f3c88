#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces this process by a peer, in the environment that `./run deps peers` made for it.

    start.py NAME        runs the peer, which speaks the protocol of wire.py
    start.py --list      prints the names of the peers

"penstock-python" is Penstock itself and has no such environment. It runs in the interpreter PENSTOCK_PEER_PYTHON (default:
python3), with PYTHONPATH and then build/release/python on its module path.
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUR_MODULE = HERE.parent.parent / "build" / "release" / "python"
ENVIRONMENTS = pathlib.Path(os.environ.get("PENSTOCK_PEERS", HERE.parent.parent / "build" / "peers"))

# glibc returns freed blocks of 32 MiB and more to the kernel, so each such element is faulted in page by page at both
# ends. These variables make glibc keep them.
KEEP_LARGE_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
                     "MALLOC_TOP_PAD_": str(1 << 28)}


@dataclasses.dataclass(frozen=True)
class Launch:
    environment: str  # "" for our own build
    program: str
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = dataclasses.field(default_factory=dict)


PEERS = {
    "penstock-python": Launch("", "penstock_service.py"),
    "penstock-python-tcp": Launch("", "penstock_service.py", ("--protocol", "tcp")),
    "tfdata": Launch("tfdata", "tfdata_service.py"),
    "tfdata-tuned": Launch("tfdata", "tfdata_service.py", ("--variant", "malloc tuned"), KEEP_LARGE_BLOCKS),
    "torch": Launch("torch", "torch_dataloader.py"),
    "webdataset": Launch("torch", "webdataset_loader.py"),
    "grain": Launch("grain", "grain_loader.py"),
    "ray": Launch("ray", "ray_data.py"),
}


def with_our_module() -> dict[str, str]:
    """Returns variables with which `import penstock` finds the module built here, after PYTHONPATH."""
    paths = [os.environ.get("PYTHONPATH", ""), str(OUR_MODULE)]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def imports_ours(python: str, variables: dict[str, str]) -> bool:
    done = subprocess.run([python, "-c", "import penstock"], env={**os.environ, **variables}, capture_output=True)
    return done.returncode == 0


def main() -> int:
    name = sys.argv[1] if len(sys.argv) == 2 else "--help"
    if name == "--list":
        print(*PEERS, sep="\n")
        return 0
    if name not in PEERS:
        print(json.dumps({"error": f"unknown peer '{name}'; known peers: {', '.join(PEERS)}"}))
        return 2
    peer = PEERS[name]
    variables = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1",
                 **peer.variables}
    python = str(ENVIRONMENTS / peer.environment / "bin" / "python")
    installed = os.path.exists(python)
    how = f"./run deps peers {peer.environment}"
    if not peer.environment:
        python = shutil.which(os.environ.get("PENSTOCK_PEER_PYTHON", "python3")) or ""
        variables |= with_our_module()
        installed = bool(python) and imports_ours(python, variables)
        how = "./run build release penstock_python, and set PENSTOCK_PEER_PYTHON to an interpreter with NumPy"
    if not installed:
        print(json.dumps({"error": f"{name} is not installed; run {how}"}))
        return 1
    os.execve(python, [python, str(HERE / peer.program), *peer.arguments], {**os.environ, **variables})


if __name__ == "__main__":
    sys.exit(main())
