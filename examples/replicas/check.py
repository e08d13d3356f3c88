# SPDX-License-Identifier: Apache-2.0
"""Trains with 1, 2 and 4 replicas, in one process and in several. All runs must have the same losses
within 1e-4, and recognize at least 0.95 of the held-out digits.
    check.py TRAINER MAKE_SHARDS DIGITS_CSV"""
import os
import re
import socket
import subprocess
import sys
import tempfile

trainer, make_shards, digits = sys.argv[1:]


def results(text):
    """Parses (losses by epoch, accuracy) from a trainer's output."""
    accuracy = re.search(r"accuracy ([\d.]+)", text)
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", text)], float(accuracy[1])


def in_one_process(replicas, files):
    return results(subprocess.run([trainer, *files, str(replicas)], check=True, capture_output=True, text=True).stdout)


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def in_processes(replicas, files):
    launch = dict(os.environ, WORLD_SIZE=str(replicas), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    ranks = [subprocess.Popen([trainer, *files], env=dict(launch, RANK=str(rank)), stdout=subprocess.PIPE, text=True)
             for rank in range(replicas)]
    texts = [rank.communicate()[0] for rank in ranks]
    failed = [number for number, rank in enumerate(ranks) if rank.returncode != 0]
    if failed:
        sys.exit(f"of {replicas} processes, {failed} failed")
    return results(texts[0])


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([make_shards, digits, folder, "4"], check=True)
    files = f"{folder}/train-*.tfrecord", f"{folder}/held-out-*.tfrecord"
    runs = {f"{n} replica(s) in one process": in_one_process(n, files) for n in (1, 2, 4)}
    runs |= {f"{n} processes": in_processes(n, files) for n in (2, 4)}
expected, _ = runs["1 replica(s) in one process"]
for name, (losses, accuracy) in runs.items():
    print(name, losses, accuracy)
    if len(losses) != 5 or max(abs(a - b) for a, b in zip(losses, expected)) > 1e-4:
        sys.exit(f"{name}: its losses differ from those of one replica, {expected}")
    if accuracy < 0.95:
        sys.exit(f"{name}: it recognizes only {accuracy} of the held-out digits")
