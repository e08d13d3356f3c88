#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks every port of a cluster while honest trainers read jobs.

A dispatcher and two workers have all their ports: gRPC, tcp, shm, status pages, and ucx with --ucx. Each attack goes for all
the ports of its kinds at once. Meanwhile and afterwards:

- no server ends, and the honest jobs have each element exactly once;
- the resident memory of each server grows by no more than the attack's bound (attacking.py);
- each status page answers within --patience;
- the descriptors of each server are back within 15 s, and each port serves new clients;
- the second half of many laps leaves no more memory in use than the first half.

The program has one lap of attacks, or laps for --seconds. Each lap has its own seed. After a failure the folder has the last
inputs of each attacker. Prints a line for each attack; the last line reports the result.

    tests/attack/attack.py --seconds 3600 --seed 5                # an hour
    tests/attack/attack.py --attacks random_messages --each 60
    tests/attack/attack.py --attacks idle_connections --each 10 --descriptors 1024
"""
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

import program  # noqa: E402
from fleet import Failed  # noqa: E402
import attacks_admitted  # noqa: E402, F401: these list their attacks
import attacks_any  # noqa: E402, F401
import attacks_bombs  # noqa: E402, F401
import attacks_definitions  # noqa: E402, F401
import attacks_grpc  # noqa: E402, F401
import attacks_links  # noqa: E402, F401
import attacks_sessions  # noqa: E402, F401
import attacks_unread  # noqa: E402, F401
from attacking import ATTACKS, attacks_of  # noqa: E402
from cluster import BUDGET, MIB, SETTLE, Attacker, Cluster, Honest, Pages  # noqa: E402, F401

SPARE_DESCRIPTORS = 24  # by which honest readers, who come and go, change the count
MOST_GROWTH = 64  # MiB by which the second half of the laps may exceed the first half
LAPS_THAT_SHOW_GROWTH = 4
# The dispatcher may write a snapshot during an attack: it copies the definitions of both attacked namespaces, and has a piece
# of 16 MiB twice. Measured: 148 MiB.
SNAPSHOT_MIB = 2 * BUDGET // MIB + 32


class Siege:
    """Attacks on one cluster, with what must hold meanwhile."""

    def __init__(self, args, cluster, folder, found):
        self.args, self.cluster, self.folder, self.found = args, cluster, folder, found
        self.resident = []  # after each lap: MiB by server
        self.honest = [Honest(cluster.fleet, protocol, args.count, 100, args.step_us) for protocol in args.honest]
        self.baseline = {server.name: server.descriptors() + SPARE_DESCRIPTORS for server in cluster.servers}

    def attack(self, one, seed):
        """Runs one attack on all ports of its kinds. Failed if anything that must hold does not."""
        servers = self.cluster.servers
        before = {server.name: server.resident() for server in servers}
        cpu = sum(server.cpu_s() for server in servers)
        for server in servers:
            server.reset_peak()
        pages = Pages([port for port in self.cluster.ports if port.kind == "pages"], self.args.patience)
        begun = time.monotonic()
        reports = self._run(one, seed)
        took = time.monotonic() - begun
        pages.finish()
        cpu = sum(server.cpu_s() for server in servers) - cpu
        self._check(one, before, pages, reports, {"seconds": round(took, 1), "servers_cpu_s": round(cpu, 1)})

    def _run(self, one, seed):
        ports = one.ports(self.cluster.ports)
        attackers = [Attacker(one, port, seed + i, self.args.each, self.folder / f"attacker-{i}", self.cluster.attackers)
                     for i, port in enumerate(ports)]
        return [json.loads(attacker.report()) for attacker in attackers]

    def _check(self, one, before, pages, reports, spent):
        self.cluster.check_alive()
        for honest in self.honest:
            honest.check()
        growth = {server.name: server.peak() - before[server.name] for server in self.cluster.servers}
        self.cluster.await_descriptors(self.baseline, one.name)
        self.cluster.await_service(one.name)
        spent.update({key: round(sum(report[key] for report in reports), 1) for key in reports[0]})
        print(f"{one.name}: ports={len(reports)} {' '.join(f'{key}={value}' for key, value in spent.items())} "
              f"page_s={pages.worst:.2f} "
              f"growth_mib={','.join(f'{mib:.0f}' for mib in growth.values())} "
              f"resident_mib={','.join(f'{server.resident():.0f}' for server in self.cluster.servers)}", flush=True)
        for server, grown in growth.items():
            bound = one.bound_mib + (SNAPSHOT_MIB if server.startswith("dispatcher") else 0)
            if grown > bound:
                self._fail(f"{one.name}: resident memory of {server} grew by {grown:.0f} MiB; the bound is {bound}")
        if pages.error:
            self._fail(f"{one.name}: {pages.error}")
        self.found.attacks += 1

    def _fail(self, why):
        if not self.args.go_on:
            raise Failed(why)
        self.found.failures += 1
        print(f"FAILURE {why}", flush=True)

    def end_lap(self):
        self.found.laps += 1
        self.resident.append({server.name: server.resident() for server in self.cluster.servers})

    def finish(self):
        """The honest jobs end exactly. The servers have their descriptors, and did not grow from lap to lap."""
        for honest in self.honest:
            honest.finish()
            self.found.jobs += honest.jobs
            honest.trainer.kill()
        self.cluster.await_descriptors(self.baseline, "all attacks")
        for server in self.cluster.servers:
            laps = [lap[server.name] for lap in self.resident]
            print(f"{server.name}: MiB after each lap {','.join(f'{mib:.0f}' for mib in laps)}", flush=True)
            half = len(laps) // 2
            if len(laps) >= LAPS_THAT_SHOW_GROWTH and (grown := max(laps[half:]) - max(laps[:half])) > MOST_GROWTH:
                self._fail(f"{server.name} had {grown:.0f} MiB more in the second half of the laps than in the first")


def run(args, folder, found):
    for kind in attacks_any.KINDS:
        if not attacks_of(kind):
            raise Failed(f"no attack goes for ports of kind {kind}")
    with Cluster(args, folder) as cluster:
        siege = Siege(args, cluster, folder, found)
        until = time.monotonic() + args.seconds
        while found.laps == 0 or time.monotonic() < until:
            lap_seed = args.seed + found.laps
            rng = random.Random(lap_seed)
            chosen = [ATTACKS[name] for name in args.attacks]
            for one in rng.sample(chosen, len(chosen)):
                try:
                    siege.attack(one, rng.getrandbits(32))
                except Failed as failure:
                    raise Failed(f"in {one.name} of the lap with seed {lap_seed}: {failure}")
            siege.end_lap()
        siege.finish()


def main():
    parser = program.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=0, help="begin laps for so long; 0: one lap")
    parser.add_argument("--each", type=float, default=3, help="seconds of each attack")
    parser.add_argument("--seed", type=int, default=1, help="of the first lap")
    def names(text):
        return [name for name in text.split(",") if name]

    parser.add_argument("--attacks", type=names, default=list(ATTACKS), help="names, separated by commas")
    parser.add_argument("--honest", type=names, default=["tcp", "shm", "grpc"], help="protocols of the jobs")
    parser.add_argument("--count", type=int, default=5000, help="elements of each honest job")
    parser.add_argument("--step-us", type=int, default=200, help="microseconds of a training step")
    parser.add_argument("--patience", type=float, default=1, help="seconds for a status page's answer")
    parser.add_argument("--ucx", action="store_true", help="with ucx over tcp; docs/security.md says why it is left out")
    parser.add_argument("--descriptors", type=int, default=8192, help="most descriptors of each server")
    parser.add_argument("--go-on", action="store_true", help="print failures of bounds and go on")
    program.conclude(parser.parse_args(), run, attacks=0, laps=0, jobs=0, failures=0)


if __name__ == "__main__":
    main()
