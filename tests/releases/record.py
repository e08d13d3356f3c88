#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a journal and states of the installed release, for releases_test.py and journal_test.cc.

    PYTHONPATH=build/release/python tests/releases/record.py tests/releases/0.9

README.md tells when to do so, and how to record messages."""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import penstock as ps
import pipelines
from pipelines import service

_DISPATCHER = """
import penstock as ps
service = ps.data.service
config = service.DispatcherConfig(work_dir="journal", fault_tolerant_mode=True, heartbeat_interval_ms=200)
with service.DispatchServer(config) as dispatcher:
    print(dispatcher.target, flush=True)
    dispatcher.join()
"""
_RECORDS_PER_SNAPSHOT = 20_000


def main(folder):
    folder = pathlib.Path(folder).absolute()
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        pipelines.write_files()
        states = {"release": ps.__version__, "local": local_states()}
        dispatcher = subprocess.Popen(  # its log has a line for each of 20,000 commits
            [sys.executable, "-c", _DISPATCHER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            target = dispatcher.stdout.readline().strip()
            states.update(states_of_jobs(target))
        finally:
            dispatcher.send_signal(signal.SIGKILL)  # the log has no proper end
            dispatcher.wait()
        shutil.rmtree(folder / "journal", ignore_errors=True)
        shutil.copytree("journal", folder / "journal")
        with open(folder / "states.json", "w") as out:
            json.dump(states, out, separators=(",", ":"))
            out.write("\n")
    os._exit(0)  # this process cannot leave its jobs: their dispatcher is gone


def text(state):
    return base64.b64encode(state).decode()


def local_states():
    """Returns, for each dataset, states and the elements that this release returns after them."""
    recorded = {}
    for name, make in pipelines.LOCAL.items():
        whole = [pipelines.plain(element) for element in make().iterator(seed=pipelines.SEED)]
        recorded[name] = []
        for taken in (0, 1, len(whole) // 2, len(whole)):
            iterator = make().iterator(seed=pipelines.SEED)
            for _ in range(taken):
                next(iterator)
            recorded[name].append({"state": text(iterator.save()), "rest": whole[taken:]})
    return recorded


def states_of_jobs(target):
    # Offers of shm would name this machine.
    config = service.WorkerConfig(target.split("://")[1], heartbeat_interval_ms=200, data_transfer_protocol="tcp")
    workers = [service.WorkerServer(config) for _ in range(2)]
    service.register_dataset(target, pipelines.numbers(), dataset_id=pipelines.DATASET)

    assert sorted(int(x) for x in pipelines.finished(target)) == pipelines.NUMBERS

    commit_until_snapshot(target)

    reader = iter(pipelines.registered(target))
    assert len(take(reader, 10)) == 10

    states = {}
    one = iter(pipelines.job("committed", target))
    delivered = take(one, 45)
    state = one.save()
    one.commit(state)
    take(one, 5)  # lost: no state contains these
    states["committed"] = {"state": text(state), "delivered": delivered}

    def read_rounds(index, recorded):
        iterator = iter(pipelines.consumer(index, target))
        delivered = take(iterator, 12)
        state = iterator.save()
        iterator.commit(state)
        recorded[index] = {"state": text(state), "delivered": delivered}
        held.append(iterator)

    recorded, held = [None] * pipelines.CONSUMERS, []
    in_threads(read_rounds, recorded)
    states["coordinated"] = recorded

    ranks = [iter(pipelines.job("ranks", target)) for _ in range(2)]
    delivered = [take(rank, count) for rank, count in zip(ranks, (20, 27))]
    states["ranks"] = [
        {"state": text(rank.save()), "delivered": of_rank} for rank, of_rank in zip(ranks, delivered)
    ]
    held += [workers, reader, one, ranks]  # so that none of them leaves
    _held.append(held)
    return states


_held = []


def take(iterator, count):
    return [int(next(iterator)) for _ in range(count)]


def in_threads(function, recorded):
    threads = [threading.Thread(target=function, args=(i, recorded)) for i in range(len(recorded))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def commit_until_snapshot(target):
    """Makes records until the dispatcher takes a snapshot, which replaces the first log."""
    first = pathlib.Path("journal/changes-00000000000000000001.log")
    dataset = ps.Dataset.range(2 * _RECORDS_PER_SNAPSHOT)
    iterator = iter(pipelines.job("snapshot", target, dataset))
    begun = time.monotonic()
    while first.exists():
        assert time.monotonic() - begun < 600, "no snapshot was taken"
        next(iterator)
        iterator.commit(iterator.save())
    iterator.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
