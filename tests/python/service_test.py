# SPDX-License-Identifier: Apache-2.0
"""The data service from Python: signatures, settings, and servers in this process."""
import dataclasses
import inspect
import subprocess
import sys
import tempfile
import threading
import unittest

import penstock as ps
from sanitizer import MAY_FORK_BESIDE_THREADS
from service_cluster import Cluster

_core = ps._core
errors = ps.errors
service = ps.data.service


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
errors = ps.errors
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


class Arguments(unittest.TestCase):
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
                {
                    "tls",
                    "namespaces",
                    "deployment_mode",
                    "allowed_plugins",
                    "job_gc_check_interval_ms",
                    "worker_max_concurrent_snapshots",
                },
            )
            self.assertIn("metrics_port: Port of the page /metrics", config.__doc__)

    def test_limits_of_namespaces_are_checked(self):
        for namespaces, error, text in (
            ("v", TypeError, "DispatcherConfig: namespaces must be a dict, not 'v'"),
            ({"v": 3}, TypeError, r'namespaces\["v"\] must be a dict, not 3'),
            ({"v": {"jobs": 3}}, ValueError, r'namespaces\["v"\] has no .jobs.; there is max_jobs, max_dataset_bytes'),
            ({"v": {"max_jobs": "x"}}, TypeError, r'namespaces\["v"\]: max_jobs cannot be .x.'),
            ({"v": {"max_jobs": -1}}, errors.InvalidArgumentError, r"\[namespaces.v\] must not be negative"),
            ({"a/b": {}}, errors.InvalidArgumentError, r"\[namespaces.a/b\]"),
        ):
            with self.assertRaisesRegex(error, text):
                service.DispatchServer(service.DispatcherConfig(namespaces=namespaces))
        config = service.DispatcherConfig(max_jobs_per_namespace=1, namespaces={"v": {"max_worker_percent": 50}})
        service.DispatchServer(config).stop()

    def test_settings_of_tls_are_checked(self):
        for tls in ("/etc/x.pem", 5, ["ca"]):
            with self.assertRaisesRegex(TypeError, "DispatcherConfig: tls must be a dict, not"):
                service.DispatchServer(service.DispatcherConfig(tls=tls))
        with self.assertRaisesRegex(ValueError, "DispatcherConfig has no 'tls_cert'; there is host, port"):
            service.DispatchServer(service.DispatcherConfig(tls={"cert": "x"}))
        for tls, error, text in (
            ({}, ValueError, "DispatcherConfig: tls is empty"),
            ({1: "x"}, TypeError, "tls has the key 1, which is not a string"),
            ({"certificate": ""}, ValueError, "tls_certificate is empty"),
            ({"certificate": None}, TypeError, "tls_certificate cannot be None"),
            ({"mutual": "yes"}, TypeError, "tls_mutual cannot be 'yes'"),
            ({"mutual": True}, errors.InvalidArgumentError, "tls_mutual needs tls_ca"),
            ({"ca": "/x/ca.pem"}, errors.InvalidArgumentError, "tls_ca is given to a server that has no certificate"),
            ({"key": "/x/key.pem"}, errors.InvalidArgumentError, "tls_certificate and tls_key belong together"),
            ({"certificate": "/x/a.pem"}, errors.InvalidArgumentError, "tls_certificate and tls_key belong together"),
            ({"certificate": "/x/a.pem", "key": "/x/a.key"}, errors.NotFoundError, "tls_certificate: cannot open /x/a.pem"),
        ):
            with self.subTest(tls=tls), self.assertRaisesRegex(error, text):
                service.DispatchServer(service.DispatcherConfig(tls=tls))
        for service_address, tls, text in (
            ("grpc://localhost:1", {"ca": "/x/ca.pem"}, "is reached in plain text; give \"grpcs://localhost:1\""),
            ("grpcs://localhost:1", {"ca": "/x/ca.pem"}, "needs tls_certificate and tls_key"),
        ):
            with self.subTest(tls=tls), self.assertRaisesRegex(errors.InvalidArgumentError, text):
                service.WorkerServer(service.WorkerConfig(service_address, tls=tls))
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


if __name__ == "__main__":
    unittest.main()
