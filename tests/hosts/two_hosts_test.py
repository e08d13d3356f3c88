#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers and trainer on two hosts, and on one host in namespaces of different kinds.

    two_hosts_test.py BIN [unittest arguments]

Ends with 77, which CTest shows as skipped, where namespaces are not permitted.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "soak"))
import fleet  # noqa: E402
import hosts  # noqa: E402

SKIPPED = 77
COUNT = 2000  # elements
WORDS = 8 << 10  # int64 values in each: 64 KiB
BIN = None


class Cluster:
    """A dispatcher and two workers on the host "workers" (or on this one), trainers anywhere."""

    def __init__(self, folder, prefix=(), address="localhost"):
        self.folder, self.prefix, self.address = folder, prefix, address
        self.processes = []
        dispatcher = self.start("dispatcher", *prefix, BIN / "penstock", "dispatcher", "--host", address, "--port", 0,
                                "--worker-timeout-ms", 2000, "--heartbeat-interval-ms", 200)
        port = dispatcher.hear_match(r"ready at .*:(\d+)")[1]
        self.service = f"grpc://{address}:{port}"
        self.workers = [self.start_worker(), self.start_worker()]

    def start(self, name, *command):
        process = fleet.Process(self.folder, f"{name}-{len(self.processes)}", *command)
        self.processes.append(process)
        return process

    def start_worker(self):
        worker = self.start("worker", *self.prefix, BIN / "penstock-bench", "worker", "--dispatcher-address", self.service,
                            "--host", self.address, "--port", 0, "--metrics-port", 0)
        worker.page = worker.hear_match(r"worker ready.* metrics at (\S+)")[1]
        return worker

    def trainer(self, prefix, protocol):
        return self.start("trainer", *prefix, BIN / "soak_trainer", "--service", self.service,
                          "--protocol", protocol)

    def stop(self):
        for process in self.processes:
            process.kill()


class HostsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="penstock-hosts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def cluster(self, *args):
        cluster = Cluster(self.folder, *args)
        self.addCleanup(cluster.stop)
        return cluster

    def two_hosts(self, rate):
        self.enterContext(hosts.two_hosts(rate))
        return self.cluster(hosts.inside("workers"), hosts.WORKERS)

    def open(self, trainer, words=WORDS):
        self.log = self.folder / "trainer.log"
        self.assertEqual(trainer.ask(f"open job {COUNT} {words} {self.log} {self.folder / 'trainer.state'}", 60),
                         "open")

    def links(self, trainer):
        """Returns (protocol, reason) of all links that the trainer has opened."""
        return re.findall(r'link_opened .*protocol=(\S+) reason="(.*)"', trainer.errors.read_text())

    def read_buffers(self, cluster, prefix, workload, protocol):
        """A trainer of the bench reads buffers of 1 MiB until links have measured themselves, and checks all bytes."""
        trainer = cluster.start("trainer", *prefix, BIN / "penstock-bench", "bench-trainer")
        setup = {"workload": workload, "protocol": protocol, "element_bytes": 1 << 20, "workers": 2, "consumer": 0,
                 "consumers": 1, "coordinated": False, "last": "", "device": "", "window_s": 3, "source_bytes": 64 << 20, "compress": True,
                 "service": cluster.service, "scratch": str(self.folder)}
        self.assertIn("pids", trainer.ask(json.dumps(setup), 60))
        self.assertIn("elements", trainer.ask(json.dumps({"seconds": 3}), 60))

    def choices(self, cluster, prefix):
        """Returns, for each worker, the codecs that its links have chosen."""
        return [re.findall(r'penstock_link_compression_choices_total\{codec="(snappy|lz4)"\} [1-9]', subprocess.run(
            [*prefix, sys.executable, "-c",
             "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())", worker.page],
            check=True, capture_output=True, text=True).stdout) for worker in cluster.workers]

    def read_some(self, trainer):
        for _ in range(50):
            self.assertRegex(trainer.ask("next", 60), r"^element \d+$")  # it has checked all bytes of the element
            self.assertEqual(trainer.ask("drop"), "dropped")

    def read_all(self, trainer):
        self.assertEqual(trainer.ask("all", 120), "end")
        self.assertEqual(fleet.differences([self.log], COUNT), (0, 0))

    def read_through_a_kill(self, rate, protocol, words=WORDS, **variables):
        cluster = self.two_hosts(rate)
        given = [f"{name}={value}" for name, value in variables.items()]
        trainer = cluster.trainer([*hosts.inside("trainer"), "env", *given], protocol)
        self.open(trainer, words)
        self.read_some(trainer)
        cluster.workers[0].kill()
        cluster.start_worker()
        self.read_all(trainer)
        self.assertEqual({name for name, _ in self.links(trainer)}, {protocol})


