# SPDX-License-Identifier: Apache-2.0
"""Reading: positions, ends, threads, and a process that ends while something is read."""
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import penstock as ps

EVENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \w+ ")  # the log lines of servers and clients


def pipeline():
    return ps.Dataset.range(100).shuffle(20, seed=3).map(lambda x: x * 3).batch(7).prefetch(2)


class Positions(unittest.TestCase):
    def test_a_restored_iterator_goes_on_after_the_saved_position(self):
        whole = [batch.numpy().tolist() for batch in pipeline()]
        for taken in (0, 1, 5, len(whole)):
            iterator = iter(pipeline())
            for _ in range(taken):
                next(iterator)
            state = iterator.save()
            self.assertIsInstance(state, bytes)
            again = iter(pipeline())
            again.restore(state)
            self.assertEqual([batch.numpy().tolist() for batch in again], whole[taken:])

    def test_a_state_of_another_dataset_is_refused(self):
        state = iter(pipeline()).save()
        with self.assertRaisesRegex(ValueError, "Batch|Map|Range|Prefetch|Shuffle"):
            iter(pipeline().map(lambda x: x + 1)).restore(state)
        with self.assertRaises(ps.errors.InvalidArgumentError):
            iter(pipeline()).restore(b"no state")

    def test_steps_are_checked(self):
        iterator = iter(ps.Dataset.range(3))
        self.assertEqual(iterator.next(step=0).numpy(), 0)
        with self.assertRaises(ps.errors.OutOfRangeError):
            iterator.next(step=5)
        self.assertEqual(iterator.next(step=1).numpy(), 1)

    def test_the_end_stays_the_end(self):
        iterator = iter(ps.Dataset.range(1))
        next(iterator)
        for _ in range(2):
            with self.assertRaises(StopIteration):
                next(iterator)
            with self.assertRaises(ps.errors.OutOfRangeError):
                iterator.get_next()

    def test_seeds_decide(self):
        dataset = ps.Dataset.range(50).shuffle(50)

        def order(seed):
            return [int(x) for x in dataset.iterator(seed=seed)]

        self.assertEqual(order(1), order(1))
        self.assertNotEqual(order(1), order(2))

    def test_explain_has_counts(self):
        iterator = iter(pipeline())
        next(iterator)
        self.assertIn("Batch", iterator.explain())


class Waiting(unittest.TestCase):
    def test_others_run_while_one_waits(self):
        """A reader that waits for ever does not block other threads, and ends after stop()."""
        never = ps.Dataset.counter().filter(lambda x: x < 0)
        iterator = iter(never)
        failed = []

        def read():
            try:
                next(iterator)
            except ps.errors.CancelledError as error:
                failed.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        self.assertEqual(sum(int(x) for x in ps.Dataset.range(1000)), 499500)
        iterator.stop()
        reader.join()
        self.assertEqual(len(failed), 1)

    def test_a_timeout_loses_nothing(self):
        iterator = iter(ps.Dataset.counter().filter(lambda x: x < 0))
        with self.assertRaises(TimeoutError):
            iterator.next(timeout=0.01)
        iterator.stop()
        self.assertEqual(iter(ps.Dataset.range(3)).next(timeout=60).numpy(), 0)

    def test_several_threads_share_an_iterator(self):
        iterator = iter(ps.Dataset.range(400))
        taken = []

        def read():
            for element in iterator:
                taken.append(int(element))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(taken), list(range(400)))


