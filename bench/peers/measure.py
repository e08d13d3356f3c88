# SPDX-License-Identifier: Apache-2.0
"""What processes used and what the machine did meanwhile, from /proc."""
from __future__ import annotations

import contextlib
import os
import pathlib

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

Roles = dict[str, list[int]]


def cpu_seconds(pid: int) -> float:
    """User and system seconds so far, all threads; 0 once it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Pages that it shares count whole; 0 once it is gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def busy_seconds() -> float:
    """Of all cores together since boot, but for idling and waiting for a disk."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS


def children(pid: int) -> list[int]:
    """Of a process and its children, all the way down."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
                for child in pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                    found += [int(child), *children(int(child))]
    return found


def by_role(roles: Roles, of) -> dict[str, float]:
    return {role: sum(map(of, pids)) for role, pids in roles.items()}