class TwoHosts(HostsTest):
    def test_tcp_at_10_gbit_with_a_killed_worker(self):
        self.read_through_a_kill("10gbit", "tcp")

    def test_tcp_at_25_gbit_with_a_killed_worker(self):
        self.read_through_a_kill("25gbit", "tcp")

    def test_tcp_over_several_connections_with_a_killed_worker(self):
        # 512 KiB, which go over all connections.
        self.read_through_a_kill("25gbit", "tcp", 64 << 10, PENSTOCK_CLIENT_TCP_CONNECTIONS=3)

    def test_grpc_at_10_gbit_with_a_killed_worker(self):
        self.read_through_a_kill("10gbit", "grpc")

    def test_auto_steps_down_from_shared_memory_and_says_why(self):
        trainer = self.two_hosts("10gbit").trainer(hosts.inside("trainer"), "auto")
        self.open(trainer)
        self.read_all(trainer)
        for protocol, reason in self.links(trainer):
            self.assertEqual(protocol, "tcp")
            self.assertIn("shm cannot be used (the worker is in a different network namespace", reason)

    def test_shared_memory_asked_for_by_name_is_refused_in_words(self):
        trainer = self.two_hosts("10gbit").trainer(hosts.inside("trainer"), "shm")
        self.open(trainer)
        answer = trainer.ask("next", 60)
        self.assertRegex(answer, "^error NOT_FOUND")
        self.assertIn("Protocol 'shm' is not available for worker", answer)
        self.assertIn("different network namespace", answer)


    def test_a_slow_link_chooses_a_codec_by_itself(self):
        cluster = self.two_hosts("1gbit")
        trainer = cluster.trainer(hosts.inside("trainer"), "tcp")
        self.open(trainer)
        self.read_all(trainer)
        for choices in self.choices(cluster, hosts.inside("trainer")):
            self.assertTrue(choices)

    def test_a_slow_link_chooses_a_codec_only_for_compressible_data(self):
        for workload, compresses in (("T1-z", True), ("T1", False)):
            with self.subTest(workload), hosts.two_hosts("1gbit"):
                cluster = self.cluster(hosts.inside("workers"), hosts.WORKERS)
                self.read_buffers(cluster, hosts.inside("trainer"), workload, "tcp")
                for choices in self.choices(cluster, hosts.inside("trainer")):
                    self.assertEqual(bool(choices), compresses, choices)
                cluster.stop()


class OneHost(HostsTest):
    def link_of_one_in(self, *kinds):
        """Returns (protocol, reason) of the links of a trainer with its own namespaces of these kinds."""
        trainer = self.cluster().trainer(hosts.enter(*kinds), "auto")
        self.open(trainer)
        self.read_all(trainer)
        links = self.links(trainer)
        self.assertTrue(links)
        return links

    def test_without_the_ipc_namespace_no_memory_is_shared(self):
        for protocol, reason in self.link_of_one_in("ipc"):
            self.assertEqual(protocol, "tcp")
            self.assertIn("shm cannot be used (the worker is in a different IPC namespace", reason)

    def test_without_the_pid_namespace_no_memory_is_shared(self):
        for protocol, reason in self.link_of_one_in("pid"):
            self.assertEqual(protocol, "tcp")
            self.assertIn("shm cannot be used (the worker is in a different PID namespace", reason)

    def test_shared_memory_is_never_compressed(self):
        cluster = self.cluster()
        self.read_buffers(cluster, (), "T1-z", "shm")
        self.assertEqual(self.choices(cluster, ()), [[], []])

    def test_files_of_its_own_do_not_keep_a_trainer_from_sharing_memory(self):
        for protocol, _ in self.link_of_one_in("mount"):
            self.assertEqual(protocol, "shm")


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    try:
        hosts.check_permitted()
    except hosts.NotPermitted as why:
        print(f"two_hosts: left out: {why}")
        sys.exit(SKIPPED)
    unittest.main(warnings="ignore")  # about pipes that the interpreter closes at its end
