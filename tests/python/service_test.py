# SPDX-License-Identifier: Apache-2.0
"""The data service from Python: signatures, servers in this process and in others, and refusals."""
import dataclasses
import inspect
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import penstock as ps
from sanitizer import MAY_FORK_BESIDE_THREADS

_core = ps._core
service = ps.data.service


class Cluster:
    """A dispatcher and workers in this process."""

    def __init__(self, workers=1):
        self.dispatcher = service.DispatchServer()
        config = service.WorkerConfig(self.dispatcher._address, heartbeat_interval_ms=100)
        self.workers = [service.WorkerServer(config) for _ in range(workers)]

    @property
    def target(self):
        return self.dispatcher.target

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.stop()
        self.dispatcher.stop()


class Signatures(unittest.TestCase):
    def test_they_are_tf_datas(self):
        signatures = {
            service.distribute: '(processing_mode, service, job_name=None, consumer_index=None, num_consumers=None, '
            'max_outstanding_requests=None, data_transfer_protocol=None, compression="AUTO", '
            'cross_trainer_cache=None, target_workers="AUTO")',
            service.register_dataset: '(service, dataset, compression="AUTO", dataset_id=None)',
            service.from_dataset_id: '(processing_mode, service, dataset_id, element_spec=None, job_name=None, '
            'consumer_index=None, num_consumers=None, max_outstanding_requests=None, data_transfer_protocol=None, '
            'cross_trainer_cache=None, target_workers="AUTO")',
            service.DispatchServer: "(config=None, start=True)",
            service.WorkerServer: "(config, start=True)",
        }
        for function, expected in signatures.items():
            self.assertEqual(str(inspect.signature(function)).replace("'", '"'), expected)

    def test_configs_begin_with_tf_datas_fields(self):
        self.assertEqual(
            list(inspect.signature(service.DispatcherConfig).parameters)[:9],
            "port protocol work_dir fault_tolerant_mode worker_addresses job_gc_check_interval_ms job_gc_timeout_ms "
            "worker_timeout_ms worker_max_concurrent_snapshots".split(),
        )
        self.assertEqual(
            list(inspect.signature(service.WorkerConfig).parameters)[:8],
            "dispatcher_address worker_address port protocol heartbeat_interval_ms dispatcher_timeout_ms "
            "data_transfer_protocol data_transfer_address".split(),
        )

    def test_settings_without_a_tf_data_argument_are_options(self):
        tree = ps.Dataset.range(9).distribute(
            "distributed_epoch", "grpc://localhost:5050", job_name="a", max_permits=2, max_bytes_in_flight=1 << 20
        ).explain()
        self.assertIn("max_permits=2", tree)
        self.assertIn("max_bytes_in_flight=1048576", tree)


