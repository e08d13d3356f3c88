# SPDX-License-Identifier: Apache-2.0
"""Processes that end while they read, in every possible way: at once, with their own exit status, and with nothing
left."""
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from sanitizer import MAY_FORK_BESIDE_THREADS

EVENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \w+ ")  # the log lines of servers and clients
BOUND = 100  # seconds; only a broken program comes near it

HEAD = """
import os, pathlib, signal, sys, threading
import penstock as ps
service = ps.data.service

def say_processes():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1]
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if int(parent) == os.getpid():
            print("child", process)
    sys.stdout.flush()
"""

# Each makes `ds`, which has no end: its elements are 0, 1, 2…
SOURCES = {
    "in this process": "ds = ps.Dataset.counter().map(lambda x: x).prefetch(8)\n",
    "a function in processes of its own": (
        "ds = ps.Dataset.counter().map(ps.py_function(lambda x: x if x < 0 else x + 0, ps.TensorSpec([], 'int64')))\n"
        "ds = ds.prefetch(8)\n"
    ),
    "a generator in a process of its own": (
        "import itertools\n"
        "ds = ps.Dataset.from_generator(itertools.count, output_signature=ps.TensorSpec([], 'int64'))\n"
    ),
    "servers in this process": (
        "dispatcher = service.DispatchServer()\n"
        "worker = service.WorkerServer(service.WorkerConfig(dispatcher._address))\n"
        "ds = ps.Dataset.counter().distribute('parallel_epochs', dispatcher.target)\n"
    ),
}

# How the process ends, and its exit status.
WAYS = {
    "the program's end": ("it = iter(ds)\nkept = [next(it), next(it).numpy()]\nsay_processes()\n", 0),
    "sys.exit in the loop": ("for x in ds:\n  if int(x) == 20:\n    say_processes()\n    sys.exit(5)\n", 5),
    "an exception in the loop": (
        "for x in ds.as_numpy_iterator():\n  if x == 20:\n    say_processes()\n    raise ValueError('ours')\n",
        1,
    ),
    "a daemon thread that reads": (
        "read = threading.Event()\n"
        "def read_all():\n"
        "  for x in ds: read.set()\n"
        "threading.Thread(target=read_all, daemon=True).start()\n"
        "read.wait()\n"
        "say_processes()\n"
        "sys.exit(5)\n",
        5,
    ),
    "a thread that the process waits for": (
        "def read_some():\n"
        "  for x in ds:\n"
        "    if int(x) == 50: break\n"
        "  say_processes()\n"
        "threading.Thread(target=read_some).start()\n",
        0,
    ),
    "a signal between or in calls": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "it = iter(ds)\n"
        "next(it)\n"
        "say_processes()\n"
        "threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGTERM)).start()\n"
        "for x in it: pass\n",
        5,
    ),
}
if MAY_FORK_BESIDE_THREADS:
    WAYS["children of fork that end as programs do"] = (
        "it = iter(ds)\n"
        "kept = next(it)\n"
        "for way in (sys.exit, os._exit):\n"
        "  child = os.fork()\n"
        "  if child == 0: way(3)\n"
        "  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\n"
        "  before = int(next(it))\n"
        "  assert [int(next(it)) - before for _ in range(50)] == list(range(1, 51))\n"
        "say_processes()\n"
        "sys.exit(5)\n",
        5,
    )


def ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def children_in(said):
    return [int(line.split()[1]) for line in said.splitlines() if line.startswith("child ")]


class Leaving(unittest.TestCase):
    def await_end_of(self, pids):
        deadline = time.monotonic() + BOUND
        while not all(map(ended, pids)):
            self.assertLess(time.monotonic(), deadline, "a process of a function is left behind")
            time.sleep(0.01)

    def leave(self, source, program, status):
        done = subprocess.run(
            [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", HEAD + SOURCES[source] + program],
            env=dict(os.environ), capture_output=True, text=True, timeout=BOUND,
        )
        said = [line for line in done.stderr.splitlines() if not EVENT.match(line)]
        self.assertEqual(done.returncode, status, said)
        if status == 1:
            self.assertEqual((said[0], said[-1]), ("Traceback (most recent call last):", "ValueError: ours"))
        else:
            self.assertEqual(said, [])
        children = children_in(done.stdout)
        self.assertEqual(bool(children), "its own" in source)
        self.await_end_of(children)

    def test_every_way_from_every_source(self):
        for source, way in itertools.product(SOURCES, WAYS):
            with self.subTest(source=source, way=way):
                self.leave(source, *WAYS[way])

    def test_killed_without_a_chance_to_say_so(self):
        for source in SOURCES:
            with self.subTest(source=source):
                program = "it = iter(ds)\nnext(it)\nsay_processes()\nprint('ready', flush=True)\nfor x in it: pass\n"
                with subprocess.Popen(
                    [sys.executable, "-c", HEAD + SOURCES[source] + program], env=dict(os.environ),
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                ) as process:
                    lines = iter(process.stdout.readline, "")  # ends with the process
                    said = "".join(itertools.takewhile(lambda line: line != "ready\n", lines))
                    process.kill()
                    self.assertEqual(process.wait(BOUND), -signal.SIGKILL)
                self.await_end_of(children_in(said))

    def test_a_function_that_outlives_the_program_says_nothing(self):
        outlives = (
            "def outlive(x):\n"
            "  import os, signal, time\n"
            "  program = os.getppid()\n"
            "  os.kill(program, signal.SIGKILL)\n"
            "  while os.getppid() == program: time.sleep(0.001)\n"
            "  return x\n"
            "next(iter(ps.Dataset.counter().map(ps.py_function(outlive, ps.TensorSpec([], 'int64')))))\n"
        )
        done = subprocess.run([sys.executable, "-c", HEAD + outlives], capture_output=True, text=True, timeout=BOUND)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGKILL, ""))  # run() has waited for its end too

    def test_ctrl_c_in_a_call_that_waits(self):
        waits = (
            "dispatcher = service.DispatchServer()\n"  # has no worker
            "ds = ps.Dataset.counter().distribute('parallel_epochs', dispatcher.target)\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()\n"
            "next(iter(ds))\n"
        )
        done = subprocess.run([sys.executable, "-c", HEAD + waits], capture_output=True, text=True, timeout=BOUND)
        self.assertEqual(done.returncode, -signal.SIGINT)  # as Python ends after KeyboardInterrupt
        self.assertEqual(done.stderr.splitlines()[-1], "KeyboardInterrupt")


if __name__ == "__main__":
    unittest.main()
