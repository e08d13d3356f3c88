#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs commands of the bench on other hosts: connects the ranks of a launch, and is the agent on each host.

    launch.py --bin BIN ranks bench cluster ARGUMENTS…    a rank: the leader becomes `penstock bench cluster`, others serve it
    launch.py --bin BIN agent HOST                        an agent without ranks, which reads its key from standard input
    launch.py --bin BIN there AGENT WORDS…                runs the bench with these arguments on the agent's host

Ranks connect to the leader, rank 0. It needs one rank per node, the first, and gives it a key. With the key, commands run there:

    other rank                          leader
    {"job", "rank", "node", "port"}  →
                                     ←  {"key": text}, or {"bye": true}: not needed
    (the connection stays)              closes it at the end

    there                               agent
    {"key": text, "arguments": […]}  →
                                     ←  "1 LINE" for each line of the command's standard output
                                     ←  "2 LINE" at its end: the last line of its stderr
    end of the connection            →  ends the command

Both ends of a command end together. Needs only Python's standard library.
"""
import argparse
import collections
import contextlib
import ctypes
import hmac
import json
import os
import pathlib
import re
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

KEY = "PENSTOCK_BENCH_KEY"  # environment variable with the key, for commands of the leader and of agents
ALLOWED = {"worker", "bench-socket", "bench-tool", "bench-survey", "bench-with", "bench-pair"}  # commands that the key permits
FIRST_PORT, PORTS = 20_000, 10_000  # of leaders: above the ports of services, below the ephemeral ports
HELLO = 5  # seconds within which a new connection must identify itself, or send its order
STOP = 5  # seconds after which a command that was asked to end is killed
LONGEST = 1 << 20  # maximum size of a line in bytes


class Failed(Exception):
    """Ends this program with the text as its error."""


# --- Ranks ------------------------------------------------------------------

# `number` is below `count`; `node` is equal for ranks on one node; `leader` is "HOST:PORT", or "" for a single rank; `job`
# distinguishes launches whose leaders have the same address.
Rank = collections.namedtuple("Rank", "number count node leader job", defaults=(0, 1, 0, "", ""))


def first_host(names):
    """Returns the first host of a list in Slurm's syntax: gpu07 for "gpu[07-09,12],login"."""
    whole = re.match(r"((?:[^,\[\]]|\[[^\]]*\])*)(?:,|$)", names)
    return re.sub(r"\[([^-,\]]*)[^\]]*\]", r"\1", whole[1]) if whole else ""


def parse_address(text):
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if not bare or not port.isdigit() or not 0 < int(port) < 65536 or (":" in bare and bare == host):
        raise Failed(f"'{text}' is no address; it is host:port, or [host]:port for IPv6")
    return bare, int(port)


