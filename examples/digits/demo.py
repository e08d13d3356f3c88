#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo: two trainers share a job over real digits while a process is killed.

Starts a dispatcher, two workers and two trainers as processes, kills one of
them with kill -9, starts its successor, and compares the trained rows with the
files. The last line gives the result.
"""
import argparse
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from processes import DemoFailed, Process, ReceivedCount

HERE = pathlib.Path(__file__).resolve().parent
SHARDS = 11  # does not divide the number of held-out rows, so that all shards get all digits


def rows_of(log):
    """Returns (rows in the history, whether the trainer has reached the end)."""
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


def links_of(out):
    """Returns the protocols of a trainer's links with their reasons: ["tcp: DistributeOptions"]."""
    return re.findall(r' link_opened .* reason="(.*)"$', out.read_text(), re.MULTILINE)


def shares(parts):
    """Returns the shares as text: "30% 70%" for 3 and 7."""
    return " ".join(f"{part / max(1, sum(parts)):4.0%}" for part in parts)


class Demo:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.bin = pathlib.Path(args.bin).resolve()
        self.rng = random.Random(args.seed)
        self.data = pathlib.Path(args.data) if args.data else folder / "data"
        self.processes = []
        self.workers = []
        self.received = [ReceivedCount(address) for address in args.workers]  # every worker that ever ran

    # --- processes ---------------------------------------------------------

    def spawn(self, name, *command, env=None):
        process = Process(self.folder, name, command, env)
        self.processes.append(process)
        return process

    def fail_env(self, role):
        """Returns the environment of the process that should die at the fail point; None for others."""
        if role != self.args.kill or not self.args.fail_point or self.in_recovery():
            return None
        return {"PENSTOCK_FAIL_POINT": self.args.fail_point}

    def in_recovery(self):
        """Returns whether the fail point is only reached by a dispatcher that recovers after a kill."""
        return (self.args.fail_point or "").startswith("in_recovery")

    def start_dispatcher(self):
        self.dispatcher = self.spawn(
            "dispatcher", self.bin / "penstock", "dispatcher", "--port", 0, "--work-dir", self.folder / "journal",
            "--fault-tolerant-mode", "--worker-timeout-ms", 2000, "--client-timeout-ms", 20000, env=self.fail_env("dispatcher"))
        port = self.dispatcher.wait_until_ready(r"ready at localhost:(\d+)")[1]
        self.service = f"grpc://localhost:{port}"
        # The next dispatcher gets the same address.
        self.dispatcher.command[self.dispatcher.command.index("--port") + 1] = port

    def start_worker(self, env=None):
        name = f"worker-{len(self.workers)}"
        worker = self.spawn(name, self.bin / "penstock", "worker", "--dispatcher-address", self.service,
                            "--port", 0, "--metrics-port", 0,
                            *self.given("--data-transfer-protocol", self.args.worker_protocol), env=env)
        self.received.append(ReceivedCount(worker.wait_until_ready(r"metrics at http://(.*)/metrics")[1]))
        self.workers.append(worker)

    def start_trainer(self, i):
        return self.spawn(
            f"trainer-{i}", self.bin / "digits_trainer", "--service", self.service,
            "--files", self.data / "train-*.tfrecord", "--job", f"digits-{os.getpid()}",
            "--epochs", self.args.epochs, "--seed", self.args.seed, "--step-ms", self.args.step_ms,
            *self.given("--protocol", self.args.protocol), *self.given("--fallback", self.args.fallback), "--log", self.log(i), "--checkpoint", self.checkpoint(i),
            env=self.fail_env("trainer") if i == 0 else None)

    @staticmethod
    def given(flag, value):
        return [flag, value] if value else []

    def log(self, i):
        return self.folder / f"trainer-{i}.log"

    def checkpoint(self, i):
        return self.folder / f"trainer-{i}.checkpoint"

    # --- the run -------------------------------------------------------------

    def run(self):
        self.data.mkdir(parents=True, exist_ok=True)
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
        print(f"  two trainers share a job on {self.service}", flush=True)
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
                    raise DemoFailed(f"{trainer.name} exited with {code}:\n{trainer.out.read_text()[-2000:]}")
            if all(trainer.child.poll() == 0 for trainer in self.trainers):
                break
            if now - started > self.args.timeout:
                raise DemoFailed(f"not finished after {self.args.timeout} s: trained {rows} of {total} rows")
            time.sleep(0.02)
        self.progress(total, total, total / (time.monotonic() - started), states)
        for reason in sorted({r for trainer in self.trainers for r in links_of(trainer.out)}):
            print(f"  links over {reason}", flush=True)
        if self.args.kill != "none" and pending:
            print("demo: the run ended before a process was killed")

    def progress(self, rows, total, rate, states):
        line = f"  {rows:6d} of {total} rows  {rate:6.0f} rows/s  trainers {shares([r for r, _ in states])}"
        if self.received:
            line += f"  workers {shares([count.ask() for count in self.received])}"
        print(line, flush=True)

    def strike(self):
        """Kills one process with kill -9 and starts its successor."""
        role = self.args.kill
        pause = self.rng.uniform(0, 0.5)
        if role == "worker":
            victim = self.rng.choice(self.workers)
            self.received[self.workers.index(victim)].ask()
        elif role == "dispatcher":
            victim = self.dispatcher
        else:
            victim = self.trainers[0 if self.args.kill_at == "late" else self.rng.randrange(2)]
        victim.kill()
        print(f"  kill -9 {victim.name}", flush=True)
        time.sleep(pause)
        if role == "worker":
            self.start_worker()
        elif role == "dispatcher":
            if self.in_recovery():
                self.dispatcher.start({"PENSTOCK_FAIL_POINT": self.args.fail_point})
                self.dispatcher.child.wait(timeout=30)
                print("  dispatcher died during recovery", flush=True)
            self.dispatcher.start()
        else:
            victim.start()
        print(f"  started {self.workers[-1].name if role == 'worker' else victim.name}", flush=True)

    def revive_after_fail_point(self):
        """Starts the successor of a process that died at the fail point. Returns whether it had died."""
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


