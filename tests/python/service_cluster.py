# SPDX-License-Identifier: Apache-2.0
"""A data service in this process, for tests."""
import penstock as ps

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
