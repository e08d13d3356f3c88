#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of its throughput an honest trainer keeps under each attack, beside spinners that use the attackers' CPU.

Windows alternate: the attack, then as many spinners as there were attackers. Each takes the CPU time that its attacker took. If the
attacker never slept, its spinner does not sleep either, and takes what the system gives it. `attackers_cores` and `spinners_cores`
say what they got. The ratio of a pair is the trainer's throughput in the first window by that in the second. A pair is dropped if
other programs took more than --foreign cores beside it. By hand, on a quiet machine: it measures speed, so it is no test.

`servers_cores` is the CPU that the servers spend on the attackers, which other programs hardly change: their CPU in the first
window, less as much for each element that the trainer read as in the second window.

    tests/attack/throughput.py --attacks idle_connections,wrong_tokens --pairs 7
"""
import bisect
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

import program  # noqa: E402
import attack  # noqa: E402, F401: lists the attacks
from attacking import ATTACKS  # noqa: E402
from cluster import Attacker, Cluster  # noqa: E402

NEVER_SLEPT = 0.9  # of the time in which a process had a CPU or waited for one
WARM_UP = 1.0  # seconds between the start of attackers and the window
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SPINNER = """
import sys, time
share, until = float(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    begun = time.process_time()
    while time.process_time() - begun < 0.01 * share:
        pass
    time.sleep(0.01 * max(0, 1 - share))
"""


def busy_s():
    """Returns the CPU time that all programs of this machine have used, without interrupts."""
    user, nice, system = pathlib.Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / TICKS_PER_S


def children_s():
    """Returns the CPU time of this program's children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


class Window(NamedTuple):
    begin: float  # seconds since 1970, without WARM_UP
    end: float
    foreign: float  # cores of other programs
    servers_s: float  # CPU of the servers from begin - WARM_UP to end
    cores: float  # of attackers or spinners
    shares: list  # cores of a spinner in place of each


class Pair(NamedTuple):
    attacked: Window
    spun: Window


class Bench:
    def __init__(self, args, cluster, folder):
        self.args, self.cluster, self.folder = args, cluster, folder
        self.trainer = cluster.fleet.start("trainer", args.bin / "soak_trainer", "--service", cluster.fleet.service,
                                           "--protocol", args.honest, "--window", 16, "--commit-every", 500)
        self.log = folder / "honest.log"
        self.trainer.expect(f"open honest {1 << 40} {args.words} {self.log} {folder / 'honest.state'}", "open")
        self.trainer.say("all")

    def _ours_s(self):
        ours = os.times()
        return self._servers_s() + self._trainer_s() + ours.user + ours.system + children_s()

    def _servers_s(self):
        return sum(server.cpu_s() for server in self.cluster.servers)

    def _trainer_s(self):
        fields = pathlib.Path(f"/proc/{self.trainer.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def _window(self, finish):
        """Returns the Window from now + WARM_UP for --seconds, after finish() has returned the two last fields."""
        begun, busy, ours, servers = time.time(), busy_s(), self._ours_s(), self._servers_s()
        cores, shares = finish()
        took = time.time() - begun
        foreign = (busy_s() - busy - (self._ours_s() - ours)) / took
        return Window(begun + WARM_UP, begun + took, foreign, self._servers_s() - servers, cores, shares)

    def _attack(self, one, seed):
        lasts = WARM_UP + self.args.seconds
        attackers = [Attacker(one, port, seed + i, lasts, self.folder / f"attacker-{i}", self.cluster.attackers)
                     for i, port in enumerate(one.ports(self.cluster.ports))]

        def finish():
            reports = [json.loads(attacker.report()) for attacker in attackers]
            cores = [report["cpu_s"] / lasts for report in reports]
            never_slept = [report["runnable_s"] > NEVER_SLEPT * lasts for report in reports]
            return sum(cores), [1.0 if greedy else core for core, greedy in zip(cores, never_slept)]

        return self._window(finish)

    def _spin(self, shares):
        lasts = WARM_UP + self.args.seconds
        spinners = [subprocess.Popen([sys.executable, "-c", SPINNER, str(share), str(lasts)]) for share in shares]

        def finish():
            before = children_s()
            for spinner in spinners:
                spinner.wait()
            return (children_s() - before) / lasts, shares

        return self._window(finish)

    def pairs(self, one):
        """Returns --pairs Pairs of that attack."""
        found = []
        for seed in range(self.args.pairs):
            attacked = self._attack(one, 100 * seed)
            found.append(Pair(attacked, self._spin(attacked.shares)))
        return found

    def read_at(self):
        """Ends the trainer. Returns the times at which it read elements, in seconds since 1970."""
        self.trainer.kill()
        with open(self.log, "rb") as log:
            return [int(line.rsplit(b" ", 1)[1]) / 1e6 for line in log if line[:1].isdigit()]


def report(name, pairs, read, most_foreign):
    def count(begin, end):
        return bisect.bisect(read, end) - bisect.bisect(read, begin)

    def rate(window):
        return count(window.begin, window.end) / (window.end - window.begin)

    def servers_cores(pair):
        """Returns the cores that the servers spend on the attackers."""
        attacked, spun = (count(window.begin - WARM_UP, window.end) for window in pair)
        extra_s = pair.attacked.servers_s - pair.spun.servers_s * attacked / max(1, spun)
        return extra_s / (pair.attacked.end - pair.attacked.begin + WARM_UP)

    good = [pair for pair in pairs if max(window.foreign for window in pair) <= most_foreign]
    if not good:
        foreign = [round(window.foreign, 2) for pair in pairs for window in pair]
        print(f"{name}: no pair had less than {most_foreign} foreign cores: {foreign}", flush=True)
        return
    ratios = [rate(pair.attacked) / max(1, rate(pair.spun)) for pair in good]
    print(f"{name}: ratio={statistics.median(ratios):.3f} worst={min(ratios):.3f} pairs={len(good)} "
          f"attackers_cores={statistics.median(pair.attacked.cores for pair in good):.2f} "
          f"spinners_cores={statistics.median(pair.spun.cores for pair in good):.2f} "
          f"servers_cores={statistics.median(servers_cores(pair) for pair in good):.2f} "
          f"elements_per_s={statistics.median(rate(pair.attacked) for pair in good):.0f} "
          f"beside_spinner={statistics.median(rate(pair.spun) for pair in good):.0f}", flush=True)


def run(args, folder, found):
    with Cluster(args, folder) as cluster:
        bench = Bench(args, cluster, folder)
        measured = {}
        for name in args.attacks:
            measured[name] = bench.pairs(ATTACKS[name])
            cluster.check_alive()
            found.attacks += 1
        read = bench.read_at()
        for name, pairs in measured.items():
            report(name, pairs, read, args.foreign)


def main():
    parser = program.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=3, help="of a window")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--attacks", type=lambda text: text.split(","), default=list(ATTACKS))
    parser.add_argument("--honest", default="tcp", help="protocol of the trainer")
    parser.add_argument("--words", type=int, default=2000, help="largest element, in words of eight bytes")
    parser.add_argument("--foreign", type=float, default=0.12, help="most cores of other programs in a window")
    parser.add_argument("--descriptors", type=int, default=8192, help="most descriptors of each server")
    parser.add_argument("--ucx", action="store_true", help="with ucx over tcp")
    program.conclude(parser.parse_args(), run, attacks=0)


if __name__ == "__main__":
    main()
