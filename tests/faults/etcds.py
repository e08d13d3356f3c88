# SPDX-License-Identifier: Apache-2.0
"""An etcd cluster of real processes, on loopback or each on a host of its own."""
import contextlib
import json
import pathlib
import random
import socket
import subprocess
import sys
import time

from fleet import Failed

# A program for the host of a member: it prints how the member at the address in its argument describes itself.
POST = """import sys, urllib.request
url = f"http://{sys.argv[1]}/v3/maintenance/status"
print(urllib.request.urlopen(url, b"{}", timeout=5).read().decode())"""

def free_ports(count):
    """Returns ports that nobody listens at, and that no process gets by itself for a connection."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with contextlib.ExitStack() as stack:
        found = []
        while len(found) < count:
            with contextlib.suppress(OSError):
                bound = stack.enter_context(socket.create_server(("127.0.0.1", random.randrange(first // 2, first))))
                found.append(bound.getsockname()[1])
        return found


class Etcds:
    """Three etcd processes. The end of the `with` block kills them.

    With a `network` (network.py) each has a host of its own, "etcd-0" to "etcd-2".
    """

    def __init__(self, folder, network=None):
        self.folder, self.network = folder, network
        ports = free_ports(6)
        self.clients, self.peers = ports[:3], ports[3:]
        self.hosts = [network.add(f"etcd-{member}") if network else "127.0.0.1" for member in range(3)]
        self.processes = [None] * 3
        for member in range(3):
            self.start(member)
        self.await_leader()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in range(3):
            self.kill(member)

    def url(self, prefix="test"):
        return "etcd://" + ",".join(map(self._client, range(3))) + f"/{prefix}"

    def journal_flags(self):
        """Returns the flags of a dispatcher whose journal is in this etcd."""
        return ["--journal", self.url(), "--journal-key-file", self.folder / "key"]

    def _client(self, member):
        return f"{self.hosts[member]}:{self.clients[member]}"

    def _peer(self, member):
        return f"http://{self.hosts[member]}:{self.peers[member]}"

    def _inside(self, member, *command):
        return self.network.inside(f"etcd-{member}", *command) if self.network else command

    def start(self, member):
        """Starts a process, with the data that it had before."""
        client, peer = f"http://{self._client(member)}", self._peer(member)
        cluster = ",".join(f"member{i}={self._peer(i)}" for i in range(3))
        with open(self.folder / f"etcd-{member}.err", "ab") as log:
            try:
                self.processes[member] = subprocess.Popen(self._inside(
                    member, "etcd", "--name", f"member{member}", "--data-dir", str(self.folder / f"etcd-{member}"),
                    "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                    "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster), stdout=log, stderr=log)
            except FileNotFoundError:
                raise Failed("the program etcd is missing; run `./run deps`")

    def kill(self, member):
        if self.processes[member] is not None:
            self.processes[member].kill()
            self.processes[member].wait()
            self.processes[member] = None

    def await_leader(self):
        """Returns the member that leads the others, once there is one."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for member in range(3):
                status = self._status(member)
                if status and status.get("leader") == status["header"]["member_id"]:
                    return member
            time.sleep(0.05)
        raise Failed("no etcd process becomes the leader of the others")

    def _status(self, member):
        """Returns the member's description of itself; None if it does not answer."""
        asked = subprocess.run(self._inside(member, sys.executable, "-c", POST, self._client(member)),
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return json.loads(asked.stdout) if asked.returncode == 0 else None
