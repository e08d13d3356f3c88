# SPDX-License-Identifier: Apache-2.0
"""Replicas that read and compute together: penstock.distribute."""
import os
import socket
import subprocess
import sys
import threading
import unittest
import warnings

import numpy as np

import penstock as ps
from penstock import distribute


def mirrored(replicas):
    return distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def plain(value):
    """Returns the values of replicas as lists of lists."""
    return [np.asarray(one).tolist() for one in value.values]


class ReplicasReading(unittest.TestCase):
    def test_batches_are_divided_in_parts_of_one_more_or_less(self):
        dataset = mirrored(2).experimental_distribute_dataset(ps.Dataset.range(10).batch(5))
        self.assertEqual([plain(step) for step in dataset], [[[0, 1, 2], [3, 4]], [[5, 6, 7], [8, 9]]])
        self.assertEqual((dataset.cardinality(), dataset.steps), (2, 2))

    def test_nests_have_a_per_replica_at_each_leaf(self):
        elements = ps.Dataset.from_tensor_slices({"b": ([1, 2], [3.0, 4.0]), "a": ["x", "y"]}).batch(2)
        step = next(iter(mirrored(2).experimental_distribute_dataset(elements)))
        self.assertEqual(list(step), ["b", "a"])
        self.assertEqual([plain(step["b"][0]), plain(step["b"][1])], [[[1], [2]], [[3.0], [4.0]]])
        self.assertEqual(plain(step["a"]), [[b"x"], [b"y"]])

    def test_a_lone_replica_has_plain_elements(self):
        step = next(iter(mirrored(1).experimental_distribute_dataset(ps.Dataset.range(4).batch(4))))
        self.assertIsInstance(step, ps.Tensor)

    def test_each_pipelines_dataset_is_made_by_the_function(self):
        told = []

        def make(context):
            told.append(str(context))
            self.assertEqual(context.get_per_replica_batch_size(8), 4)
            with self.assertRaises(ValueError):
                context.get_per_replica_batch_size(7)
            return ps.Dataset.range(8).shard(context.num_input_pipelines, context.input_pipeline_id).batch(2)

        options = distribute.InputOptions(
            experimental_replication_mode=distribute.InputReplicationMode.PER_REPLICA, steps=2
        )
        dataset = mirrored(2).distribute_datasets_from_function(make, options)
        self.assertEqual([plain(step) for step in dataset], [[[0, 2], [1, 3]], [[4, 6], [5, 7]]])
        self.assertEqual(told, [f"InputContext(input pipeline id {i}, total: 2)" for i in range(2)])

    def test_the_older_name_warns(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dataset = mirrored(1).experimental_distribute_datasets_from_function(lambda _: ps.Dataset.range(2).batch(2))
        self.assertEqual([(w.category, w.filename) for w in caught], [(DeprecationWarning, __file__)])
        self.assertEqual([step.numpy().tolist() for step in dataset], [[0, 1]])

    def test_the_functions_exception_comes_out(self):
        def fail(_):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            mirrored(2).distribute_datasets_from_function(fail)
        with self.assertRaisesRegex(TypeError, "must return a Dataset, not int"):
            mirrored(2).distribute_datasets_from_function(lambda _: 5)

    def test_maps_and_folds_after_the_distribution(self):
        dataset = mirrored(2).experimental_distribute_dataset(ps.Dataset.range(4).batch(2)).map(lambda x: x * 10)
        total = dataset.reduce(0, lambda state, step: state + sum(int(one.numpy().sum()) for one in step.values))
        self.assertEqual(total, 60)

    def test_the_end(self):
        steps = iter(mirrored(2).experimental_distribute_dataset(ps.Dataset.range(2).batch(2)))
        self.assertEqual(plain(steps.get_next_as_optional().get_value()), [[0], [1]])
        with self.assertRaises(StopIteration):
            next(steps)
        with self.assertRaises(ps.errors.OutOfRangeError):
            steps.get_next()
        end = steps.get_next_as_optional()
        self.assertFalse(end.has_value())
        with self.assertRaises(ps.errors.InvalidArgumentError):
            end.get_value()

    def test_a_restored_iterator_goes_on(self):
        dataset = mirrored(2).experimental_distribute_dataset(ps.Dataset.range(30).shuffle(10, seed=5).batch(6))
        first = [plain(step) for step in dataset]
        steps = iter(dataset)
        next(steps)
        again = iter(dataset)
        again.restore(steps.save())
        rest = [plain(step) for step in steps]
        self.assertEqual([plain(step) for step in again], rest)
        self.assertNotEqual(first[1:], rest, "each pass has an order of its own")
        with self.assertRaises(ps.errors.OutOfRangeError):
            iter(dataset).next(step=3)

    def test_stop_ends_it(self):
        steps = iter(mirrored(2).experimental_distribute_dataset(ps.Dataset.range(4).batch(2)))
        first = next(steps)
        steps.stop()
        with self.assertRaises(ps.errors.CancelledError):
            next(steps)
        self.assertEqual(plain(first), [[0], [1]])

    def test_gpus_that_are_not_there_are_refused_in_words(self):
        strategy = distribute.MirroredStrategy(["GPU:98", "/device:gpu:99"])
        self.assertEqual(strategy.group.devices, ["GPU:98", "GPU:99"])
        why = "cannot be copied to GPU:98: .*; with fetch_to_device = false they stay in host memory"
        with self.assertRaisesRegex(ps.errors.FailedPreconditionError, why):
            strategy.experimental_distribute_dataset(ps.Dataset.range(4).batch(2))
        with self.assertRaisesRegex(ps.errors.FailedPreconditionError, why):
            strategy.distribute_datasets_from_function(lambda _: ps.Dataset.range(4).batch(2))
        with self.assertRaisesRegex(ValueError, "TPU"):
            distribute.MirroredStrategy(["TPU:0"])

    def test_a_datasets_own_policy_of_sharding_holds_unless_input_options_have_one(self):
        policies = distribute.AutoShardPolicy
        options = ps.Options()
        options.experimental_distribute.auto_shard_policy = policies.OFF
        dataset = ps.Dataset.range(8).batch(4).with_options(options).map(lambda x: x + 1)
        one_of_two = distribute.Strategy(distribute.ReplicaGroup.create(["CPU:0"], [1, 1], 0, "launch"))

        def reads(input_options=None):
            text = one_of_two.experimental_distribute_dataset(dataset, input_options).explain()
            return "all parts" if "CutBatch#4 count=2 first=0 parts=2" in text else "its parts"

        self.assertEqual(reads(), "all parts")
        self.assertEqual(reads(distribute.InputOptions(auto_shard_policy=policies.DATA)), "its parts")

    def test_elements_that_replicas_share_are_read_only(self):
        options = distribute.InputOptions(replicas_per_element=2)
        step = next(iter(mirrored(2).experimental_distribute_dataset(ps.Dataset.range(4).batch(2), options)))
        self.assertEqual(plain(step), [[0, 1], [0, 1]])
        self.assertFalse(step[0].numpy().flags.writeable)


# Reads through a service that has no workers yet; Ctrl-C comes while the engine waits for the step.
INTERRUPTED = """
import os, signal, sys, threading
import penstock as ps
from penstock import distribute
service = ps.data.service
main = threading.main_thread().ident

def interrupt_when_reading():
    while sys._current_frames()[main].f_code.co_name != "next": pass
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(it):
    threading.Thread(target=interrupt_when_reading).start()
    try:
        print("came", next(it))
    except KeyboardInterrupt:
        pass

dispatcher = service.DispatchServer()
ds = ps.Dataset.range(8).batch(4).distribute("parallel_epochs", dispatcher.target, ack_mode=service.AckMode.ON_COMMIT)
strategy = distribute.MirroredStrategy(["CPU:0", "CPU:1"])
it = iter(strategy.experimental_distribute_dataset(ds))
refused = None
while refused is None:  # it may have come before the step was asked for
    interrupted(it)
    try:
        it.save()
    except ps.errors.FailedPreconditionError as error:
        refused = str(error)
"""


class ReplicasInterrupted(unittest.TestCase):
    def say(self, program):
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPTED + program], stdout=subprocess.PIPE, text=True, timeout=250
        )
        self.assertEqual(done.returncode, 0)
        return done.stdout.splitlines()

    def test_the_step_that_was_waited_for_is_the_next_calls(self):
        said = self.say(
            "print(refused)\n"
            "try: it.next(step=1)\n"
            "except ps.errors.FailedPreconditionError as error: print(error)\n"
            "worker = service.WorkerServer(service.WorkerConfig(dispatcher._address))\n"
            "first = next(it)\n"
            "state = it.save()\n"
            "values = lambda step: [value.numpy().tolist() for value in step.values]\n"
            "print(values(first), *map(values, it))\n"
            "it.restore(state)\n"
            "print(*map(values, it))\n"
        )
        self.assertRegex(said[0], "interrupted.*another next")
        self.assertRegex(said[1], "step 1 .*interrupted")
        self.assertEqual(said[2:], ["[[0, 1], [2, 3]] [[4, 5], [6, 7]]", "[[4, 5], [6, 7]]"])

    def test_stop_and_destruction_end_a_wait(self):
        said = self.say(
            "it.stop()\n"
            "try: next(it)\n"
            "except ps.errors.CancelledError: print('cancelled')\n"
            "it = iter(strategy.experimental_distribute_dataset(ds))\n"
            "interrupted(it)\n"
            "del it\n"
            "print('gone')\n"
        )
        self.assertEqual(said, ["cancelled", "gone"])


