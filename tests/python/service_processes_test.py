# SPDX-License-Identifier: Apache-2.0
"""Trainers and servers in processes of their own: what they read, and what they log."""
import os
import re
import signal
import subprocess
import sys
import unittest

import penstock as ps
from service_cluster import Cluster

service = ps.data.service


class Said(unittest.TestCase):
    """Events on a trainer's standard error: probable mistakes, and what it waits for."""

    def trainer(self, target, reads, **variables):
        script = f"import sys, penstock as ps\nds = ps.Dataset.range(5)\nservice = {target!r}\n{reads}\n"
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        self.addCleanup(Processes.end, process)
        self.addCleanup(process.stderr.close)
        return process

    def events(self, target, name, reads, **variables):
        """Runs a trainer to its end; returns its events of that name."""
        trainer = self.trainer(target, reads, **variables)
        _, said = trainer.communicate()
        self.assertEqual(trainer.returncode, 0, said)
        return [line for line in said.splitlines() if f" {name} " in line]

    def test_a_finished_name_says_that_nothing_is_left(self):
        reads = "print(len(list(ds.distribute('distributed_epoch', service, job_name='over'))))"
        with Cluster() as cluster:
            self.assertEqual(self.events(cluster.target, "nothing_left", reads), [])
            (said,) = self.events(cluster.target, "nothing_left", reads)
            for part in ("job=over", "all 5 elements", "run_id", "job_name"):
                self.assertIn(part, said)
            self.assertEqual(self.events(cluster.target, "nothing_left", reads, PENSTOCK_EVENTS="off"), [])

    def test_ranks_that_each_read_all_are_logged(self):
        reads = "for _ in range(2): list(ds{before}.distribute('distributed_epoch', service{name}))"
        ranks = {"RANK": "0", "WORLD_SIZE": "2"}
        with Cluster() as cluster:
            plain = reads.format(before="", name="")
            (said,) = self.events(cluster.target, "each_rank_reads_all", plain, **ranks)
            for part in ("WORLD_SIZE=2", "job_name", "Shard"):
                self.assertIn(part, said)
            self.assertTrue(self.events(cluster.target, "each_rank_reads_all", plain, SLURM_PROCID="1", SLURM_NTASKS="4"))
            for reads in (
                reads.format(before=".shard(2, 0)", name=""),
                reads.format(before="", name=", job_name='both'"),
            ):
                self.assertEqual(self.events(cluster.target, "each_rank_reads_all", reads, **ranks), [])
            self.assertEqual(
                self.events(cluster.target, "each_rank_reads_all", plain, RANK="0", WORLD_SIZE="1"), []
            )

    def waits_for(self, trainer, whom):
        """Reads until the trainer logs that it waits for `whom`."""
        for line in trainer.stderr:
            if " waits " in line and re.search(whom, line):
                return
        self.fail(f"it ended and never waited for {whom}")

    def test_a_trainer_says_whom_it_waits_for(self):
        reads = "print(len(list(ds.distribute('distributed_epoch', service, job_name='waits'))))"
        dispatcher = service.DispatchServer()
        port = dispatcher.port
        dispatcher.stop()
        trainer = self.trainer(dispatcher.target, reads)
        self.waits_for(trainer, f"the dispatcher at localhost:{port}")
        with service.DispatchServer(service.DispatcherConfig(port=port)) as dispatcher:
            self.waits_for(trainer, "job=waits.*a worker")
            with service.WorkerServer(service.WorkerConfig(dispatcher._address)):
                self.assertEqual(trainer.communicate()[0], "5\n")

    def test_a_dead_worker_is_waited_for_by_name(self):
        reads = (
            "for x in ds.repeat().distribute('distributed_epoch', service):\n"
            "    if x == 0: print(int(x), flush=True)"
        )
        with service.DispatchServer() as dispatcher:
            worker = subprocess.Popen(
                [sys.executable, "-c", WORKER, dispatcher._address],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.addCleanup(Processes.end, worker)
            address = worker.stdout.readline().strip()
            trainer = self.trainer(dispatcher.target, reads)
            self.assertEqual(trainer.stdout.readline(), "0\n")
            worker.send_signal(signal.SIGSTOP)
            self.waits_for(trainer, f"worker.*{address}|a worker")


WORKER = """
import sys, penstock as ps
_core = ps._core
service = ps.data.service
worker = service.WorkerServer(service.WorkerConfig(sys.argv[1]))
print(worker._address, flush=True)
worker.join()
"""


class Processes(unittest.TestCase):
    """The command's servers, and trainers in processes of their own."""

    def start(self, *arguments):
        process = subprocess.Popen(
            [os.environ["PENSTOCK_COMMAND"], *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdout.close()

    def test_two_trainers_share_a_job_of_two_workers(self):
        with service.DispatchServer() as dispatcher:
            for _ in range(2):
                worker = self.start("worker", "--dispatcher-address", dispatcher._address, "--port", "0")
                self.assertTrue(worker.stdout.readline())
            trainer = (
                "import sys, penstock as ps\n"
                "ds = ps.Dataset.range(200).map(lambda x: x * 2)\n"
                "ds = ds.apply(ps.data.service.distribute('distributed_epoch', sys.argv[1], job_name='both'))\n"
                "print(*[int(x) for x in ds])\n"
            )
            trainers = [
                subprocess.Popen(
                    [sys.executable, "-c", trainer, dispatcher.target],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                for _ in range(2)
            ]
            taken = [int(x) for trainer in trainers for x in trainer.communicate()[0].split()]
            self.assertEqual([trainer.returncode for trainer in trainers], [0, 0])
            self.assertEqual(sorted(taken), list(range(0, 400, 2)))


if __name__ == "__main__":
    unittest.main()