class Servers(unittest.TestCase):
    def test_start_later(self):
        dispatcher = service.DispatchServer(start=False)
        with self.assertRaises(RuntimeError):
            dispatcher.target
        dispatcher.start()
        with service.WorkerServer(service.WorkerConfig(dispatcher._address), start=False) as worker:
            self.assertEqual(dispatcher._num_workers(), 1)
            self.assertRegex(worker._address, r":\d+$")
        dispatcher.stop()
        dispatcher.join()

    def test_a_stopped_server_says_that_it_stays_so(self):
        with Cluster() as cluster:
            for server in (*cluster.workers, cluster.dispatcher):
                server.start()  # already running
                server.stop()
                with self.assertRaisesRegex(ps.errors.FailedPreconditionError, "stopped.*create a new one"):
                    server.start()

    def test_a_stopped_dispatcher_releases_its_journal(self):
        with tempfile.TemporaryDirectory() as folder:
            first = service.DispatchServer(service.DispatcherConfig(work_dir=folder))
            first.stop()
            with service.DispatchServer(service.DispatcherConfig(work_dir=folder, port=first.port)) as second:
                self.assertEqual(second.port, first.port)

    def test_bad_configs_say_what_is_wrong(self):
        with self.assertRaises(ValueError):
            service.WorkerServer(service.WorkerConfig(""))
        with self.assertRaises(ValueError):
            service.DispatchServer(service.DispatcherConfig(fault_tolerant_mode=True))
        with self.assertRaises(TypeError):
            service.DispatcherConfig(prot=1)
        with self.assertRaisesRegex(TypeError, "port"):
            service.DispatchServer(service.DispatcherConfig(port="x"))
        with service.DispatchServer() as dispatcher:
            with self.assertRaises(ps.errors.UnavailableError):
                service.DispatchServer(service.DispatcherConfig(port=dispatcher.port))

    def test_a_server_is_joined_until_it_is_stopped(self):
        import threading

        dispatcher = service.DispatchServer()
        joined = threading.Thread(target=dispatcher.join)
        joined.start()
        dispatcher.stop()
        joined.join()

    @unittest.skipUnless(MAY_FORK_BESIDE_THREADS, "the sanitizer's allocator does not stand it")
    def test_a_forked_child_ends_and_leaves_them_to_its_parent(self):
        script = """
import os, sys, threading
import penstock as ps
_core = ps._core
service = ps.data.service
dispatcher = service.DispatchServer()
worker = service.WorkerServer(service.WorkerConfig(dispatcher._address, heartbeat_interval_ms=100))
threading.Thread(target=worker.join, daemon=True).start()
child = os.fork()
if child == 0:
    worker.stop()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
job = ps.Dataset.range(10).apply(service.distribute("distributed_epoch", dispatcher.target))
print(sorted(element.numpy().item() for element in job))
"""
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((ran.returncode, ran.stdout), (0, f"{list(range(10))}\n"), ran.stderr)