class ReplicasFunctions(unittest.TestCase):
    def test_run_takes_each_replicas_values_and_gives_theirs(self):
        strategy = mirrored(3)
        value = strategy.experimental_distribute_values_from_function(
            lambda context: (context.replica_id_in_sync_group, context.num_replicas_in_sync)
        )

        def step(given, factor, *, add):
            replica, replicas = given["value"][0]
            context = distribute.get_replica_context()
            self.assertEqual((context.replica_id_in_sync_group, context.num_replicas_in_sync), (replica, replicas))
            return {"sum": replica * factor + add, "none": None, "list": [replica]}

        results = strategy.run(step, args=({"value": [value]}, 10), kwargs={"add": 1})
        self.assertEqual(results["sum"].values, (1, 11, 21))
        self.assertIsNone(results["none"])
        self.assertEqual(results["list"][0].values, (0, 1, 2))
        self.assertEqual(strategy.experimental_local_results(results["sum"]), (1, 11, 21))
        self.assertEqual(strategy.experimental_local_results({"a": results["sum"], "b": 5})[2], {"a": 21, "b": 5})
        self.assertIsNone(distribute.get_replica_context())

    def test_replicas_run_side_by_side(self):
        strategy = mirrored(3)
        together = threading.Barrier(3)
        strategy.run(lambda: together.wait(timeout=60))

    def test_the_first_replicas_exception_is_raised_after_all_have_run(self):
        strategy = mirrored(3)
        done = []

        def fail(i):
            done.append(i)
            raise KeyError(i)

        ids = strategy.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group)
        with self.assertRaises(KeyError) as caught:
            strategy.run(fail, args=(ids,))
        self.assertEqual((caught.exception.args, sorted(done)), ((0,), [0, 1, 2]))

    def test_inside_nothing_is_read_or_run(self):
        strategy = mirrored(2)
        steps = iter(strategy.experimental_distribute_dataset(ps.Dataset.range(4).batch(2)))
        with self.assertRaisesRegex(ValueError, "outside"):
            strategy.run(lambda: next(steps))
        with self.assertRaisesRegex(RuntimeError, "outside"):
            strategy.run(lambda: strategy.run(lambda: 1))
        self.assertEqual(plain(next(steps)), [[0], [1]])

    def test_values_of_another_number_of_replicas_are_refused(self):
        with self.assertRaisesRegex(ValueError, "3 replica"):
            mirrored(2).run(lambda x: x, args=(distribute.PerReplica([1, 2, 3]),))


