# SPDX-License-Identifier: Apache-2.0
"""Reading from the data service in Python: by which options, in which pass, and together with others."""
import threading
import time
import unittest

import numpy as np
import penstock as ps
from service_cluster import Cluster

service = ps.data.service


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

    def test_a_service_with_several_addresses(self):
        with Cluster() as cluster:
            for addresses in f"localhost:1,{cluster.dispatcher._address}", f"{cluster.dispatcher._address},localhost:1":
                dataset = ps.Dataset.range(3).apply(service.distribute("parallel_epochs", f"grpc://{addresses}"))
                self.assertEqual([int(x) for x in dataset], [0, 1, 2])
        with self.assertRaisesRegex(ValueError, "names a:1 twice"):
            ps.Dataset.range(3).apply(service.distribute("parallel_epochs", "grpc://a:1,a:1"))


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


if __name__ == "__main__":
    unittest.main()
