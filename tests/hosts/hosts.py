# SPDX-License-Identifier: Apache-2.0
"""Two hosts, as network namespaces with a cable (a veth pair) of a given rate between them."""
import contextlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "soak"))
from network import Network, NotPermitted, run  # noqa: E402, F401: for tests

WORKERS = "10.77.0.1"
TRAINER = "10.77.0.2"
WORKERS_IPV6 = "fd00:77::1"
TRAINER_IPV6 = "fd00:77::2"


def name_of(host):
    return f"penstock-{os.getpid()}-{host}"


def inside(host, *command):
    """Returns the command line that runs `command` on that host."""
    return ("ip", "netns", "exec", name_of(host), *command)


def enter(*kinds):
    """Returns the command line that leaves namespaces of these kinds; precedes a command."""
    forks = ("--fork", "--kill-child") if "pid" in kinds else ()
    return ("unshare", *(f"--{kind}" for kind in kinds), *forks)


def check_permitted():
    """Raises NotPermitted if namespaces are not permitted."""
    with two_hosts("1gbit"):
        run(*enter("ipc", "pid", "mount"), "true")


@contextlib.contextmanager
def two_hosts(rate):
    """Makes hosts "workers" and "trainer"; tbf limits what either sends to `rate`, in tc's notation."""
    hosts = {"workers": (WORKERS, WORKERS_IPV6), "trainer": (TRAINER, TRAINER_IPV6)}
    with contextlib.ExitStack() as undo:
        for host in hosts:
            run("ip", "netns", "add", name_of(host))
            undo.callback(run, "ip", "netns", "del", name_of(host))  # and with it its end of the cable
        run("ip", "link", "add", "cable", "netns", name_of("workers"), "type", "veth",
            "peer", "name", "cable", "netns", name_of("trainer"))
        for host, (address, ipv6) in hosts.items():
            run(*inside(host, "ip", "addr", "add", f"{address}/24", "dev", "cable"))
            run(*inside(host, "ip", "addr", "add", f"{ipv6}/64", "dev", "cable", "nodad"))
            run(*inside(host, "ip", "link", "set", "cable", "up"))
            run(*inside(host, "ip", "link", "set", "lo", "up"))
            run(*inside(host, "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", rate,
                        "burst", "2mb", "latency", "20ms"))
        yield