class ReplicasReductions(unittest.TestCase):
    def test_sums_and_means(self):
        strategy = mirrored(2)
        value = distribute.PerReplica([np.float32([1, 2]), np.float32([3, 6])])
        self.assertEqual(strategy.reduce("SUM", value).numpy().tolist(), [4, 8])
        self.assertEqual(strategy.reduce(distribute.ReduceOp.MEAN, value, axis=None).numpy().tolist(), [2, 4])
        self.assertEqual(strategy.reduce("MEAN", value, axis=0).numpy(), 3.0)
        both = strategy.reduce("SUM", {"b": value, "a": distribute.PerReplica([1, 2])})
        self.assertEqual((both["b"].numpy().tolist(), both["a"].numpy()), ([4, 8], 3))
        self.assertEqual(f"{strategy.reduce('SUM', 0.25):.2f}", "0.50")  # a value of each replica
        with self.assertRaisesRegex(ValueError, "different shapes"):
            strategy.reduce("SUM", distribute.PerReplica([np.zeros(2), np.zeros(3)]))

    def test_rows_of_replicas_weigh_alike_or_by_their_weights(self):
        strategy = mirrored(2)
        uneven = distribute.PerReplica([np.float32([1, 2, 3]), np.float32([6])])
        self.assertEqual(strategy.reduce("MEAN", uneven, axis=0).numpy(), 3.0)
        options = distribute.InputOptions(partial_batches=distribute.PartialBatches.PAD)
        steps = iter(strategy.experimental_distribute_dataset(ps.Dataset.range(1, 6).batch(4), options))
        next(steps)
        self.assertIsNone(steps.row_weights)
        last = next(steps)
        self.assertEqual(steps.row_weights.values, ([1.0, 0.0], [0.0, 0.0]))
        rows = strategy.run(lambda x: x.numpy().astype(np.float32), args=(last,))
        self.assertEqual(strategy.reduce("MEAN", rows, axis=0, weights=steps.row_weights).numpy(), 5.0)

    def test_gather_puts_rows_together(self):
        strategy = mirrored(2)
        step = next(iter(strategy.experimental_distribute_dataset(ps.Dataset.range(5).batch(5))))
        self.assertEqual(strategy.gather(step).numpy().tolist(), [0, 1, 2, 3, 4])
        names = distribute.PerReplica([np.array([b"a"], object), np.array([b"bc", b""], object)])
        self.assertEqual(strategy.gather(names).numpy().tolist(), [b"a", b"bc", b""])
        with self.assertRaisesRegex(ValueError, "axis 0"):
            strategy.gather(step, axis=1)

    def test_processes_of_a_connected_group_reduce_to_the_same(self):
        # Bound, so that nobody else gets the port meanwhile; process 0 may listen there.
        held = socket.socket()
        self.addCleanup(held.close)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        program = (
            "import penstock as ps, penstock.distribute as d\n"
            "s = d.MultiWorkerMirroredStrategy(['CPU:0', 'CPU:1'])\n"
            "steps = s.experimental_distribute_dataset(ps.Dataset.range(8).batch(4))\n"
            "sums = [int(s.reduce('SUM', s.run(lambda x: x.numpy().sum(), args=(x,)))) for x in steps]\n"
            "print(sums, s.group.first_replica, s.gather(s.experimental_distribute_values_from_function(\n"
            "    lambda c: [c.replica_id_in_sync_group])).numpy().tolist())\n"
        )
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)),
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        said = [process.communicate(timeout=90)[0].splitlines()[-1] for process in processes]
        self.assertEqual(said, [f"[6, 22] {2 * rank} [0, 1, 2, 3]" for rank in range(2)])


class ReplicasSpecs(unittest.TestCase):
    def test_a_spec_admits_what_the_dataset_gives(self):
        dataset = mirrored(2).experimental_distribute_dataset(ps.Dataset.range(8).batch(4, drop_remainder=True))
        spec = dataset.element_spec
        self.assertEqual(spec, distribute.PerReplicaSpec(*[ps.TensorSpec((2,), "int64")] * 2))
        self.assertTrue(all(spec.is_compatible_with(step) for step in dataset))
        for other in (
            distribute.PerReplica([np.zeros(2, np.int64)]),
            distribute.PerReplica([np.zeros(2, np.int32)] * 2),
            distribute.PerReplica([np.zeros(3, np.int64)] * 2),
            np.zeros(2, np.int64),
        ):
            self.assertFalse(spec.is_compatible_with(other), other)


if __name__ == "__main__":
    unittest.main()
