#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command as people and scripts use it: real processes, their output and exit codes.

    command_test.py PENSTOCK [unittest arguments]
"""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import zlib

PENSTOCK = None
BOUND = 60  # seconds; only a broken program comes near it


def run(*args, env=None):
    """Runs the command to its end; returns (exit code, stdout, stderr)."""
    done = subprocess.run([PENSTOCK, *map(str, args)], capture_output=True, text=True, timeout=BOUND,
                          env={**os.environ, **(env or {})}, check=False)
    return done.returncode, done.stdout, done.stderr


class Server:
    """A server process; ready when it has printed its first line."""

    def __init__(self, *args, env=None, **popen):
        self.process = subprocess.Popen([PENSTOCK, *map(str, args)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})}, **popen)
        self.line = self.process.stdout.readline().strip()

    @property
    def port(self):
        return int(re.search(r" ready at [^ ]*:(\d+)", self.line)[1])

    def metrics(self):
        """Returns the values of its page, by name."""
        page = re.search(r"metrics at (\S+)", self.line)[1]
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        text = direct.open(page, timeout=BOUND).read().decode()
        samples = [line.rsplit(maxsplit=1) for line in text.splitlines() if line[0] != "#"]
        return {name: float(value) for name, value in samples}

    def end(self, sig=signal.SIGTERM):
        """Sends the signal; returns (exit code, stderr)."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        _, err = self.process.communicate(timeout=BOUND)
        return self.process.returncode, err

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *args, env=None):
        server = Server(*args, env=env)
        self.addCleanup(server.kill)
        self.assertTrue(server.line, server.process.stderr.read() if server.process.poll() else "")
        return server

    def dispatcher(self, *args):
        return self.start("dispatcher", "--port", 0, *args)

    def worker(self, dispatcher, *args):
        return self.start("worker", "--dispatcher-address", f"localhost:{dispatcher.port}", *args)

    def assert_fails(self, result, code, *words):
        """Expects exit code 1 and one line on stderr that names the status code and has the words."""
        returncode, _, err = result
        self.assertEqual(returncode, 1, err)
        lines = [line for line in err.splitlines() if line.startswith("penstock ")]
        self.assertEqual(len(lines), 1, err)
        self.assertIn(f"({code})", lines[0])
        for word in words:
            self.assertIn(str(word), lines[0])

    # --- The command line ---------------------------------------------------------

    def test_version_names_the_release_and_the_protocols(self):
        self.assertEqual(run("--version")[0], 0)
        code, out, _ = run("version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^penstock \d+\.\d+\.\d+\n")
        self.assertIn("grpc", out)
        self.assertRegex(out, r"\ndevices (none|cuda \d+\.\d+): (no GPU: |\d+ device)")

    def test_every_help_has_an_example(self):
        for command in ([], ["dispatcher"], ["worker"], ["status"], ["links"], ["top"], ["trace"], ["jobs"], ["datasets"],
                        ["auth"], ["journal"], ["upgrade"], ["credentials"], ["demo"], ["soak"], ["simulate"], ["doctor"]):
            code, out, err = run(*command, "--help")
            self.assertEqual(code, 0, err)
            self.assertIn("  penstock ", out, command)

    def test_the_demo_runs_from_the_command(self):
        code, out, err = run("demo", "--kill", "none", "--epochs", 2, "--step-ms", 0, "--accuracy", 0.5)
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out.splitlines()[-1], r"^demo: ok accuracy=0\.\d+ lost=0 doubled=0 elements=2994$")

    def test_the_demo_runs_on_a_service_that_is_there_and_shows_its_workers_share(self):
        dispatcher = self.dispatcher()
        worker = self.worker(dispatcher, "--metrics-port", 0)
        code, out, err = run("demo", "--dispatcher", f"localhost:{dispatcher.port}", "--workers",
                             re.search(r"metrics at http://(.*)/metrics", worker.line)[1],
                             "--epochs", 2, "--step-ms", 0, "--accuracy", 0.5)
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"workers 100%\n")
        self.assertGreater(worker.metrics()["penstock_worker_elements_landed_total"], 2994 / 16)

    def test_a_demo_without_its_parts_names_what_is_missing(self):
        alone = self.folder / "penstock"
        shutil.copy(PENSTOCK, alone)
        done = subprocess.run([alone, "demo"], capture_output=True, text=True, timeout=BOUND, check=False)
        self.assert_fails((done.returncode, done.stdout, done.stderr), "NOT_FOUND", "demo.py",
                          "cmake --install")

    def test_a_wrong_command_line_is_exit_code_2(self):
        for args in ([], ["dance"], ["worker"], ["dispatcher", "--port", "many"], ["jobs", "cancel"],
                     ["demo", "--kill", "everything"],
                     ["demo", "--dispatcher", "localhost:1", "--kill", "worker"],
                     ["soak", "--faults", "kill-everything"],
                     ["dispatcher", "--client-timeout-ms", "-1"]):
            code, _, err = run(*args)
            self.assertEqual(code, 2, (args, err))
            self.assertTrue(err)

    def test_an_option_may_come_from_the_environment_or_a_file(self):
        port_file = self.folder / "port"
        server = self.start("dispatcher", "--port-file", port_file, env={"PENSTOCK_DISPATCHER_PORT": "0"})
        self.assertEqual(int(port_file.read_text()), server.port)
        code, out, err = run("status", env={"PENSTOCK_DISPATCHER_ADDRESS": f"localhost:{server.port}"})
        self.assertEqual(code, 0, err)
        self.assertIn("WORKER", out)
        config = self.folder / "penstock.toml"
        config.write_text(f'[worker]\ndispatcher_address = "localhost:{server.port}"\nfallback = ["grpc"]\n'
                          '[dispatcher]\nport = 0\n')
        self.start("worker", "--config", config)
        self.start("dispatcher", env={"PENSTOCK_CONFIG": str(config)})

    def test_the_fields_of_the_servers_configs_are_flags_and_variables(self):
        fields = {
            "dispatcher": ["port", "protocol", "work-dir", "fault-tolerant-mode", "worker-addresses", "deployment-mode",
                           "job-gc-timeout-ms", "client-timeout-ms", "worker-timeout-ms"],
            "worker": ["dispatcher-address", "worker-address", "port", "protocol", "heartbeat-interval-ms",
                       "dispatcher-timeout-ms", "data-transfer-protocol", "data-transfer-port", "data-transfer-address",
                       "worker-tags", "shutdown-quiet-period-ms", "python", "python-command", "python-path",
                       "python-allow"],
        }
        for command, names in fields.items():
            code, out, err = run(command, "--help")
            self.assertEqual(code, 0, err)
            for name in names:
                self.assertRegex(out, rf"--{name}\b")
                self.assertRegex(out, rf"\(PENSTOCK_\w*{name.replace('-', '_').upper()}\)")

    def test_a_dispatchers_file_says_which_workers_there_may_be(self):
        config = self.folder / "penstock.toml"
        config.write_text('[dispatcher]\nport = 0\nworker_addresses = ["localhost:%port%", "elsewhere"]\n'
                          'deployment_mode = "hybrid"\n')
        dispatcher = self.start("dispatcher", "--config", config)
        self.worker(dispatcher)
        self.assert_fails(run("worker", "--dispatcher-address", f"localhost:{dispatcher.port}"),
                          "FAILED_PRECONDITION", "localhost:%port%, elsewhere")
        self.assert_fails(run("dispatcher", "--port", 0, "--deployment-mode", "both"), "INVALID_ARGUMENT", "both",
                          "COLOCATED")

    def test_a_mistake_in_the_environment_or_the_file_is_exit_code_2_and_named(self):
        config = self.folder / "penstock.toml"
        config.write_text("[dispatcher]\nprot = 0\n")
        code, _, err = run("dispatcher", "--config", config)
        self.assertEqual(code, 2)
        self.assertIn(f"{config}:2: [dispatcher] has no key 'prot'; it has host, port, work_dir", err)
        code, _, err = run("dispatcher", env={"PENSTOCK_DISPATCHER_PORT": "many"})
        self.assertEqual(code, 2)
        self.assertIn("PENSTOCK_DISPATCHER_PORT is 'many', but must be a whole number", err)
        config.write_text("[namespaces.vision]\njobs = 1\n")
        code, _, err = run("dispatcher", "--config", config)
        self.assertEqual(code, 2)
        self.assertIn(f"{config}:2: [namespaces.vision] has no key 'jobs'; it has max_jobs", err)
        config.write_text("[namespaces.'a/b']\nmax_jobs = 1\n")
        self.assert_fails(run("dispatcher", "--port", 0, "--config", config), "INVALID_ARGUMENT", "namespaces.a/b")
        config.write_text('[files]\ns3_addressing_style = "dns"\n')
        code, _, err = run("worker", "--dispatcher-address", "localhost:1", "--config", config)
        self.assertEqual(code, 2)
        self.assertIn("s3_addressing_style is dns, but must be auto, path or virtual", err)
        code, _, err = run("dispatcher", "--config", self.folder / "none.toml")
        self.assertEqual(code, 2)
        self.assertIn("none.toml: No such file", err)

    # --- Servers ------------------------------------------------------------------

    def test_servers_say_when_they_are_ready_and_end_on_signals(self):
        port_file = self.folder / "port"
        dispatcher = self.dispatcher("--port-file", port_file)
        self.assertEqual(dispatcher.line, f"dispatcher ready at localhost:{port_file.read_text().strip()}")
        stopped, drained = self.worker(dispatcher), self.worker(dispatcher)
        self.assertRegex(drained.line, r"^worker ready at localhost:\d+ for localhost:\d+$")
        _, out, _ = run("status", "--dispatcher-address", f"localhost:{dispatcher.port}")
        self.assertIn(f"localhost:{drained.port} ", out)
        self.assertIn(f"localhost:{stopped.port} ", out)
        code, out, err = run("top", "--once", "--dispatcher-address", f"localhost:{dispatcher.port}")
        self.assertEqual(code, 0, err)
        self.assertIn(f"localhost:{drained.port} ", out)
        self.assertIn("PROTOCOL", out)
        for server, sig in ((stopped, signal.SIGINT), (drained, signal.SIGTERM),
                            (dispatcher, signal.SIGTERM)):
            code, err = server.end(sig)
            self.assertEqual(code, 0, err)

    def test_an_ipv6_host_stands_in_brackets(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("this machine has no IPv6")
        dispatcher = self.dispatcher("--host", "::1", "--metrics-port", 0)
        self.assertRegex(dispatcher.line, r"ready at \[::1\]:\d+, metrics at http://\[::1\]:\d+/")
        self.assertGreater(len(dispatcher.metrics()), 0)

    def test_limits_of_files_are_raised_or_are_errors(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with tempfile.TemporaryDirectory() as folder:
            server = Server("dispatcher", "--work-dir", folder, "--fault-tolerant-mode",
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
            self.assertEqual(resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE), (hard, hard))
            ignored = re.search(r"SigIgn:\s*(\w+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1]
            self.assertTrue(int(ignored, 16) >> (signal.SIGXFSZ - 1) & 1, "a file that may not grow kills it")
            self.assertEqual(server.end()[0], 0)

    def test_a_worker_opens_ucx_before_it_has_threads(self):
        dispatcher = self.dispatcher()
        worker = self.start("worker", "--dispatcher-address", f"localhost:{dispatcher.port}", "--ucx-lanes", "tcp",
                            env={"PENSTOCK_UCX_MODULE": os.environ["UCX_THREADS_MODULE"]})
        _, err = worker.end()
        counts = re.findall(r"ucx opened by a process of (\d+) thread", err)
        self.assertEqual(counts[:1], ["1"], err)  # a later request opens it again, because there is none

    def test_top_shows_tables_and_redraws_them(self):
        dispatcher = self.dispatcher()
        workers = [self.worker(dispatcher) for _ in range(2)]
        top = self.start("top", "--interval-ms", 20, "--dispatcher-address", f"localhost:{dispatcher.port}")
        anew = "\033[H\033[J"
        text = top.line + "\n"
        while text.count(anew) < 3:
            line = top.process.stdout.readline()
            self.assertTrue(line, "top ended by itself")
            text += line
        for screen in text.split(anew)[1:3]:
            overview, *tables = screen.strip().split("\n\n")
            self.assertRegex(overview, r"^release \S+, term 1, journal ")
            lines = [table.splitlines() for table in tables]
            heads = [re.split(r" {2,}", table[0].strip()) for table in lines]
            self.assertEqual(heads[0], ["WORKER", "ID", "PERMITS", "PARTITIONS", "STATE", "SILENT"])
            self.assertEqual([(head[0], head[1]) for head in heads[1:]],
                             [("JOB", "NAME"), ("JOB", "TRAINERS BUSY"), ("JOB", "CLIENT"), ("JOB", "CLIENT")])
            self.assertEqual(heads[4][2:5], ["READS", "WORKER", "PROTOCOL"])
            self.assertEqual([len(table) for table in lines], [3, 1, 1, 1, 1])
            starts = [lines[0][0].index(word) for word in heads[0]]
            for row in lines[0][1:]:  # each cell is under its head
                cells = [row[a:b].strip() for a, b in zip(starts, [*starts[1:], None])]
                self.assertRegex(cells[0], r"^localhost:\d+$")
                self.assertRegex(cells[1], r"^[0-9a-f]{16}$")
                self.assertEqual(cells[3:5], ["0", "ready"])
            self.assertEqual({row.split()[0] for row in lines[0][1:]}, {f"localhost:{w.port}" for w in workers})
        top.end(signal.SIGINT)

    def test_servers_show_their_metrics(self):
        dispatcher = self.dispatcher("--metrics-port", 0)
        self.worker(dispatcher)
        self.assertGreater(dispatcher.metrics()["penstock_journal_records_total"], 0)
        self.assertNotIn("metrics", self.dispatcher().line)

    def test_a_port_that_is_none_is_refused(self):
        for flag in ("--port", "--metrics-port"):
            self.assert_fails(run("dispatcher", flag, 70000), "INVALID_ARGUMENT", 70000)
            self.assert_fails(run("worker", "--dispatcher-address", "localhost:1", flag, 70000),
                              "INVALID_ARGUMENT", 70000)

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assert_fails(run("dispatcher", "--host", "127.0.0.1", "--port", port), "UNAVAILABLE", port)
            dispatcher = self.dispatcher()
            self.assert_fails(run("worker", "--dispatcher-address", f"localhost:{dispatcher.port}",
                                  "--host", "127.0.0.1", "--port", port), "UNAVAILABLE", port)

    def test_a_dispatcher_out_of_reach_is_named_within_the_timeout(self):
        with socket.socket() as closed:  # bound, but refuses connections
            closed.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{closed.getsockname()[1]}"
            self.assert_fails(run("status", "--dispatcher-address", address, "--timeout-ms", 300),
                              "UNAVAILABLE", address)
            self.assert_fails(run("worker", "--dispatcher-address", address,
                                  "--dispatcher-timeout-ms", 300), "UNAVAILABLE", address, "refused")

    def test_a_worker_that_waits_for_its_dispatcher_says_so_and_ends_on_ctrl_c(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{closed.getsockname()[1]}"
            worker = subprocess.Popen([PENSTOCK, "worker", "--dispatcher-address", address],
                                      stderr=subprocess.PIPE, text=True)
            self.addCleanup(worker.stderr.close)
            self.addCleanup(worker.kill)
            said = next(line for line in worker.stderr if " not_offered " not in line)
            self.assertRegex(said, f' waits for="the dispatcher at {address}: .*refused')
            worker.send_signal(signal.SIGINT)
            self.assertEqual(worker.wait(timeout=BOUND), -signal.SIGINT)

    def test_an_unknown_protocol_lists_the_known_ones(self):
        dispatcher = self.dispatcher()
        self.assert_fails(run("worker", "--dispatcher-address", f"localhost:{dispatcher.port}",
                              "--data-transfer-protocol", "carrier_pigeon"),
                          "NOT_FOUND", "carrier_pigeon", "grpc")

    def test_the_name_of_a_flag_before_0_9_has_the_same_effect(self):
        missing = "/nowhere/libnumbers.so"
        for flag in ("--plugins", "--plugin"):
            self.assert_fails(run("worker", "--dispatcher-address", "localhost:1", flag, missing), "NOT_FOUND", missing)

    def test_a_worker_whose_protocol_cannot_run_here_takes_its_fallback_and_says_so(self):
        dispatcher = self.dispatcher()
        worker = self.worker(dispatcher, "--data-transfer-protocol", "carrier_pigeon", "--fallback", "tcp")
        code, err = worker.end()
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"fell_back from=carrier_pigeon to=tcp reason=.*not in this build")
        self.assert_fails(run("worker", "--dispatcher-address", f"localhost:{dispatcher.port}",
                              "--data-transfer-protocol", "carrier_pigeon", "--fallback", "dove"),
                          "NOT_FOUND", "carrier_pigeon", "dove")

    def test_links_of_a_cluster_without_clients_are_none(self):
        at = ["--dispatcher-address", f"localhost:{self.dispatcher().port}"]
        code, out, err = run("links", *at)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(out.splitlines()), 1)
        for word in ("CLIENT", "WORKER", "PROTOCOL", "GB/S", "CREDITS", "IN PLACE", "REASON"):
            self.assertIn(word, out)
        code, out, err = run("links", "--json", *at)
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out), [])

    def test_trace_of_a_cluster_without_workers_is_empty(self):
        at = ["--dispatcher-address", f"localhost:{self.dispatcher().port}"]
        code, out, err = run("trace", *at)
        self.assertEqual(code, 0, err)
        self.assertEqual(out.split(), "DATASET NODE ELEMENTS GB BUSY S SHARE US/ELEMENT WAITING S CALLS AHEAD".split())
        code, out, err = run("trace", "--json", *at)
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out), [])

    def test_jobs_and_datasets_that_are_not_there(self):
        dispatcher = self.dispatcher()
        at = ["--dispatcher-address", f"localhost:{dispatcher.port}"]
        self.assertEqual(run("jobs", "list", *at)[0], 0)
        self.assertEqual(run("datasets", "list", *at)[0], 0)
        for action in ("show", "cancel", "remove"):
            self.assert_fails(run("jobs", action, "nobody", *at), "NOT_FOUND", "nobody")
        self.assert_fails(run("datasets", "unregister", "nothing", *at), "NOT_FOUND", "nothing")
        self.assert_fails(run("datasets", "explain", "nothing", *at), "NOT_FOUND", "nothing")

    # --- The journal ----------------------------------------------------------------

    def journaled(self):
        return self.dispatcher("--work-dir", self.folder / "journal", "--fault-tolerant-mode")

    # --- Who may do what ----------------------------------------------------------

    def test_a_token_lets_a_process_in(self):
        token, auth = self.folder / "token", self.folder / "auth.toml"
        code, line, err = run("auth", "token", token)
        self.assertEqual(code, 0, err)
        self.assertEqual(token.stat().st_mode & 0o777, 0o600)
        digest = hashlib.sha256(token.read_text().strip().encode()).hexdigest()
        self.assertEqual(line, f'tokens = ["sha256:{digest}"]\n')
        self.assert_fails(run("auth", "token", token), "ALREADY_EXISTS", token)
        link, elsewhere = self.folder / "link", self.folder / "elsewhere"
        link.symlink_to(elsewhere)
        self.assert_fails(run("auth", "token", link), "ALREADY_EXISTS", link)
        self.assertFalse(elsewhere.exists())

        auth.write_text(f'[admin]\nrole = "operator"\n{line}')
        dispatcher = self.dispatcher("--auth-file", auth)
        address = f"localhost:{dispatcher.port}"
        status = ("status", "--dispatcher-address", address)
        self.assert_fails(run(*status), "UNAUTHENTICATED", "PENSTOCK_TOKEN_FILE")
        self.assertEqual(run(*status, "--token-file", token)[0], 0)
        code, out, err = run(*status, "--namespace", "vision", env={"PENSTOCK_TOKEN_FILE": str(token)})
        self.assertEqual(code, 0, err)
        self.assertIn("OWNER", out)
        self.assert_fails(run("worker", "--dispatcher-address", address, "--token-file", token), "PERMISSION_DENIED",
                          "admin")
        auth.write_text('[admin]\nrole = "king"\n')
        self.assert_fails(run("dispatcher", "--port", 0, "--auth-file", auth), "INVALID_ARGUMENT", f"{auth}:2: role")

    def test_the_upgrade_shows_the_releases_and_is_finalised(self):
        dispatcher = self.dispatcher()
        self.worker(dispatcher)
        release = re.match(r"penstock (\S+)", run("version")[1])[1]
        for action in ("status", "finalise"):
            code, out, err = run("upgrade", action, "--dispatcher-address", f"localhost:{dispatcher.port}")
            self.assertEqual(code, 0, err)
            self.assertRegex(out, rf"^dispatcher {re.escape(release)}, control versions \d+ to \d+\n")
            self.assertRegex(out, r"\njournal format (\d+), newest \1\n")  # of a new journal
            self.assertRegex(out, rf"\nworkers +{re.escape(release)} +\d+ +1\n")

    def test_a_dispatcher_that_everybody_can_reach_says_so(self):
        token, auth = self.folder / "token", self.folder / "auth.toml"
        auth.write_text(f'[admin]\nrole = "operator"\n{run("auth", "token", token)[1]}')
        for options, says in ((["--host", "0.0.0.0"], True), (["--host", "127.0.0.1"], False),
                              (["--host", "0.0.0.0", "--auth-file", auth], False)):
            _, err = self.dispatcher(*options).end()
            self.assertEqual(" open_to_all host=0.0.0.0 " in err, says, err)

    def test_a_second_dispatcher_on_the_same_journal_refuses_to_start(self):
        self.journaled()
        self.assert_fails(run("dispatcher", "--port", 0, "--work-dir", self.folder / "journal",
                              "--fault-tolerant-mode"), "FAILED_PRECONDITION", self.folder / "journal")

    def test_a_killed_dispatcher_starts_again_from_its_journal(self):
        first = self.journaled()
        self.worker(first)
        first.kill()
        self.journaled()
        code, out, err = run("journal", "verify", self.folder / "journal")
        self.assertEqual(code, 0, err)
        self.assertIn("ok:", out)

    def test_the_journal_is_shown_and_its_damage_named(self):
        dispatcher = self.journaled()
        for _ in range(3):
            self.worker(dispatcher).end(signal.SIGINT)
        journal = self.folder / "journal"
        code, shown, err = run("journal", "print", journal)  # while the dispatcher runs
        self.assertEqual(code, 0, err)
        self.assertGreaterEqual(len(shown.splitlines()), 3)
        dispatcher.kill()
        code, out, err = run("journal", "repair", journal)
        self.assertEqual(code, 0, err)
        self.assertIn("ok:", out)

        log = max(journal.glob("changes-*.log"), key=lambda path: path.stat().st_size)
        content = bytearray(log.read_bytes())
        content[16 + 32] ^= 1  # the first record, after both headers
        log.write_bytes(content)
        for action in ("print", "verify", "repair"):
            self.assert_fails(run("journal", action, journal), "DATA_LOSS", "record 1")
        self.assert_fails(run("dispatcher", "--port", 0, "--work-dir", journal,
                              "--fault-tolerant-mode"), "DATA_LOSS", "record 1")

    def test_a_record_that_does_not_fit_is_named_and_can_be_passed_over(self):
        self.journaled().kill()
        journal = self.folder / "journal"
        code, shown, err = run("journal", "print", journal)
        self.assertEqual(code, 0, err)
        number = int(shown.splitlines()[-1].split()[0]) + 1
        # docs/journal.md: a record in which an unknown worker leaves.
        change = b"\x71" + struct.pack("<Q", 99)
        body = b"\x0a" + bytes([len(change)]) + change
        head = b"PSRK" + struct.pack("<IQQI", len(body), number, number, zlib.crc32(body))
        with open(max(journal.glob("changes-*.log")), "ab") as log:
            log.write(head + struct.pack("<I", zlib.crc32(head)) + body)
        for command in (["journal", "verify", journal], ["journal", "repair", journal],
                        ["dispatcher", "--port", 0, "--work-dir", journal, "--fault-tolerant-mode"]):
            self.assert_fails(run(*command), "DATA_LOSS", f"record {number}")
        self.assertIn("--end-jobs", run("journal", "repair", journal)[2])
        code, out, err = run("journal", "repair", "--end-jobs", journal)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, f"record {number}: .*skipped")
        self.assertIn("ok:", out)
        self.worker(self.journaled())

    def test_a_journal_of_a_newer_release_is_refused(self):
        self.journaled().end()
        journal = self.folder / "journal"
        with contextlib.closing(sqlite3.connect(journal / "journal.db")) as db:
            db.execute("PRAGMA user_version = 1000")
        for args in (["dispatcher", "--port", 0, "--fault-tolerant-mode", "--work-dir", journal],
                     ["journal", "verify", journal]):
            self.assert_fails(run(*args), "FAILED_PRECONDITION", journal, "1000")

    def test_a_directory_without_a_journal_is_named_and_left_alone(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for action in ("print", "verify", "repair"):
            self.assert_fails(run("journal", action, self.folder / "nowhere"), "NOT_FOUND", "nowhere")
            self.assert_fails(run("journal", action, empty), "NOT_FOUND", "no journal", empty)
        self.assertEqual(list(empty.iterdir()), [])


class DoctorTest(unittest.TestCase):
    """Whatever machine this runs on: properties of each."""

    def examine(self, *args):
        """Runs the doctor; returns (exit code, the JSON object)."""
        code, out, err = run("doctor", "--json", *args)
        self.assertEqual(err, "")
        return code, json.loads(out)

    def test_the_exit_code_is_the_worst_finding(self):
        code, report = self.examine()
        worst = max(("ok", "note", "warning", "error").index(f["severity"]) for f in report["findings"])
        self.assertEqual(code, max(0, worst - 1))
        self.assertEqual(report["exit_code"], code)

    def test_errors_name_the_reason_and_the_remedy(self):
        for finding in self.examine()[1]["findings"]:
            self.assertTrue(finding["what"], finding)
            self.assertEqual(finding["severity"] == "ok", not finding["why"], finding)
            self.assertEqual(finding["severity"] == "ok", not finding["remedy"], finding)

    def test_it_shows_the_rdma_devices_of_the_kernel(self):
        kernel = pathlib.Path("/sys/class/infiniband")
        names = sorted(f.name for f in kernel.iterdir()) if kernel.is_dir() else []
        _, report = self.examine()
        unlisted = [f for f in report["findings"] if f["id"] == "rdma.no_provider"]
        self.assertEqual(len(report["rdma_devices"]) + len(unlisted), len(names))

    def test_a_protocol_that_cannot_work_is_an_error(self):
        code, report = self.examine("--protocol", "ucx")
        if any(p["state"] == "active" for d in report["rdma_devices"] for p in d["ports"]):
            self.skipTest("this machine has RDMA")
        self.assertEqual(code, 2)
        self.assertTrue(any(f["blocks"] and f["severity"] == "error" for f in report["findings"]))

    def test_an_unknown_protocol_lists_the_known(self):
        code, _, err = run("doctor", "--protocol", "pigeon")
        self.assertEqual(code, 2)
        for name in ("local", "shm", "ucx", "tcp", "grpc"):
            self.assertIn(name, err)

    def test_the_text_counts_in_its_last_line(self):
        code, out, _ = run("doctor")
        errors, warnings, _ = map(int, re.fullmatch(
            r"(\d+) errors?, (\d+) warnings?, (\d+) notes?", out.splitlines()[-1]).groups())
        self.assertEqual(code, 2 if errors else 1 if warnings else 0)


if __name__ == "__main__":
    PENSTOCK = sys.argv.pop(1)
    unittest.main()
