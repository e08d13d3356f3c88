# SPDX-License-Identifier: Apache-2.0
"""An etcd cluster of real processes on loopback."""
import contextlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

from fleet import Failed


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


class Etcds:
    """Three etcd processes. The end of the `with` block kills them."""

    def __init__(self, folder):
        self.folder = folder
        ports = free_ports(6)
        self.clients, self.peers = ports[:3], ports[3:]
        self.processes = [None] * 3
        for member in range(3):
            self.start(member)
        for port in self.clients:
            self._await_health(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in range(3):
            self.kill(member)

    def url(self, prefix="test"):
        return "etcd://" + ",".join(f"127.0.0.1:{port}" for port in self.clients) + f"/{prefix}"

    def start(self, member):
        """Starts a process, with the data that it had before."""
        client, peer = (f"http://127.0.0.1:{ports[member]}" for ports in (self.clients, self.peers))
        cluster = ",".join(f"member{i}=http://127.0.0.1:{port}" for i, port in enumerate(self.peers))
        with open(self.folder / f"etcd-{member}.err", "ab") as log:
            try:
                self.processes[member] = subprocess.Popen(
                    ["etcd", "--name", f"member{member}", "--data-dir", self.folder / f"etcd-{member}",
                     "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                     "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster], stdout=log, stderr=log)
            except FileNotFoundError:
                raise Failed("the program etcd is missing; run `./run deps`")

    def kill(self, member):
        if self.processes[member] is not None:
            self.processes[member].kill()
            self.processes[member].wait()
            self.processes[member] = None

    @staticmethod
    def _await_health(port):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200:
                    return
            time.sleep(0.05)
        raise Failed("etcd does not become healthy")