def moment(text):
    if text != "late" and not 0 <= float(text) <= 1:
        raise ValueError
    return text


def positive(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="penstock demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n  penstock demo --kill dispatcher\n  penstock demo --kill trainer --kill-at late")
    add = parser.add_argument
    add("--bin", default="build/release/bin", help=argparse.SUPPRESS)
    add("--protocol", metavar="NAME",
        help="data_transfer_protocol of the trainers (default: as in the environment or the settings file, "
        "else the workers' preference)")
    add("--fallback", metavar="NAME,…", help="protocols that trainers use if --protocol is not possible")
    add("--worker-protocol", metavar="NAME", help="data_transfer_protocol of the started workers")
    add("--epochs", metavar="N", type=positive, default=10, help="passes over the data (default: %(default)s)")
    add("--kill", choices=["none", "worker", "dispatcher", "trainer"],
        help="process to kill (default: worker; none with --dispatcher)")
    add("--kill-at", metavar="MOMENT", type=moment,
        help="when to kill: a fraction of all rows, 0 to 1, or 'late': in the last pass, after the other trainer "
        "has reached the end (default: random)")
    add("--fail-point", metavar="NAME:COUNT",
        help="fail point at which the process of --kill dies by itself instead (control/observe/fail_point.h)")
    add("--seed", metavar="N", type=int, default=1, help="random seed (default: %(default)s)")
    add("--step-ms", metavar="MS", type=int, default=4,
        help="milliseconds that each training step waits in addition to its computation (default: %(default)s)")
    add("--accuracy", metavar="A", type=float, default=0.9,
        help="accuracy on the held-out rows that the run must reach (default: %(default)s)")
    add("--dispatcher", metavar="HOST:PORT", help="use this running service instead of starting one")
    add("--workers", metavar="HOST:PORT,…", type=lambda text: text.split(","), default=[],
        help="with --dispatcher: metrics addresses of its workers, to show each worker's share")
    add("--data", metavar="FOLDER",
        help="folder for the shards, which the workers must see too (default: a temporary folder); "
        "with --dispatcher")
    add("--timeout", metavar="S", type=float, default=120,
        help="seconds after which the run counts as stuck (default: %(default)g)")
    add("--keep", action="store_true", help="do not remove logs and journal")
    args = parser.parse_args()
    if args.dispatcher and args.kill in ("worker", "dispatcher"):
        parser.error(f"--kill {args.kill} is not possible with --dispatcher {args.dispatcher}: "
                     "the demo kills only processes that it started")
    for option in ("workers", "data"):
        if getattr(args, option) and not args.dispatcher:
            parser.error(f"--{option} needs --dispatcher")
    args.kill = args.kill or ("none" if args.dispatcher else "worker")
    if args.fail_point and args.kill == "none":
        parser.error("--fail-point needs --kill worker, dispatcher or trainer")
    return args


def main():
    args = parse_arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    demo = Demo(args, folder)
    ok = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        ok = demo.run()
    except DemoFailed as failure:
        print(f"demo: failed {failure}")
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
