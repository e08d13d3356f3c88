#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo: two trainers share a job over real digits while a process is killed.

Starts a dispatcher, two workers and two trainers as processes, kills one of
them -9 in the middle, starts its successor, and counts every trained row
against the files. The last line says how it went.
"""
import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SHARDS = 11  # not a divisor of the rows held out, so that all shards get all digits


class Process:
    """A child whose output goes to a file, restarted under the same name."""

    def __init__(self, folder, name, command, env=None):
        self.name, self.command = name, [str(word) for word in command]
        self.out = folder / f"{name}.out"
        self.child = None
        self.start(env)

    def start(self, env=None):
        with open(self.out, "ab") as out:
            self.child = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT,
                                          env={**os.environ, **(env or {})})

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()


def fail(text):
    print(f"demo: failed {text}")
    sys.exit(1)


def wait_for_file(path, process, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().strip():
            return path.read_text().strip()
        if process.child.poll() is not None:
            fail(f"{process.name} ended at once:\n{process.out.read_text()}")
        time.sleep(0.02)
    fail(f"{process.name} did not get ready in {seconds} s:\n{process.out.read_text()}")


def rows_of(log):
    """(rows in the history, whether the trainer saw the end)."""
    rows, ended = 0, False
    with contextlib.suppress(FileNotFoundError):
        for line in open(log):
            kind, *words = line.split() or [""]
            if kind == "batch":
                rows += len(words) - 1
            elif kind == "restored":
                rows = int(words[0])
            elif kind == "end":
                ended = True
    return rows, ended


class Demo:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.bin = pathlib.Path(args.bin).resolve()
        self.rng = random.Random(args.seed)
        self.data = folder / "data"
        self.processes = []
        self.workers = []

    # --- processes ---------------------------------------------------------

    def spawn(self, name, *command, env=None):
        process = Process(self.folder, name, command, env)
        self.processes.append(process)
        return process

    def fail_env(self, role):
        """The environment of the process that is to die at a named fail point."""
        if role != self.args.kill or not self.args.fail_point or self.in_recovery():
            return None
        return {"PENSTOCK_FAIL_POINT": self.args.fail_point}

    def in_recovery(self):
        """Whether the fail point is met only by a dispatcher that was killed before."""
        return (self.args.fail_point or "").startswith("in_recovery")

    def start_dispatcher(self):
        port_file = self.folder / "dispatcher.port"
        self.dispatcher = self.spawn(
            "dispatcher", self.bin / "penstock", "dispatcher", "--port", 0, "--port-file", port_file,
            "--work-dir", self.folder / "journal", "--fault-tolerant-mode",
            "--worker-timeout-ms", 2000, "--client-timeout-ms", 20000, env=self.fail_env("dispatcher"))
        self.port = int(wait_for_file(port_file, self.dispatcher))
        self.service = f"grpc://localhost:{self.port}"
        # The same address when it is started again.
        self.dispatcher.command[self.dispatcher.command.index("--port") + 1] = str(self.port)

    def start_worker(self, env=None):
        name = f"worker-{len(self.workers)}"
        port_file = self.folder / f"{name}.port"
        worker = self.spawn(name, self.bin / "penstock", "worker", "--dispatcher-address", self.service,
                            "--port", 0, "--port-file", port_file, env=env)
        wait_for_file(port_file, worker)
        self.workers.append(worker)

    def start_trainer(self, i):
        return self.spawn(
            f"trainer-{i}", self.bin / "digits_trainer", "--service", self.service,
            "--files", self.data / "train-*.tfrecord", "--job", f"digits-{os.getpid()}",
            "--epochs", self.args.epochs, "--seed", self.args.seed, "--step-ms", self.args.step_ms,
            "--protocol", self.args.protocol, "--log", self.log(i), "--checkpoint", self.checkpoint(i),
            env=self.fail_env("trainer") if i == 0 else None)

    def log(self, i):
        return self.folder / f"trainer-{i}.log"

    def checkpoint(self, i):
        return self.folder / f"trainer-{i}.checkpoint"

    # --- the run -------------------------------------------------------------

    def run(self):
        self.data.mkdir()
        subprocess.run([self.bin / "digits_make_shards", HERE / "digits.csv", self.data, str(SHARDS)],
                       check=True)
        if self.args.dispatcher:
            self.service = self.args.dispatcher
            if "://" not in self.service:
                self.service = f"grpc://{self.service}"
        else:
            self.start_dispatcher()
            self.start_worker(self.fail_env("worker"))
            self.start_worker()
        self.trainers = [self.start_trainer(0), self.start_trainer(1)]
        self.watch()
        return self.verdict()

    def watch(self):
        total = sum(1 for _ in open(HERE / "digits.csv"))
        total = (total - -(-total // 6)) * self.args.epochs
        late = self.args.kill_at == "late"
        at = 0.97 if late else float(self.args.kill_at or self.rng.uniform(0.05, 0.95))
        pending = self.args.kill != "none"
        started = last = time.monotonic()
        last_rows = 0
        while True:
            states = [rows_of(self.log(i)) for i in range(2)]
            rows = sum(r for r, _ in states)
            now = time.monotonic()
            if now - last >= 0.5:
                self.progress(rows, total, (rows - last_rows) / (now - last), states)
                last, last_rows = now, rows
            if pending and self.args.fail_point and not self.in_recovery():
                pending = not self.revive_after_fail_point()
            elif pending and rows >= at * total and (not late or states[1][1]):
                self.strike()
                pending = False
            for trainer in self.trainers:
                code = trainer.child.poll()
                if code not in (None, 0) and not (pending and self.args.fail_point):
                    fail(f"{trainer.name} exited with {code}:\n{trainer.out.read_text()[-2000:]}")
            if all(trainer.child.poll() == 0 for trainer in self.trainers):
                break
            if now - started > self.args.timeout:
                fail(f"not finished after {self.args.timeout} s, {rows} of {total} rows; see {self.folder}")
            time.sleep(0.02)
        self.progress(total, total, total / (time.monotonic() - started), states)
        if self.args.kill != "none" and pending:
            print("demo: the run ended before anything was killed")

    def progress(self, rows, total, rate, states):
        share = " ".join(f"{r / max(1, rows):.0%}" for r, _ in states)
        print(f"  {rows:6d}/{total} rows  {rate:7.0f} rows/s  trainers {share}", flush=True)

    def strike(self):
        """Kills one process -9 and starts its successor."""
        role = self.args.kill
        pause = self.rng.uniform(0, 0.5)
        print(f"  kill -9 {role}", flush=True)
        if role == "worker":
            victim = self.rng.choice(self.workers)
            victim.kill()
            time.sleep(pause)
            self.start_worker()
        elif role == "dispatcher":
            self.dispatcher.kill()
            time.sleep(pause)
            if self.in_recovery():
                self.dispatcher.start({"PENSTOCK_FAIL_POINT": self.args.fail_point})
                self.dispatcher.child.wait(timeout=30)
                print("  dispatcher died in recovery", flush=True)
            self.dispatcher.start()
        else:
            victim = self.trainers[0 if self.args.kill_at == "late" else self.rng.randrange(2)]
            victim.kill()
            time.sleep(pause)
            victim.start()

    def revive_after_fail_point(self):
        """Starts the successor of the process that a fail point has killed."""
        victim = {"worker": self.workers[0], "dispatcher": self.dispatcher,
                  "trainer": self.trainers[0]}[self.args.kill]
        if victim.child.poll() in (None, 0):
            return False
        print(f"  {victim.name} died at {self.args.fail_point}", flush=True)
        if self.args.kill == "worker":
            self.start_worker()
        else:
            victim.start()
        return True

    def verdict(self):
        check = subprocess.run(
            [sys.executable, HERE / "check.py", "--files", self.data / "train-*.tfrecord",
             "--epochs", str(self.args.epochs), self.log(0), self.log(1)],
            capture_output=True, text=True)
        counts = dict(word.split("=") for word in check.stdout.split())
        accuracy = subprocess.run(
            [self.bin / "digits_evaluate", self.data / "held-out-*.tfrecord",
             self.checkpoint(0), self.checkpoint(1)], capture_output=True, text=True, check=True)
        ok = check.returncode == 0 and float(accuracy.stdout) >= self.args.accuracy
        print(f"demo: {'ok' if ok else 'failed'} accuracy={float(accuracy.stdout):.3f} "
              f"lost={counts.get('lost')} doubled={counts.get('doubled')} "
              f"elements={counts.get('elements')}{' ' + check.stderr.strip() if check.stderr else ''}")
        return ok


def main():
    parser = argparse.ArgumentParser(
        prog="penstock demo", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="  penstock demo --kill dispatcher\n  penstock demo --kill trainer --kill-at late")
    parser.add_argument("--bin", default="build/release/bin", help=argparse.SUPPRESS)
    parser.add_argument("--protocol", default="auto", help="data_transfer_protocol of the trainers")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--kill", choices=["none", "worker", "dispatcher", "trainer"], default="worker")
    parser.add_argument("--kill-at", help="share of all rows, 0 to 1, or 'late': in the last pass, "
                        "after the other trainer saw the end (default: random)")
    parser.add_argument("--fail-point", help="NAME:COUNT at which the process given by --kill dies by itself")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step-ms", type=int, default=4, help="what a training step takes beside the learning")
    parser.add_argument("--accuracy", type=float, default=0.9, help="on the held-out rows, that the run must reach")
    parser.add_argument("--dispatcher", help="use this running service instead of starting one")
    parser.add_argument("--workers", help="its workers, for the record; with --dispatcher")
    parser.add_argument("--timeout", type=float, default=120, help="seconds until the run counts as stuck")
    parser.add_argument("--keep", action="store_true", help="leave logs and journal where they are")
    args = parser.parse_args()
    if args.dispatcher and args.kill in ("worker", "dispatcher"):
        args.kill = "none"  # not ours to kill

    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    demo = Demo(args, folder)
    ok = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        ok = demo.run()
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        for process in reversed(demo.processes):
            process.stop()
        if ok and not args.keep:
            shutil.rmtree(folder)
        else:
            print(f"logs: {folder}", file=sys.stderr)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
