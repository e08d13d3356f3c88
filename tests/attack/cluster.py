# SPDX-License-Identifier: Apache-2.0
"""The attacked cluster: real servers with every port, honest trainers that count each element, and what the servers hold."""
import collections
import os
import pathlib
import re
import resource
import subprocess
import sys
import threading
import time
import urllib.request

import program  # noqa: F401: finds fleet
from fleet import Failed, Fleet, differences_of, history
from ports import KINDS, kind_of, ports_of
from principals import PAGES, Principals

MIB = 1 << 20
SETTLE = 15  # seconds within which descriptors are back
TICK = 0.1  # seconds; how finely read elements are counted
BUDGET = 64 * MIB  # of a worker's elements on their way, of its pipelines, and of its windows; of registered definitions


class Honest(threading.Thread):
    """A trainer that reads one job after the other. Each job's elements are counted when it has ended."""

    def __init__(self, fleet, protocol, count, words, step_us):
        super().__init__(daemon=True)
        self.fleet, self.protocol, self.count, self.words = fleet, protocol, count, words
        self.trainer = fleet.start("trainer", fleet.binaries / "soak_trainer", "--service", fleet.service,
                                   "--protocol", protocol, "--window", 16, "--commit-every", 500, "--step-us", step_us)
        self.jobs = 0  # read to the end, exactly
        self.read = collections.Counter()  # elements of finished jobs, by TICK since 1970
        self.error = None
        self._over = threading.Event()
        self.start()

    def run(self):
        try:
            while not self._over.is_set():
                self._read_a_job()
        except Failed as error:
            self.error = error
        except Exception as error:  # pylint: disable=broad-except
            self.error = Failed(f"honest trainer over {self.protocol}: {error!r}")

    def _read_a_job(self):
        name = f"honest-{self.protocol}-{self.jobs}"
        log, state = (self.fleet.folder / f"{name}.{end}" for end in ("log", "state"))
        self.trainer.expect(f"open {name} {self.count} {self.words} {log} {state}", "open", seconds=120)
        self.trainer.expect("all", "end", seconds=300)
        self.trainer.expect("close", "closed", seconds=60)
        reads = history(log)
        lost, doubled = differences_of(reads, self.count)
        if lost or doubled:
            raise Failed(f"{name}: lost={lost} doubled={doubled}")
        self.read.update(int(one.at / 1e6 / TICK) for one in reads)
        for path in self.fleet.folder.glob(f"{name}.*"):
            path.unlink()
        self.fleet.ask_dispatcher("jobs", "remove", name)
        self.jobs += 1

    def check(self):
        if self.error is not None:
            raise self.error

    def between(self, begin, end):
        """Returns the elements read between two times, in seconds since 1970. Counts finished jobs only."""
        return sum(self.read[tick] for tick in range(int(begin / TICK), int(end / TICK)))

    def finish(self):
        """Ends after the present job. Failed if it is not exact."""
        self._over.set()
        self.join(timeout=300)
        self.check()
        if self.is_alive():
            raise Failed(f"the honest job over {self.protocol} does not end")