# The beginning of the programs below: Ctrl-C as soon as the main thread is inside next().
INTERRUPT = """
import os, signal, sys, threading
import penstock as ps

def interrupt_when_reading(main=threading.main_thread().ident):
    while "__next__" not in sys._current_frames()[main].f_code.co_name: pass
    os.kill(os.getpid(), signal.SIGINT)

def next_interrupted(it):
    threading.Thread(target=interrupt_when_reading).start()
    try:
        print("came", next(it))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


class Interrupting(unittest.TestCase):
    def say(self, program):
        """Returns the output of a program that is interrupted while it waits."""
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPT + program],
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            text=True,
            timeout=100,
        )
        self.assertEqual(done.returncode, 0)
        return done.stdout.split()

    def test_a_service_without_workers(self):
        said = self.say(
            "service = ps.data.service\n"
            "dispatcher = service.DispatchServer()\n"
            "ds = ps.Dataset.range(5).distribute('distributed_epoch', dispatcher.target)\n"
            "it = iter(ds)\n"
            "next_interrupted(it)\n"
            "next_interrupted(it)\n"
            "worker = service.WorkerServer(service.WorkerConfig(dispatcher._address))\n"
            "print(*sorted(int(x) for x in it))\n"
        )
        self.assertEqual(said, ["interrupted", "interrupted", "0", "1", "2", "3", "4"])

    def test_a_slow_map(self):
        with tempfile.TemporaryDirectory() as folder:
            gate = os.path.join(folder, "gate")  # opening it for reading waits for a writer
            os.mkfifo(gate)
            said = self.say(
                f"gate = {gate!r}\n"
                "it = iter(ps.Dataset.from_tensor_slices([gate, '/dev/null']).map(ps.ops.read_file))\n"
                "next_interrupted(it)\n"
                "state = it.save()\n"
                "threading.Thread(target=lambda: open(gate, 'w').close()).start()\n"
                "print(len(list(it)))\n"
            )
            self.assertEqual(said, ["interrupted", "2"])


class Leaving(unittest.TestCase):
    """A process that ends with something open: quietly, and with its own exit status."""

    def leave(self, program):
        done = subprocess.run(
            [sys.executable, "-c", "import penstock as ps\n" + program],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=100,
        )
        said = [line for line in done.stderr.splitlines() if not EVENT.match(line)]
        self.assertEqual((done.returncode, said), (5, []), program)

    def test_while_iterating(self):
        self.leave("for x in ps.Dataset.counter().map(lambda x: x).prefetch(8):\n  if x == 3: raise SystemExit(5)")

    def test_with_iterators_and_elements_in_a_cycle(self):
        self.leave(
            "import builtins\n"
            "it = iter(ps.Dataset.counter().shuffle(10).batch(4).prefetch(8))\n"
            "builtins.kept = [it, next(it), next(it).numpy()]\n"
            "builtins.kept.append(builtins.kept)\n"
            "raise SystemExit(5)"
        )

    def test_with_servers_running_and_a_thread_reading(self):
        self.leave(
            "import threading\n"
            "service = ps.data.service\n"
            "dispatcher = service.DispatchServer()\n"
            "worker = service.WorkerServer(service.WorkerConfig(dispatcher._address))\n"
            "ds = ps.Dataset.counter().distribute('parallel_epochs', dispatcher.target)\n"
            "it = iter(ds)\n"
            "started = threading.Event()\n"
            "def read():\n"
            "  while True:\n"
            "    try:\n"
            "      for x in it: started.set()\n"
            "    except ps.errors.Error: pass\n"
            "threading.Thread(target=read, daemon=True).start()\n"
            "started.wait()\n"
            "raise SystemExit(5)"
        )


class Errors(unittest.TestCase):
    def test_every_code_has_its_class(self):
        for code in range(1, 17):
            error = ps.errors.of_code(code, "why")
            self.assertEqual((error.code, error.message, str(error)), (code, "why", "why"))
            self.assertIsInstance(error, ps.errors.Error)
        self.assertEqual(len({type(ps.errors.of_code(code, "")) for code in range(1, 17)}), 16)
        self.assertIsInstance(ps.errors.of_code(3, ""), ValueError)

    def test_a_functions_exception_comes_through(self):
        class Own(Exception):
            pass

        def fails(x):
            raise Own("in the function")

        for build in (
            lambda ds: ds.map(fails),
            lambda ds: ds.filter(fails),
            lambda ds: ds.flat_map(fails),
            lambda ds: ds.scan(0, lambda s, x: fails(x)),
            lambda ds: ds.reduce(0, lambda s, x: fails(x)),
            lambda ds: ds.window(2).flat_map(fails),
        ):
            with self.assertRaisesRegex(Own, "in the function"):
                build(ps.Dataset.range(3))

    def test_functions_of_datasets_must_give_some(self):
        with self.assertRaises(TypeError):
            ps.Dataset.range(3).flat_map(lambda x: x)


if __name__ == "__main__":
    unittest.main()
