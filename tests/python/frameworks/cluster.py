# SPDX-License-Identifier: Apache-2.0
"""A dispatcher and workers in this process."""
import penstock as ps


class Cluster:
    """A context manager: gives the target; stops the cluster at the end."""

    def __init__(self, workers):
        service = ps.data.service
        self.dispatcher = service.DispatchServer()
        address = self.dispatcher.target.split("://")[1]
        self.workers = [service.WorkerServer(service.WorkerConfig(address)) for _ in range(workers)]

    def __enter__(self):
        return self.dispatcher.target

    def __exit__(self, *_):
        for worker in self.workers:
            worker.stop()
        self.dispatcher.stop()
