# SPDX-License-Identifier: Apache-2.0
"""Simulates several hosts on one machine: network namespaces around a router, which can drop packets between two hosts."""
import itertools
import os
import subprocess
import threading


class NotPermitted(Exception):
    """Network namespaces cannot be made here. The message has the reason."""


def run(*words):
    """Runs `ip` or a similar command; NotPermitted if it fails."""
    try:
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        raise NotPermitted(f"{error.filename} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise NotPermitted(f"'{' '.join(error.cmd)}' failed: {error.stderr.strip()}") from error


class Network:
    """Hosts that reach each other through a router. The end of the `with` block removes them; the caller ends the
    processes there.

    Thread-safe, as long as no thread removes a host that another one uses.
    """

    _numbers = itertools.count()

    def __init__(self):
        self.name = f"penstock-{os.getpid()}-{next(self._numbers)}"
        self.router = f"{self.name}-router"
        self.hosts = {}  # host numbers
        self.cuts = set()
        self.lock = threading.RLock()  # guards hosts and cuts

    def __enter__(self):
        run("ip", "netns", "add", self.router)
        try:
            self._in_router("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        except NotPermitted:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in list(self.hosts):
            self.remove(host)
        run("ip", "netns", "del", self.router)

    def _in_router(self, *words):
        run("ip", "netns", "exec", self.router, *words)

    def _space(self, host):
        return f"{self.name}-{self.hosts[host]}"

    def _cable(self, host):
        """Returns the name of the router's end of the host's cable."""
        return f"cable{self.hosts[host]}"

    def add(self, host):
        """Makes a host of that name if there is none. Returns its address."""
        with self.lock:
            if host not in self.hosts:
                self._make(host)
            return self.address(host)

    def _make(self, host):
        self.hosts[host] = next(number for number in range(1, 255) if number not in self.hosts.values())
        space, cable = self._space(host), self._cable(host)
        run("ip", "netns", "add", space)
        run("ip", "link", "add", "cable", "netns", space, "type", "veth", "peer", "name", cable, "netns", self.router)
        near, far = self.address(host), f"10.78.{self.hosts[host]}.254"
        self._in_router("ip", "addr", "add", f"{far}/24", "dev", cable)
        self._in_router("ip", "link", "set", cable, "up")
        for words in (("addr", "add", f"{near}/24", "dev", "cable"), ("link", "set", "cable", "up"),
                      ("link", "set", "lo", "up"), ("route", "add", "default", "via", far)):
            run("ip", "-n", space, *words)

    def address(self, host):
        return f"10.78.{self.hosts[host]}.1"

    def inside(self, host, *command):
        """Returns the command line that runs `command` on that host."""
        return ("ip", "netns", "exec", self._space(host), *command)

    def remove(self, host):
        """Removes a host, its cable and its cuts."""
        with self.lock:
            for cut in [cut for cut in self.cuts if host in cut]:
                self.mend(*cut)
            self._in_router("ip", "link", "del", self._cable(host))  # a namespace removes its own end later
            run("ip", "netns", "del", self._space(host))
            del self.hosts[host]

    def cut(self, one, other):
        """Silently drops the packets between two hosts from now on. Does nothing if one of them no longer exists."""
        with self.lock:
            if (one, other) not in self.cuts and self.hosts.keys() >= {one, other}:
                self.cuts.add((one, other))
                self._rules("add", one, other)

    def mend(self, one, other):
        """Ends a cut. Does nothing if there is none."""
        with self.lock:
            if (one, other) in self.cuts:
                self.cuts.remove((one, other))
                self._rules("del", one, other)

    def _rules(self, verb, one, other):
        for here, there in ((one, other), (other, one)):
            self._in_router("ip", "rule", verb, "from", self.address(here), "to", self.address(there), "blackhole")