class Pages(threading.Thread):
    """Asks each status page for /metrics, again and again. `worst`: the seconds of the slowest answer."""

    def __init__(self, ports, patience):
        super().__init__(daemon=True)
        self.ports, self.patience, self.worst, self.error = ports, patience, 0.0, None
        self._over = threading.Event()
        self.start()

    def run(self):
        while not self._over.wait(0.2):
            for port in self.ports:
                begun = time.monotonic()
                why = self._ask(port, begun + self.patience)
                self.worst = max(self.worst, time.monotonic() - begun)
                if why and not self.error:
                    self.error = f"{port.owner} did not answer /metrics within {self.patience} s: {why}"

    def _ask(self, port, until):
        """Asks until there is an answer: a port with many connections closes the oldest. Returns the last error after `until`."""
        request = urllib.request.Request(f"http://{port.address}/metrics", headers={"Authorization": f"Bearer {PAGES}"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=self.patience) as page:
                    page.read()
                return None
            except OSError as error:
                if time.monotonic() > until:
                    return error

    def finish(self):
        self._over.set()
        self.join()


class Server:
    """A server's memory, descriptors and CPU time."""

    def __init__(self, process):
        self.process, self.name = process, process.name
        self.proc = pathlib.Path("/proc") / str(process.child.pid)

    def check_alive(self):
        if (code := self.process.child.poll()) is not None:
            raise Failed(f"{self.name} ended with {code}: {self.process.errors.read_text()[-2000:]}")

    def _mib(self, what):
        found = re.search(rf"^{what}:\s+(\d+) kB", (self.proc / "status").read_text(), re.MULTILINE)
        self.check_alive()
        return int(found[1]) / 1024 if found else 0

    def resident(self):
        return self._mib("VmRSS")

    def peak(self):
        """Returns the most resident memory since reset_peak(), in MiB."""
        return self._mib("VmHWM")

    def reset_peak(self):
        self.check_alive()
        (self.proc / "clear_refs").write_text("5")

    def descriptors(self):
        return sum(1 for _ in (self.proc / "fd").iterdir())

    def cpu_s(self):
        fields = (self.proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


class Cluster:
    """A dispatcher and two workers with all their ports, which know who may do what. The end of the `with` block ends them."""

    def __init__(self, args, folder):
        worker = ["--metrics-port", 0, "--memory-budget-bytes", BUDGET, "--ram-budget-bytes", BUDGET,
                  "--buffer-budget-bytes", BUDGET, "--cross-trainer-cache-size-bytes", BUDGET]
        if args.ucx:
            worker += ["--ucx-lanes", "tcp"]
        self.folder = folder
        principals = Principals(args.bin / "penstock", folder)
        # The bombs use the package of the build.
        self.attackers = {**os.environ, "PYTHONPATH": str(args.bin.parent / "python"), **principals.environments["attacker"]}
        self.fleet = Fleet(args.bin, folder, protocol="", client_timeout_ms=10_000, worker_flags=worker,
                           dispatcher_flags=["--metrics-port", 0, "--auth-file", principals.auth_file,
                                             "--max-dataset-bytes-per-namespace", BUDGET],
                           environments=principals.environments)
        for _ in range(2):
            self.fleet.start_worker()
        for process in self.fleet.all:
            _, hard = resource.prlimit(process.child.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(process.child.pid, resource.RLIMIT_NOFILE, (min(args.descriptors, hard), hard))
        self.servers = [Server(process) for process in self.fleet.all]
        self.ports = [port for server in self.servers for port in ports_of(server.name, server.process.child.pid)]
        self._check_kinds(args.ucx)

    def _check_kinds(self, ucx):
        """Failed if a kind of port is missing: then its attacks would attack nothing."""
        expected = {"dispatcher": {"grpc", "pages"}, "worker": set(KINDS) - (set() if ucx else {"ucx"})}
        for server in self.servers:
            found = {port.kind for port in self.ports if port.owner == server.name}
            if found != (wanted := expected[server.name.split("-")[0]]):
                raise Failed(f"{server.name} listens for {sorted(found)}; expected {sorted(wanted)}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.fleet.__exit__()

    def check_alive(self):
        for server in self.servers:
            server.check_alive()

    def await_service(self, what):
        """Waits until each port speaks its protocol with new clients. Failed after SETTLE seconds."""
        until = time.monotonic() + SETTLE
        for port in self.ports:
            while kind_of(port.address) != port.kind:
                self.check_alive()
                if time.monotonic() > until:
                    raise Failed(f"{SETTLE} s after {what} the {port.kind} port {port.address} of {port.owner} serves no client")
                time.sleep(0.2)

    def await_descriptors(self, most, what):
        """Waits until no server has more descriptors than `most` says: {name: count}. Failed after SETTLE seconds."""
        until = time.monotonic() + SETTLE
        while over := {name: count for name, count in self.descriptors().items() if count > most[name]}:
            self.check_alive()
            if time.monotonic() > until:
                raise Failed(f"{SETTLE} s after {what} servers have more descriptors than before: {over}; before: {most}")
            time.sleep(0.2)

    def descriptors(self):
        return {server.name: server.descriptors() for server in self.servers}


class Attacker:
    """An attack on one port, as a process with the lowest claim to the CPU."""

    def __init__(self, attack, port, seed, seconds, folder, environment):
        self.port, self.seed, self.folder = port, seed, folder
        program_file = pathlib.Path(__file__).parent / "attacker.py"
        self.command = [sys.executable, str(program_file), attack.name, port.owner, port.kind, port.address,
                        "--seed", str(seed), "--seconds", str(seconds), "--folder", str(folder)]
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.patience = seconds + 300

    def report(self):
        """Returns its last line. Failed if it did not end well: then the suite itself has a fault."""
        try:
            out, errors = self.child.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise Failed(f"{' '.join(self.command)} hangs")
        if self.child.returncode != 0:
            raise Failed(f"{' '.join(self.command)}: {errors[-2000:]}")
        return out.splitlines()[-1]
