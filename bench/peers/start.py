#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Becomes a peer, in the environment that `./run deps peers` made for it.

    start.py NAME        speaks wire.py
    start.py --list      the names
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENTS = pathlib.Path(os.environ.get("PENSTOCK_PEERS", HERE.parent.parent / "build" / "peers"))

# glibc gives blocks of 32 MiB and more back to the kernel when they are freed, so that each such element is
# faulted in page by page at both ends. These keep them.
KEEP_LARGE_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
                     "MALLOC_TOP_PAD_": str(1 << 28)}


@dataclasses.dataclass(frozen=True)
class Launch:
    environment: str
    program: str
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = dataclasses.field(default_factory=dict)


PEERS = {
    "tfdata": Launch("tfdata", "tfdata_service.py"),
    "tfdata-tuned": Launch("tfdata", "tfdata_service.py", ("--variant", "malloc tuned"), KEEP_LARGE_BLOCKS),
    "torch": Launch("torch", "torch_dataloader.py"),
    "webdataset": Launch("torch", "webdataset_loader.py"),
    "grain": Launch("grain", "grain_loader.py"),
    "ray": Launch("ray", "ray_data.py"),
}


def main() -> int:
    name = sys.argv[1] if len(sys.argv) == 2 else "--help"
    if name == "--list":
        print(*PEERS, sep="\n")
        return 0
    if name not in PEERS:
        print(json.dumps({"error": f"there is no peer '{name}'; there are {', '.join(PEERS)}"}))
        return 2
    peer = PEERS[name]
    python = ENVIRONMENTS / peer.environment / "bin" / "python"
    if not python.exists():
        print(json.dumps({"error": f"{name} is not installed; ./run deps peers {peer.environment}"}))
        return 1
    quiet = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(python, [str(python), str(HERE / peer.program), *peer.arguments],
              {**os.environ, **quiet, **peer.variables})


if __name__ == "__main__":
    sys.exit(main())