class Reading(unittest.TestCase):
    def test_nests_of_arrays_through_workers(self):
        with Cluster(2) as cluster:
            rows = {"x": np.arange(20).reshape(10, 2), "s": [str(i) for i in range(10)]}
            dataset = ps.Dataset.from_tensor_slices(rows)
            dataset = dataset.apply(service.distribute("distributed_epoch", cluster.target))
            seen = sorted((e["s"], e["x"].tolist()) for e in dataset.as_numpy_iterator())
            self.assertEqual(seen, [(str(i).encode(), [2 * i, 2 * i + 1]) for i in range(10)])

    def test_an_error_that_is_not_utf8_is_that_of_its_element(self):
        def distributed(dataset, cluster):
            return dataset.apply(service.distribute("distributed_epoch", cluster.target))

        missing = ps.Dataset.from_tensor_slices([b"/nonexistent/\xff\xfe.txt"]).interleave(ps.TextLineDataset)
        with Cluster(2) as cluster:
            with self.assertRaisesRegex(ps.errors.NotFoundError, r"/nonexistent/\\xff\\xfe\.txt"):
                list(distributed(missing, cluster))
            self.assertEqual(sorted(map(int, distributed(ps.Dataset.range(5), cluster))), list(range(5)))

    def test_every_protocol_of_this_machine(self):
        with Cluster() as cluster:
            for protocol in ("local", "shm", "tcp", "grpc"):
                dataset = ps.Dataset.range(30).batch(10).distribute(
                    "parallel_epochs", cluster.target, data_transfer_protocol=protocol
                )
                total = 0
                for batch in dataset:
                    total += batch.numpy().sum()
                self.assertEqual(total, 435, protocol)

    def test_a_cross_trainer_cache_gives_read_only_elements(self):
        with Cluster() as cluster:
            read = []
            for trainer in "ab":
                dataset = ps.Dataset.range(1).repeat().map(lambda x: x + ps.ops.range(0, 20000)).apply(
                    service.distribute(
                        "parallel_epochs",
                        cluster.target,
                        job_name="shared",
                        cross_trainer_cache=service.CrossTrainerCache(trainer_id=trainer),
                    )
                )
                for element in dataset.take(3):
                    self.assertFalse(element.writable)
                    read.append(element.numpy())
            for array in read:
                np.testing.assert_array_equal(array, np.arange(20000))

    def test_members_of_a_consumer_group_get_the_same_elements(self):
        with Cluster() as cluster:

            def member(number, got):
                dataset = ps.Dataset.range(40).distribute(
                    "distributed_epoch",
                    cluster.target,
                    job_name="groups",
                    consumer_index=0,
                    num_consumers=1,
                    group_size=2,
                    group_member=number,
                )
                got.extend(int(x) for x in dataset)

            got = [], []
            other = threading.Thread(target=member, args=(1, got[1]))
            other.start()
            member(0, got[0])
            other.join()
            self.assertEqual(sorted(got[0]), list(range(40)))
            self.assertEqual(got[0], got[1])

    def test_states_restore_through_the_service(self):
        with Cluster(2) as cluster:

            def make():
                return ps.Dataset.range(40).distribute(
                    "distributed_epoch", cluster.target, job_name="kept", ack_mode=service.AckMode.ON_COMMIT
                )

            iterator = iter(make())
            seen = [int(next(iterator)) for _ in range(15)]
            state = iterator.save()
            iterator.commit(state)
            lost = [int(next(iterator)) for _ in range(5)]
            self.assertEqual(len(set(seen + lost)), 20)
            iterator.stop()
            del iterator
            again = iter(make())
            again.restore(state)
            seen += [int(x) for x in again]
            self.assertEqual(sorted(seen), list(range(40)))

    def test_a_fixed_order(self):
        with Cluster(2) as cluster:

            def order():
                dataset = ps.Dataset.range(30).distribute(
                    "distributed_epoch", cluster.target, order=service.MergeOrder.DETERMINISTIC, seed=1
                )
                return [int(x) for x in dataset]

            self.assertEqual(order(), order())

    def test_bad_arguments_are_value_errors(self):
        for arguments in (
            {"processing_mode": "every_epoch"},
            {"processing_mode": 3},
            {"service": ""},
            {"service": 7},
            {"service": "udp://x:1"},
            {"consumer_index": 0},
            {"consumer_index": "0", "num_consumers": 1},
            {"consumer_index": 2, "num_consumers": 2, "job_name": "j"},
            {"compression": "ZIP"},
            {"target_workers": "SOME"},
            {"cross_trainer_cache": "a"},
        ):
            given = {"processing_mode": "parallel_epochs", "service": "grpc://localhost:1", **arguments}
            with self.assertRaises((ValueError, ps.errors.NotFoundError), msg=str(arguments)):
                ps.Dataset.range(3).apply(service.distribute(**given))
        with self.assertRaisesRegex(ValueError, "known names: .*job_name"):
            ps.Dataset.range(3).distribute("parallel_epochs", "grpc://localhost:1", jobname="x")
        with self.assertRaises(ValueError):
            service.CrossTrainerCache("")

    def test_enumerations_are_given_by_name_too(self):
        numbers = ps.Dataset.range(3)
        address = "grpc://localhost:1"
        by_name = numbers.distribute("distributed_epoch", address, ack_mode="on_commit", order="DETERMINISTIC")
        self.assertEqual(
            by_name.explain(),
            numbers.distribute(
                "distributed_epoch", address, ack_mode=service.AckMode.ON_COMMIT, order=service.MergeOrder.DETERMINISTIC
            ).explain(),
        )
        self.assertIn("ack_mode=ON_COMMIT", by_name.explain())
        with self.assertRaisesRegex(ValueError, "ack_mode must be a AckMode or one of 'ON_DELIVERY', 'ON_COMMIT', not 'x'"):
            numbers.distribute("distributed_epoch", address, ack_mode="x")

    def test_configs_have_the_settings_of_the_commands(self):
        for config, settings in (
            (service.DispatcherConfig, _core.dispatcher_settings()),
            (service.WorkerConfig, _core.worker_settings()),
        ):
            fields = {field.name for field in dataclasses.fields(config)}
            keys = {name for name, _ in settings if not name.startswith("tls_")}
            self.assertEqual(keys - fields, set())
            self.assertLessEqual(
                fields - keys,
                {"tls", "deployment_mode", "allowed_plugins", "job_gc_check_interval_ms", "worker_max_concurrent_snapshots"},
            )
            self.assertIn("metrics_port: Port of the page /metrics", config.__doc__)

    def test_settings_of_tls_are_checked(self):
        for tls in ("/etc/x.pem", 5, ["ca"]):
            with self.assertRaisesRegex(TypeError, "DispatcherConfig: tls must be a dict, not"):
                service.DispatchServer(service.DispatcherConfig(tls=tls))
        with self.assertRaisesRegex(ValueError, "DispatcherConfig has no 'tls_cert'; there is host, port"):
            service.DispatchServer(service.DispatcherConfig(tls={"cert": "x"}))
        with self.assertRaisesRegex(TypeError, "DispatcherConfig: port cannot be 'x'"):
            service.DispatchServer(service.DispatcherConfig(port="x"))

    def test_names_before_0_9_warn(self):
        with self.assertWarnsRegex(DeprecationWarning, "penstock.data.service.Keep is called AckMode") as warned:
            self.assertIs(service.Keep, service.AckMode)
        self.assertEqual(warned.filename, __file__)
        with self.assertWarnsRegex(DeprecationWarning, "penstock.of_all_ranks is called merge_rank_states"):
            self.assertIs(ps.of_all_ranks, ps.merge_rank_states)
        with self.assertWarnsRegex(DeprecationWarning, "argument keep is called ack_mode") as warned:
            dataset = ps.Dataset.range(3).distribute("distributed_epoch", "grpc://localhost:1", keep="COMMITTED")
        self.assertEqual(warned.filename, __file__)
        self.assertIn("ack_mode=ON_COMMIT", dataset.explain())
        with self.assertWarns(DeprecationWarning):
            group = ps.distribute.ReplicaGroup.of(["CPU:0"], launch="first")
        with self.assertWarns(DeprecationWarning):
            self.assertEqual(group.launch, "first")
        self.assertEqual(group.launch_id, "first")
        with self.assertRaisesRegex(AttributeError, "has no attribute 'kept'"):
            service.kept

    def test_unknown_ids_are_not_found(self):
        with Cluster(0) as cluster:
            with self.assertRaises(ps.errors.NotFoundError):
                service.from_dataset_id("parallel_epochs", cluster.target, "nothing")

    def test_ids_are_strings_bytes_or_numbers(self):
        with Cluster() as cluster:
            given = service.register_dataset(cluster.target, ps.Dataset.range(3), dataset_id=1234)
            self.assertEqual(given, "1234")
            for dataset_id in ("1234", b"1234", 1234, np.int64(1234)):
                dataset = service.from_dataset_id("parallel_epochs", cluster.target, dataset_id)
                self.assertEqual([int(x) for x in dataset], [0, 1, 2])

    def test_a_service_as_a_pair(self):
        with Cluster() as cluster:
            dataset = ps.Dataset.range(3).apply(
                service.distribute("parallel_epochs", ("grpc", cluster.dispatcher._address))
            )
            self.assertEqual([int(x) for x in dataset], [0, 1, 2])