def address(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def slurm_leader(variables):
    """Returns the address of rank 0 of a Slurm step; "" if the variables do not name it."""
    job, step = (int(text) if (text := variables.get(name, "")).isdigit() else 0 for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        if host := first_host(variables.get(name, "")):
            return address(host, FIRST_PORT + (job * 7 + step) % PORTS)
    return ""


def find_rank(number, count, leader, variables):
    """Returns the rank. Values come from the command line, or from Slurm's variables if they are None."""
    def of_slurm(name, otherwise):
        text = variables.get(name, str(otherwise))
        if not text.isdigit():
            raise Failed(f"{name} is '{text}', which is not a rank")
        return int(text)

    if number is not None or count is not None:
        if number is None or count is None or not 0 <= number < count:
            raise Failed("--rank and --ranks go together: the rank, from 0, and the number of ranks")
        rank = Rank(number, count, node=number)
    else:
        rank = Rank(of_slurm("SLURM_PROCID", 0), of_slurm("SLURM_NTASKS", 1),
                    job=".".join(variables.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")))
        rank = rank._replace(node=of_slurm("SLURM_NODEID", rank.number))
        if rank.number >= rank.count:
            raise Failed(f"SLURM_PROCID is {rank.number} and SLURM_NTASKS only {rank.count}")
    if rank.count == 1:
        return rank
    rank = rank._replace(leader=leader or slurm_leader(variables))
    if not rank.leader:
        raise Failed("the address of rank 0 is unknown: Slurm's variables lack it, so give --leader HOST:PORT to all ranks")
    try:
        parse_address(rank.leader)
    except Failed as why:
        raise Failed(f"{why}; it must be the address of rank 0") from None
    return rank


# --- Connections ------------------------------------------------------------

class Connection:
    """Exchanges lines with another host."""

    def __init__(self, connected):
        self.socket = connected
        self.lines = connected.makefile("rb")

    def write(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def read(self, seconds=None):
        """Returns a line without its break. OSError if none comes."""
        self.socket.settimeout(seconds)
        line = self.lines.readline(LONGEST)
        self.socket.settimeout(None)
        if not line.endswith(b"\n"):
            raise OSError("the other host has closed")
        return line[:-1].decode(errors="replace")

    def read_object(self, seconds):
        """Returns a line's JSON object; an empty one for anything else."""
        try:
            value = json.loads(self.read(seconds))
        except ValueError:
            value = None
        return value if isinstance(value, dict) else {}

    def host(self, name):
        """Returns the numeric host of an address."""
        text = socket.getnameinfo(name, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]
        return text.removeprefix("::ffff:") if "." in text else text  # an IPv4 address at a socket for both

    def here(self):
        return self.host(self.socket.getsockname())

    def there(self):
        return self.host(self.socket.getpeername())

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # also wakes a thread that reads
        except OSError:
            pass
        self.socket.close()


def connect(where, seconds):
    """Connects, and retries until a process listens there."""
    end = time.monotonic() + seconds
    while True:
        try:
            return Connection(socket.create_connection(parse_address(where), max(0.1, end - time.monotonic())))
        except OSError as error:
            if time.monotonic() + 0.1 > end:
                raise Failed(f"{error}; no process listened at {where} within {seconds:g} s") from None
        time.sleep(0.1)


def listen(host, port=0):
    """Listens at an address of this host; at all of them for ""."""
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0] if host else socket.AF_INET
    return socket.create_server((host, port), family=family)


# --- The leader -------------------------------------------------------------

def gather(rank, seconds):
    """Returns the needed ranks with their connections, and the numbers of the ranks that did not connect in time."""
    attendees, awaited, nodes = [], set(range(1, rank.count)), {rank.node}
    os.environ[KEY] = secrets.token_hex(16)
    end = time.monotonic() + seconds
    # Not bound to the leader's name: on many systems it means 127.0.1.1 locally.
    with listen("", parse_address(rank.leader)[1]) as server:
        while awaited and (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                connection = Connection(server.accept()[0])
                hello = connection.read_object(HELLO)
                numbers = [hello.get(field) for field in ("rank", "node", "port")]
                known = hello.get("job") == rank.job and all(type(number) is int for number in numbers)
                if not known or numbers[0] not in awaited:
                    connection.close()
                    continue
                awaited.remove(numbers[0])
                if numbers[1] in nodes:
                    connection.write(json.dumps({"bye": True}))
                    connection.close()
                    continue
                nodes.add(numbers[1])
                connection.write(json.dumps({"key": os.environ[KEY]}))
            except OSError:
                continue
            attendees.append({"rank": numbers[0], "here": connection.here(), "there": connection.there(),
                              "agent": address(connection.there(), numbers[2]), "connection": connection})
    return sorted(attendees, key=lambda attendee: attendee["rank"]), sorted(awaited)


def lead(bin_folder, rank, seconds, arguments):
    """Replaces this process by the bench, which inherits the connections, so that the other ranks end when it ends."""
    attendees, missing = gather(rank, seconds) if rank.count > 1 else ([], [])
    for attendee in attendees:
        attendee["connection"] = os.dup(attendee["connection"].socket.fileno())
        os.set_inheritable(attendee["connection"], True)
    others = {"ranks": rank.count, "others": attendees, "missing": [
        f"rank {number} did not connect to {rank.leader} within {seconds:g} s; start all ranks at once, with srun"
        for number in missing]}
    os.execv(bin_folder / "penstock-bench", ["penstock", *arguments, "--others", json.dumps(others)])


# --- Agents -----------------------------------------------------------------

def words_of(order, key):
    if not isinstance(order.get("key"), str) or not hmac.compare_digest(order["key"].encode(), key.encode()):
        raise Failed("an order without the key")
    words = order.get("arguments", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Failed("an order whose arguments are not a list of strings")
    if not words or words[0] not in ALLOWED:
        raise Failed("an order for what ranks do not do for each other")
    return words


class Command(threading.Thread):
    """A command that another host ordered. It ends when the connection ends."""

    def __init__(self, connection, key, bin_folder, log):
        super().__init__()
        self.connection, self.key, self.bin, self.log, self.process = connection, key, bin_folder, log, None
        self.start()

    def run(self):
        try:
            try:
                self.connection.write("2 " + self.result(words_of(self.connection.read_object(HELLO), self.key)))
            except Failed as why:
                self.connection.write(f"2 {why}")
        except OSError:
            pass  # the connection has ended
        self.connection.close()

    def result(self, words):
        """Runs the program and passes on its output. Returns the last line that it logged."""
        dies_with_us = ctypes.CDLL(None).prctl
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.bin / "penstock-bench", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=log, preexec_fn=lambda: dies_with_us(1, signal.SIGKILL))
        listener = threading.Thread(target=self.stop_at_end)
        listener.start()
        try:
            for line in self.process.stdout:
                self.connection.write("1 " + line.decode(errors="replace").rstrip("\n"))
        finally:
            self.stop()
            self.connection.socket.shutdown(socket.SHUT_RD)  # wakes the listener
            listener.join()
        last = [line for line in self.log.read_text(errors="replace").splitlines() if line]
        return f"a process ended: {last[-1] if last else 'it said nothing'}"

    def stop_at_end(self):
        try:
            self.connection.read()
        except OSError:
            pass
        self.stop()

    def stop(self):
        if self.process is None:
            return
        self.process.stdin.close()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()


def serve(bin_folder, leader, server, key):
    """Serves until the leader closes its end of `leader`, a socket or a file."""
    os.environ[KEY] = key  # a command may run commands on a third host
    commands = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, selectors.DefaultSelector() as ready:
        ready.register(leader, selectors.EVENT_READ)
        ready.register(server, selectors.EVENT_READ)
        try:
            while leader not in [key_of.fileobj for key_of, _ in ready.select()]:  # readable only when it closes
                commands = [command for command in commands if command.is_alive()]
                log = pathlib.Path(folder, f"{time.monotonic_ns()}.log")
                commands.append(Command(Connection(server.accept()[0]), key, bin_folder, log))
        finally:
            for command in commands:
                command.connection.close()
                command.stop()
            for command in commands:
                command.join()


def serve_leader(bin_folder, rank, seconds):
    """Serves rank 0 until it no longer needs this rank."""
    with contextlib.closing(connect(rank.leader, seconds)) as leader, listen(leader.here()) as server:
        leader.write(json.dumps({"job": rank.job, "rank": rank.number, "node": rank.node, "port": server.getsockname()[1]}))
        try:
            answer = leader.read_object(seconds)
        except OSError as error:
            raise Failed(f"rank 0: {error}") from None
        if "bye" in answer:
            return
        if not isinstance(answer.get("key"), str) or not answer["key"]:
            raise Failed(f"rank 0 said: {answer}")
        serve(bin_folder, leader.socket, server, answer["key"])


def serve_at(bin_folder, host):
    key = sys.stdin.buffer.raw.readline().decode().strip()
    if not key:
        raise Failed("no key at standard input")
    with listen(host) as server:
        print(server.getsockname()[1], flush=True)
        serve(bin_folder, sys.stdin.buffer.raw, server, key)


def run_there(agent, words):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if KEY not in os.environ:
        raise Failed("only rank 0 runs this")
    connection = connect(agent, HELLO)
    connection.write(json.dumps({"key": os.environ[KEY], "arguments": words}))
    while True:
        try:
            kind, _, line = connection.read().partition(" ")
        except OSError:
            raise Failed("the connection to the other rank has ended") from None
        if kind == "2":
            raise Failed(line)
        print(line, flush=True)


def interrupt(_number, _frame):
    raise Failed("interrupted")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("task", choices=("ranks", "agent", "there"))
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        if options.task == "there":
            run_there(options.words[0], options.words[1:])
        if options.task == "agent":
            serve_at(options.bin, options.words[0])
        if options.task == "ranks":
            of_rank = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
            of_rank.add_argument("--rank", type=int)
            of_rank.add_argument("--ranks", type=int)
            of_rank.add_argument("--leader", default="")
            of_rank.add_argument("--wait", type=float, default=60)
            given, arguments = of_rank.parse_known_args(options.words)
            rank = find_rank(given.rank, given.ranks, given.leader, os.environ)
            if rank.number > 0:
                serve_leader(options.bin, rank, given.wait)
            else:
                lead(options.bin, rank, given.wait, arguments)
    except Failed as why:
        sys.exit(f"penstock: {why}")


if __name__ == "__main__":
    main()
