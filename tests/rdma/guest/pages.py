# SPDX-License-Identifier: Apache-2.0
"""One virtual machine with two NUMA nodes: the pages of our memory, as the kernel reports them for each process."""
import collections
import contextlib
import os
import pathlib
import re
import subprocess
import threading
import unittest

import machine
import workers

NODES = pathlib.Path("/sys/devices/system/node")
SHMEM_ENABLED = pathlib.Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
PAGE, HUGE_PAGE = 4 << 10, 2 << 20  # bytes
WORDS, HELD = 3 << 18, 4  # elements of 6 MiB, each in a slot of 8 MiB
BYTES = HELD * WORDS * 8


def setUpModule():
    # It moves pages to the node of a process that reads them, away from where we placed them.
    pathlib.Path("/proc/sys/kernel/numa_balancing").write_text("0")


@contextlib.contextmanager
def on_node(node):
    """Processes started inside the block run on the processors of that node."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [int(path.name[3:]) for path in (NODES / f"node{node}").glob("cpu[0-9]*")])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def mappings(pid):
    """Returns (bytes present, bytes of them in huge pages) of each mapping of a shared segment: smaps."""
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()
    return [tuple(int(re.search(rf"^{name}: +(\d+) kB$", one, re.MULTILINE)[1]) << 10
                  for name in ("Rss", "ShmemPmdMapped"))
            for one in re.split(r"^(?=[0-9a-f]+-)", text, flags=re.MULTILINE) if "/memfd:penstock" in one]


def bytes_by_node(pid):
    """Returns the bytes by node of the process's shared segments, as far as it has them mapped: numa_maps."""
    nodes = collections.Counter()
    for line in pathlib.Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        if "/memfd:penstock" in line:
            for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                nodes[int(node)] += int(pages) * PAGE
    return dict(nodes)


def kernel_count(name):
    return int(re.search(rf"^{name} (\d+)$", pathlib.Path("/proc/vmstat").read_text(), re.MULTILINE)[1])


class Library(unittest.TestCase):
    """The tests of dataplane/memory that are skipped on a machine with one node or without huge pages."""

    def test_none_is_skipped(self):
        said = machine.run(machine.PENSTOCK / "tests/memory_pages_tests")
        print(said[-2000:])
        self.assertRegex(said, r"\[  PASSED  \] [1-9]\d* tests?\.")
        self.assertNotIn("SKIPPED", said)


class Segments(unittest.TestCase):
    """A trainer that reads over `shm` on one node, from a worker on the other."""

    def hold_elements(self, node):
        """Starts a trainer on `node` that holds elements; returns its process id and the worker's."""
        with on_node(1 - node):
            cluster = workers.Workers("localhost", 1)
        self.addCleanup(cluster.stop)
        command = [machine.PENSTOCK / "tests/soak_trainer", "--service", cluster.service, "--protocol", "shm"]
        with on_node(node):
            trainer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(trainer.communicate)  # ends it
        killer = threading.Timer(machine.BOUND, trainer.kill)
        killer.start()
        self.addCleanup(killer.cancel)
        trainer.stdin.write(f"open job 100 {WORDS} /dev/null /tmp/state\n" + "next\n" * HELD)
        trainer.stdin.flush()
        self.assertEqual([trainer.stdout.readline().split(" ")[0].strip() for _ in range(1 + HELD)],
                         ["open"] + ["element"] * HELD)
        return trainer.pid, cluster.workers[0].child.pid

    def check_huge_pages(self, setting, counter):
        """Fails the test unless bodies are in huge pages in both processes and the kernel's `counter` counts them."""
        self.addCleanup(SHMEM_ENABLED.write_text, "never")
        SHMEM_ENABLED.write_text(setting)
        before = kernel_count(counter)
        for pid in self.hold_elements(0):

            def are_huge():
                segments = mappings(pid)
                print(f"{setting}: {segments}", flush=True)
                # Both ends of a body share a huge page with the heads of slots.
                return (all(present - huge < 2 * HUGE_PAGE for present, huge in segments)
                        and sum(huge for _, huge in segments) >= BYTES // 2)

            machine.wait_for("bodies in huge pages", are_huge)  # more segments may be about to be made
        self.assertGreaterEqual(kernel_count(counter) - before, BYTES // HUGE_PAGE)

    def test_bodies_are_in_huge_pages_without_a_setting(self):
        self.check_huge_pages("never", "thp_collapse_alloc")

    def test_bodies_are_in_huge_pages_from_the_first_touch_where_that_is_advised(self):
        self.check_huge_pages("advise", "thp_file_alloc")

    def test_slots_lie_on_the_node_of_the_trainer(self):
        for node in (0, 1):
            trainer, _ = self.hold_elements(node)
            nodes = bytes_by_node(trainer)
            print(f"trainer on node {node}: {nodes}", flush=True)
            self.assertEqual(list(nodes), [node])
            self.assertGreaterEqual(nodes[node], BYTES)


if __name__ == "__main__":
    machine.main()
