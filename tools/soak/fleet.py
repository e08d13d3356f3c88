# SPDX-License-Identifier: Apache-2.0
"""A dispatcher, workers and trainers as processes, and the system's resources that they hold."""
import contextlib
import os
import pathlib
import queue
import re
import signal
import subprocess
import threading
import time
from typing import NamedTuple


# Thread pools that gRPC grows and shrinks by itself.
GRPC_THREADS = {"default-executo", "resolver-execut", "grpc_global_tim", "event_engine", "timer_manager",
                "nexting_thread", "grpcpp_sync_ser"}
MOST_OF_GRPC = 12  # threads by which gRPC's pools may grow
SEGMENT = "memfd:penstock"


class Failed(Exception):
    """Ends the run, with the reason."""


class Gone(Failed):
    """A process has ended by itself or was killed."""


def still_there(paths, read):
    """Returns read(path) for each path that still exists. Threads and descriptors may end after their listing."""
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(read(path))
    return found


class Process:
    """One process. Callers can wait for its output line by line."""

    def __init__(self, folder, name, *command, environment=None):
        self.name = name
        self.errors = folder / f"{name}.err"
        with open(self.errors, "ab") as errors:
            self.child = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=errors, text=True,
                                          errors="backslashreplace",
                                          env={**os.environ, **(environment or {})})
        self.lines = queue.Queue()
        threading.Thread(target=self._listen, args=(self.child.stdout,), daemon=True).start()

    def _listen(self, out):
        for line in out:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def hear(self, seconds):
        """Returns its next line. Failed after `seconds` without one, Gone if the process has ended."""
        try:
            line = self.lines.get(timeout=max(0, seconds))
        except queue.Empty:
            raise Failed(f"{self.name} hangs: no answer for {seconds:.0f} s; pid {self.child.pid}")
        if line is None:
            raise Gone(f"{self.name} ended unexpectedly:\n{self.errors.read_text()[-2000:]}")
        return line

    def hear_match(self, pattern, seconds=30):
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.hear(deadline - time.monotonic()))):
            pass
        return found

    def say(self, order):
        try:
            self.child.stdin.write(order + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Gone(f"{self.name} ended unexpectedly:\n{self.errors.read_text()[-2000:]}")

    def ask(self, order, seconds=30):
        self.say(order)
        return self.hear(seconds)

    def expect(self, order, *answers, seconds=30):
        """Returns its answer. Failed if that is not one of `answers`."""
        if (answer := self.ask(order, seconds)) not in answers:
            raise Failed(f"{self.name} answered '{order}' with '{answer}'")
        return answer

    def pause(self):
        """Sends SIGSTOP. Returns when the process has stopped."""
        self.child.send_signal(signal.SIGSTOP)
        os.waitpid(self.child.pid, os.WUNTRACED)

    def go_on(self):
        self.child.send_signal(signal.SIGCONT)

    def kill(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def holds(self):
        """Counts the process's system resources: mapped shared segments and their descriptors, other descriptors, its own
        threads and gRPC's."""
        proc = pathlib.Path("/proc") / str(self.child.pid)
        names = [name.strip() for name in still_there((proc / "task").glob("*/comm"), pathlib.Path.read_text)]
        of_grpc = sum(name in GRPC_THREADS for name in names)
        files = still_there((proc / "fd").iterdir(), os.readlink)
        of_segments = sum(SEGMENT in file for file in files)
        return {"descriptors": len(files) - of_segments, "descriptors of segments": of_segments,
                "threads": len(names) - of_grpc, "threads of gRPC": of_grpc,
                "segments": (proc / "maps").read_text().count(SEGMENT)}

    def memory(self):
        """Returns its resident memory in MiB, private and in shared segments; empty if the process is ending."""
        status = (pathlib.Path("/proc") / str(self.child.pid) / "status").read_text()
        found = dict(re.findall(r"^(RssAnon|RssShmem):\s+(\d+) kB", status, re.MULTILINE))
        return {"MiB of its own": int(found["RssAnon"]) / 1024, "MiB shared": int(found["RssShmem"]) / 1024} if found else {}


class Fleet:
    """The processes of one run. The end of the `with` block kills them all.

    With a `network` (network.py) each process has its own host of the same name; the dispatchers share one, unless
    start_dispatcher() names another.
    `plugin` is for workers and trainers, `worker_flags` only for workers. `environments` has further variables by role; "operator"
    is the role of commands.
    """

    def __init__(self, binaries, folder, protocol, client_timeout_ms, window=16, penstock=None, plugin=None,
                 dispatcher_flags=(), worker_flags=(), network=None, environments=None, worker_timeout_ms=2000,
                 heartbeat_interval_ms=200):
        self.binaries, self.folder, self.protocol = binaries, folder, protocol
        self.window, self.network, self.environments = window, network, environments or {}
        self.penstock = penstock or binaries / "penstock"
        self.plugin = ["--plugin", plugin] if plugin else []
        self.worker_flags = worker_flags
        self.starting = threading.Lock()  # jobs start their processes in their own threads
        self.started = {}
        self.all = []
        self.dispatcher_flags = ["--client-timeout-ms", client_timeout_ms, "--worker-timeout-ms", worker_timeout_ms,
                                 "--heartbeat-interval-ms", heartbeat_interval_ms, *dispatcher_flags]
        self.port = 0
        self.start_dispatcher()
        host, self.port = self.dispatcher.hear_match(r"ready at (\S+):(\d+)").groups()
        self.service = f"grpc://{host}:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.all:
            process.kill()

    def start(self, role, *command, host=None, listens=False):
        """Starts the next process of that role, on `host` or on a host of its own. `listens`: it gets that address."""
        with self.starting:
            number = self.started.get(role, 0)
            self.started[role] = number + 1
            name = f"{role}-{number}"
            if self.network is not None:
                self._remove_hosts_of_the_dead()
                address = self.network.add(host or name)
                command = self.network.inside(host or name, *command, *(["--host", address] if listens else []))
            process = Process(self.folder, name, *command, environment=self.environments.get(role))
            self.all.append(process)
            return process

    def _remove_hosts_of_the_dead(self):
        for process in self.all:
            if process.child.poll() is not None and process.name in self.network.hosts:
                self.network.remove(process.name)

    def use(self, binaries):
        """Starts further processes from this folder of programs, as after an upgrade."""
        self.binaries, self.penstock = binaries, binaries / "penstock"

    def start_dispatcher(self, host="dispatcher"):
        """Starts a dispatcher, at the port of the previous one. It may not be ready yet."""
        self.dispatcher = self.start("dispatcher", self.penstock, "dispatcher", "--port", self.port,
                                     *self.dispatcher_flags, host=host, listens=True)

    def begin_worker(self, port=0):
        """Starts a worker. It may not be ready yet."""
        worker = self.start("worker", self.penstock, "worker", "--dispatcher-address", self.service,
                            "--port", port, "--data-transfer-protocol", self.protocol, *self.plugin,
                            *self.worker_flags, listens=True)
        worker.port = 0  # unknown yet
        return worker

    def ask_dispatcher(self, *command):
        """Returns the output of that `penstock` command; Failed if it fails."""
        words = [str(word) for word in (self.penstock, *command, "--dispatcher-address", self.service)]
        done = subprocess.run(self.network.inside("dispatcher", *words) if self.network else words,
                              capture_output=True, text=True, check=False,
                              env={**os.environ, **self.environments.get("operator", {})})
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return done.stdout

    def start_worker(self):
        worker = self.begin_worker()
        worker.port = worker.hear_match(r"worker ready at \S+:(\d+)")[1]
        return worker

    def start_trainer(self, *options, commit_every=25, service=None):
        return self.start("trainer", self.binaries / "soak_trainer", "--service", service or self.service,
                          "--protocol", self.protocol, "--window", self.window,
                          "--commit-every", commit_every, *self.plugin, *options)


class Read(NamedTuple):
    """An element in a trainer's log: the trainer has read it."""
    number: int
    partition: int
    placement: int
    index: int
    round: int
    at: int  # microseconds since 1970


def history(log):
    """Returns the elements in a trainer's history, from its log: [Read]."""
    reads = []
    for line in log.read_text().splitlines():
        if line.startswith("restored "):
            del reads[int(line.split()[1]):]
        elif not line.startswith("committed "):
            reads.append(Read(*map(int, line.split())))
    return reads


def kept(log):
    """Returns the history of a trainer that was killed and has not been restarted: the elements that it had committed."""
    commits = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("committed ")]
    return history(log)[:commits[-1] if commits else 0]


def differences(logs, count, passes=1):
    """Returns (lost, doubled) for the numbers 0 … count - 1 in the logs. Each should come once per pass."""
    return differences_of([read for log in logs for read in history(log)], count, passes)


def differences_of(reads, count, passes=1):
    """Returns the same as differences(), for these elements."""
    times = [0] * count
    for read in reads:
        times[read.number] += 1
    return sum(max(0, passes - n) for n in times), sum(max(0, n - passes) for n in times)


def shared_memory():
    """Returns the names in /dev/shm."""
    return set(os.listdir("/dev/shm"))
