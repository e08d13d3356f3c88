# SPDX-License-Identifier: Apache-2.0
"""The resource use of processes and the load of the machine, from /proc."""
from __future__ import annotations

import contextlib
import os
import pathlib

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

Roles = dict[str, list[int]]


def cpu_seconds(pid: int) -> float:
    """Returns the process's user and system seconds so far, over all threads; 0 if it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Returns the process's resident bytes. Shared pages count in full; 0 if it has ended."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def busy_seconds() -> float:
    """Returns the seconds that all cores together were busy since boot. Waiting for a disk does not count."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS


def children(pid: int) -> list[int]:
    """Returns the ids of all descendants of a process."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
                for child in pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                    found += [int(child), *children(int(child))]
    return found


def by_role(roles: Roles, of) -> dict[str, float]:
    return {role: sum(map(of, pids)) for role, pids in roles.items()}
