# SPDX-License-Identifier: Apache-2.0
"""What earlier releases wrote is read by this one: states, and the journal of a dispatcher that was killed."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import tempfile
import threading
import unittest

import penstock as ps
import pipelines
from pipelines import service

HERE = pathlib.Path(__file__).absolute().parent
RELEASES = sorted(path.parent for path in HERE.glob("*/states.json"))


def state_of(recorded):
    return base64.b64decode(recorded["state"])


class Releases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)  # datasets name files without a folder
        pipelines.write_files()

    def each_release(self):
        """Yields the folder and the states of each recorded release."""
        self.assertTrue(RELEASES)
        for folder in RELEASES:
            with self.subTest(release=folder.name):
                yield folder, json.loads((folder / "states.json").read_text())

    @contextlib.contextmanager
    def cluster(self, journal=None):
        """Yields the target of a dispatcher with two workers, which starts from a copy of `journal`."""
        if journal:
            shutil.rmtree("journal", ignore_errors=True)
            shutil.copytree(journal, "journal")
        # The recorded workers are gone. Their partitions move once they have been silent for this long.
        config = service.DispatcherConfig(
            work_dir="journal" if journal else None,
            fault_tolerant_mode=bool(journal),
            worker_timeout_ms=1000,
            heartbeat_interval_ms=100,
        )
        with service.DispatchServer(config) as dispatcher:
            of_worker = service.WorkerConfig(dispatcher.target.split("://")[1], heartbeat_interval_ms=100)
            with service.WorkerServer(of_worker), service.WorkerServer(of_worker):
                yield dispatcher.target

    def assert_each_once(self, *parts):
        self.assertEqual(sorted(sum(parts, [])), pipelines.NUMBERS)

    # --- States of one process -----------------------------------------------------------------

    def test_a_local_iterator_goes_on_with_the_same_elements(self):
        for _, states in self.each_release():
            self.assertLessEqual({"batches", "files", "windows"}, states["local"].keys())
            for name, recorded in states["local"].items():
                for i, one in enumerate(recorded):
                    with self.subTest(dataset=name, state=i):
                        iterator = iter(pipelines.LOCAL[name]())
                        iterator.restore(state_of(one))
                        self.assertEqual([pipelines.plain(element) for element in iterator], one["rest"])

    # --- A journal, and states of jobs in it ---------------------------------------------------

    def test_a_reader_goes_on_after_its_committed_state(self):
        for folder, states in self.each_release():
            with self.cluster(folder / "journal") as target:
                iterator = iter(pipelines.job("committed", target))
                iterator.restore(state_of(states["committed"]))
                rest = [int(x) for x in iterator]
            self.assert_each_once(states["committed"]["delivered"], rest)

    def test_consumers_of_a_coordinated_job_go_on(self):
        for folder, states in self.each_release():
            rest = [[] for _ in states["coordinated"]]

            def consume(index, target):
                iterator = iter(pipelines.consumer(index, target))
                iterator.restore(state_of(states["coordinated"][index]))
                rest[index] += [int(x) for x in iterator]

            with self.cluster(folder / "journal") as target:
                in_threads(consume, len(rest), target)
            self.assertEqual(*map(len, rest))
            self.assert_each_once(*(recorded["delivered"] for recorded in states["coordinated"]), *rest)

    def test_a_finished_job_stays_finished(self):
        for folder, _ in self.each_release():
            with self.cluster(folder / "journal") as target:
                self.assertEqual(list(pipelines.finished(target)), [])

    def test_a_registered_dataset_is_read_by_its_id(self):
        for folder, _ in self.each_release():
            with self.cluster(folder / "journal") as target:
                dataset = service.from_dataset_id("distributed_epoch", target, pipelines.DATASET, job_name="another")
                self.assert_each_once([int(x) for x in dataset])
                registered = service.register_dataset(target, pipelines.numbers(), dataset_id=pipelines.DATASET)
                self.assertEqual(registered, pipelines.DATASET)  # the definition is still equal

    # --- States of all ranks, which need no journal --------------------------------------------

    def test_more_ranks_go_on_from_merged_states(self):
        for _, states in self.each_release():
            recorded = states["ranks"]
            merged = ps.merge_rank_states([state_of(one) for one in recorded], run_id="next")
            rest = [[] for _ in range(len(recorded) + 1)]

            def read(rank, target):
                iterator = iter(pipelines.job("ranks", target))
                iterator.restore(merged)
                rest[rank] += [int(x) for x in iterator]

            with self.cluster() as target:
                in_threads(read, len(rest), target)
            self.assert_each_once(*(one["delivered"] for one in recorded), *rest)

    def test_a_missing_state_of_a_rank_is_refused(self):
        for _, states in self.each_release():
            merged = ps.merge_rank_states([state_of(states["ranks"][0])], run_id="next")
            with self.cluster() as target:
                with self.assertRaisesRegex(ps.errors.InvalidArgumentError, "state"):
                    iter(pipelines.job("ranks", target)).restore(merged)


def in_threads(function, count, *arguments):
    """Calls function(0, …) to function(count - 1, …) at the same time. Raises what one of them raises."""
    raised = []

    def call(i):
        try:
            function(i, *arguments)
        except BaseException as error:  # noqa: BLE001 (raised below)
            raised.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


if __name__ == "__main__":
    unittest.main()
