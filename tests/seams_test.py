#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that time, waiting, threads, randomness, files and sockets enter the service by one seam each, and that a
process has no other variables than those that are listed (docs/architecture.md, "Seams").

A row of SEAMS names the files of a seam and the raw names that only these files may use. The table
"What a process has once" of that page names the variables, by file and name.
"""
import pathlib
import re
import sys
import tempfile

PARTS = ("control", "dataplane", "cuda")

TABLE = re.compile(r"^\| `([^`]+\.(?:h|cc))` \| ([^|]+) \| [^|]+ \|$", re.M)  # rows of "What a process has once"
# A variable that lives as long as the process or a thread. Constants and references to metrics do not count.
STATIC = re.compile(r"^\s*(?:static |thread_local )+(?!constexpr |const (?!.*shared_ptr))[^=;{(]*?\b(\w+)"
                    r"(?: GUARDED_BY\(\w+\))?\s*(?:=|;|\{)")
GLOBAL = re.compile(r"^(?!(?:const|constexpr|using|return|class|struct|enum|union|namespace|template|extern|static|inline"
                    r"|friend|typedef)\b)[A-Za-z_][\w:<>*&, ]*[\s*&>](\w+)(?:\{.*\}| = .*)?;$")
METRIC = re.compile(r"static (Counters?|Gauge|Histogram)\b")

GATE = "dataplane/transfer/gate.h"  # for transports outside the tree too; on one thread it never waits
TOML = "control/settings/toml_file.cc"  # control/env depends on the settings
PAGEMAP = "dataplane/memory/slot_segment.cc"  # asks the kernel about this process's memory
# seam -> (its files, and those that need the raw names; the raw names, as a regular expression)
SEAMS = {
    "control/sync/clock.h": (
        {"control/sync/clock.h", "control/sync/clock.cc", "control/sync/mutex.cc"},
        r"absl::Now\b|GetCurrentTimeNanos|\b(steady|system|high_resolution)_clock\b|\bclock_gettime\b|\bgettimeofday\b"
        r"|CLOCK_(MONOTONIC|REALTIME|BOOTTIME)|(?<![\w.>:])(std::|::)?time\((NULL|nullptr|0|&\w+)\)",
    ),
    "control/sync/condition.h": (
        {"control/sync/condition.h", "control/sync/condition.cc", GATE},
        r"\bcondition_variable(_any)?\b|std::(future|promise|packaged_task|latch|barrier|counting_semaphore)\b"
        r"|\.wait(_for|_until)?\(",
    ),
    "control/sync/thread.h": (
        {"control/sync/thread.h", "control/sync/thread.cc", GATE},
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
    "control/env/disk.h": (
        {"control/env/local_disk.cc", "control/env/local_files.cc", "control/env/path_lookup.cc", TOML, PAGEMAP},
        r"\b[io]?fstream\b|\bopen\([^)]*\bO_|(?<![\w.>])(f?open(at|dir)|fopen|f(data)?sync|unlink|rename|mkdir|flock|mkstemp)\("
        r"|\bdirectory_iterator\b|filesystem::(copy|create|remove|rename|resize)\w*\(",
    ),
    "dataplane/transfer/transport.h": (
        {"dataplane/transfer/tcp/socket.cc", "dataplane/transfer/shm/socket.cc", "control/observe/page_server.cc",
         "control/dispatcher/server/probe.cc", "control/env/remote/guard.cc",
         "control/rpc/accept_loop.cc"},
        r"(?<![\w.>])(socket|connect|bind|listen|accept4|getaddrinfo)\(",
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


def check_process(root):
    """Compares the variables of the process and of threads with the page's table."""
    page = (root / "docs/architecture.md").read_text()
    listed = {path: set(re.findall(r"`(\w+)`", names)) for path, names in TABLE.findall(page)}
    problems = []
    for path, lines in sources(root):
        there = set()
        for line in lines:
            found = STATIC.match(line) or GLOBAL.match(line)
            if found and not METRIC.search(line):
                there.add(found[1])
        if there != listed.pop(path, set()):
            problems.append(f"{path}: what the process has once is {sorted(there)}, see docs/architecture.md")
    return problems + [f"{path}: does not exist, but is listed in docs/architecture.md" for path in listed]


def self_test():
    """Makes a file with one violation of each seam, and one with variables; the checks must report each."""
    violations = {
        "control/sync/clock.h": "auto now = std::chrono::steady_clock::now();",
        "control/sync/condition.h": "changed_.wait_for(lock, kPause);",
        "control/sync/thread.h": "std::thread thread([] {});",
        "control/sync/mutex.h": "std::mutex mu_;",
        "control/sync/random.h": "std::random_device device;",
        "control/env/disk.h": "rename(a, b);",
        "dataplane/transfer/transport.h": "const int fd = ::socket(AF_INET, SOCK_STREAM, 0);",
    }
    good = '// std::mutex\nauto text = "std::thread";\nint64_t Now();\n'
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "control").mkdir()
        (root / "control/a.cc").write_text(good + "\n".join(violations.values()) + "\n")
        found = [(problem.split(":")[1], problem.split()[-1]) for problem in check_seams(root)]
    if found != [(str(number), seam) for number, seam in enumerate(violations, 4)]:
        sys.exit(f"seams_test does not see what it should: {found}")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "control").mkdir()
        (root / "docs").mkdir()
        (root / "docs/architecture.md").write_text("| `control/a.cc` | `listed` | why |\n| `control/b.cc` | `gone` | why |\n")
        (root / "control/a.cc").write_text(
            "static int listed = 0;\nstatic Counter& metric = Get();\nstatic const int constant = 1;\n"
            "static int Function(int i) {\n  static std::set<int>& hidden = *new std::set<int>;\n"
            "thread_local int of_thread;\nstd::atomic<int> global{0};\n")
        found = check_process(root)
    if len(found) != 2 or "['global', 'hidden', 'listed', 'of_thread']" not in found[0] or "control/b.cc" not in found[1]:
        sys.exit(f"seams_test does not see what it should: {found}")


if __name__ == "__main__":
    self_test()
    top = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = check_seams(top) + check_process(top)
    print("\n".join(found) or "everything enters by its seam")
    sys.exit(1 if found else 0)
