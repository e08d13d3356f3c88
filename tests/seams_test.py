#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that time, waiting, threads and randomness enter the service by one seam each
(docs/architecture.md, "Seams"). A row of SEAMS names the files of a seam and the raw names that only
these files may use.
"""
import pathlib
import re
import sys
import tempfile

PARTS = ("control", "dataplane", "cuda")

GATE = "dataplane/transfer/gate.h"  # for transports outside the tree too; on one thread it never waits
JOIN = "dataplane/client/job_connection.cc"  # joins a job on a thread of std::async
# seam -> (its files, and those that need the raw names; the raw names, as a regular expression)
SEAMS = {
    "control/sync/clock.h": (
        {"control/sync/clock.h", "control/sync/clock.cc", "control/sync/mutex.cc"},
        r"absl::Now\b|GetCurrentTimeNanos|\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\bgettimeofday\b"
        r"|CLOCK_(MONOTONIC|REALTIME|BOOTTIME)|(?<![\w.>:])(std::|::)?time\((NULL|nullptr|0|&\w+)\)",
    ),
    "control/sync/condition.h": (
        {"control/sync/condition.h", "control/sync/condition.cc", GATE, JOIN},
        r"\bcondition_variable(_any)?\b|std::(future|promise|packaged_task|latch|barrier|counting_semaphore)\b"
        r"|\.wait(_for|_until)?\(",
    ),
    "control/sync/thread.h": (
        {"control/sync/thread.h", "control/sync/thread.cc", GATE, JOIN},
        r"std::(jthread|thread|this_thread|async)\b|absl::SleepFor|\b(nanosleep|usleep|pthread_create)\b",
    ),
    "control/sync/mutex.h": (
        {"control/sync/mutex.h", "control/sync/mutex.cc", GATE},
        r"std::(shared_|recursive_|timed_|recursive_timed_|shared_timed_)?mutex\b|absl::Mutex\b|\bpthread_mutex",
    ),
    "control/sync/random.h": (
        {"control/sync/random.h", "control/sync/random.cc"},
        r"\brandom_device\b|\bgetrandom\b|\bgetentropy\b|absl::BitGen|\bs?rand\(\)",
    ),
}
SEAMS = {seam: (files, re.compile(raw)) for seam, (files, raw) in SEAMS.items()}


def sources(root):
    """Yields the path from the root and the lines, without comments and strings, of each file."""
    for file in sorted(f for part in PARTS for f in (root / part).rglob("*")):
        if file.suffix in {".h", ".cc", ".cu", ".cuh"}:
            yield file.relative_to(root).as_posix(), map(code, file.read_text().splitlines())


def code(line):
    return re.sub(r'"(\\.|[^"\\])*"|//.*', lambda found: '""' if found[0][0] == '"' else "", line)


def check_seams(root):
    problems = []
    for path, lines in sources(root):
        for number, line in enumerate(lines, 1):
            for seam, (files, raw) in SEAMS.items():
                if path not in files and (found := raw.search(line)):
                    problems.append(f"{path}:{number}: {found[0]} is used without {seam}")
    return problems


def self_test():
    """Makes a file with one violation of each seam; the check must report each."""
    violations = {
        "control/sync/clock.h": "auto now = std::chrono::steady_clock::now();",
        "control/sync/condition.h": "changed_.wait_for(lock, kPause);",
        "control/sync/thread.h": "std::thread thread([] {});",
        "control/sync/mutex.h": "std::mutex mu_;",
        "control/sync/random.h": "std::random_device device;",
    }
    good = '// std::mutex\nauto text = "std::thread";\nint64_t Now();\n'
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "control").mkdir()
        (root / "control/a.cc").write_text(good + "\n".join(violations.values()) + "\n")
        found = [(problem.split(":")[1], problem.split()[-1]) for problem in check_seams(root)]
    if found != [(str(number), seam) for number, seam in enumerate(violations, 4)]:
        sys.exit(f"seams_test does not see what it should: {found}")


if __name__ == "__main__":
    self_test()
    top = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = check_seams(top)
    print("\n".join(found) or "everything enters by its seam")
    sys.exit(1 if found else 0)