class Leaving(unittest.TestCase):
    """A reader leaves a job that others read on, with each kind of nodes after distribute()."""

    BEHIND = {
        "nothing": lambda dataset: dataset,
        "prefetch": lambda dataset: dataset.prefetch(64),
        "shuffle": lambda dataset: dataset.shuffle(256),
        "a shuffle of all": lambda dataset: dataset.shuffle(5000),
        "a parallel map": lambda dataset: dataset.map(lambda x: x * 1, num_parallel_calls=4),
        "shuffle, batch, prefetch": lambda dataset: dataset.shuffle(300).batch(8).prefetch(2),
    }

    def setUp(self):
        self.cluster = self.enterContext(Cluster(2))

    def open(self, behind, name, **options):
        data = ps.Dataset.range(2000).distribute("distributed_epoch", self.cluster.target, job_name=name, **options)
        return iter(self.BEHIND[behind](data))

    @staticmethod
    def numbers(elements):
        return [int(x) for element in elements for x in np.reshape(element, -1)]

    def test_others_get_the_unreturned_elements(self):
        for behind in self.BEHIND:
            with self.subTest(behind):
                reader = self.open(behind, behind)
                returned = self.numbers(next(reader) for _ in range(5))
                del reader
                self.assertEqual(sorted(returned + self.numbers(self.open(behind, behind))), list(range(2000)))

    def test_an_early_end_leaves_each_its_received_elements(self):
        slow = self.open("nothing", "early", early_end=True)
        returned = self.numbers(next(slow) for _ in range(5))
        time.sleep(0.5)  # so that it receives more
        fast = self.numbers(self.open("nothing", "early", early_end=True))
        self.assertLess(len(fast), 1995)
        returned += self.numbers(next(slow) for _ in range(5))
        del slow
        rest = self.numbers(self.open("nothing", "early"))
        self.assertGreater(len(rest), 0)
        self.assertEqual(sorted(returned + fast + rest), list(range(2000)))

    def test_two_readers_end_with_all(self):
        for behind in self.BEHIND:
            with self.subTest(behind):
                returned = [[], []]
                readers = [self.open(behind, f"both {behind}") for _ in returned]
                threads = [
                    threading.Thread(target=lambda i=i: returned[i].extend(self.numbers(readers[i])))
                    for i in range(len(readers))
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(sorted(returned[0] + returned[1]), list(range(2000)))


class Passes(unittest.TestCase):
    """Which pass of a named job an iterator reads."""

    def make(self, cluster, **options):
        return ps.Dataset.range(1000).distribute("distributed_epoch", cluster.target, job_name="passes", **options)

    def test_each_iterator_over_a_dataset_reads_the_next(self):
        with Cluster() as cluster:
            dataset = self.make(cluster, max_outstanding_requests=16)
            first = iter(dataset)
            taken = [int(next(first)) for _ in range(5)]
            self.assertEqual(sorted(int(x) for x in dataset), list(range(1000)))
            first.stop()
            rest = [int(x) for x in self.make(cluster)]  # of pass 0, as the first iterator of another trainer
            self.assertEqual(sorted(taken + rest), list(range(1000)))

    def test_many_that_are_left_early_do_not_hinder_the_next(self):
        with Cluster() as cluster:
            dataset = self.make(cluster)
            for _ in range(10):
                self.assertEqual(len(list(dataset.take(3))), 3)
            self.assertEqual(len(list(dataset)), 1000)

    def test_each_of_two_in_one_dataset_reads_its_own(self):
        with Cluster() as cluster:
            dataset = self.make(cluster)
            both = [(int(a), int(b)) for a, b in ps.Dataset.zip((dataset, dataset)).repeat(2)]
            for one in zip(*both):
                self.assertEqual(sorted(one), sorted([*range(1000)] * 2))

    def test_a_late_trainer_skips_what_is_over(self):
        with Cluster() as cluster:
            first = iter(self.make(cluster, max_outstanding_requests=4).repeat())
            for _ in range(3):
                self.assertEqual(sorted(int(next(first)) for _ in range(1000)), list(range(1000)))
            first.stop()
            late = iter(self.make(cluster).repeat())
            self.assertEqual(sorted(int(next(late)) for _ in range(1000)), list(range(1000)))
            late.stop()
            self.assertEqual(len(list(self.make(cluster).repeat(3))), 0, "as many passes as it was told")

    def test_an_input_that_is_empty_for_all_is_an_error(self):
        with Cluster() as cluster:
            nothing = ps.Dataset.range(9).filter(lambda x: x > 99)
            nothing = nothing.distribute("distributed_epoch", cluster.target, job_name="nothing").repeat()
            with self.assertRaisesRegex(ps.errors.FailedPreconditionError, "input is empty"):
                list(nothing)


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
