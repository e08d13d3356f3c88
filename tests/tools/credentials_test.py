#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock credentials`: the files that it makes, and a cluster with TLS and roles that uses them (docs/security.md).

    credentials_test.py PENSTOCK [unittest arguments]
"""
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import command_test
from command_test import BOUND, run

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.csv"


def openssl(*args):
    """Runs the openssl command; returns its output, which includes errors."""
    done = subprocess.run(["openssl", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=BOUND, check=False)
    return done.stdout


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.above = pathlib.Path(temporary.name)
        self.folder = self.above / "made" / "credentials"

    def init(self, *args):
        return run("credentials", "init", self.folder, *args)

    def make(self, *args):
        code, out, err = self.init("--hosts", "head,node7,10.0.0.4", *args)
        self.assertEqual(code, 0, err)
        return out

    def assert_refused(self, result, code, *words):
        returncode, _, err = result
        self.assertEqual(returncode, 1, err)
        for word in (f"({code})", *words):
            self.assertIn(str(word), err)

    def read(self, name):
        return (self.folder / name).read_text()

    def contents(self):
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}


class FilesTest(Folder):
    def test_only_the_owner_can_read_the_files(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.make()
        self.assertEqual(self.folder.stat().st_mode & 0o777, 0o700)
        modes = {path.name: path.stat().st_mode & 0o777 for path in self.folder.iterdir()}
        self.assertEqual(modes, dict.fromkeys(
            ["auth.toml", "ca.key", "ca.pem", "dispatcher.key", "dispatcher.pem", "dispatcher.toml", "operator.env",
             "operator.token", "trainer.token", "trainer.toml", "worker.key", "worker.pem", "worker.toml",
             "worker.token"], 0o600))

    def test_nothing_is_overwritten(self):
        self.make()
        before = self.contents()
        self.assert_refused(self.init("--hosts", "head"), "ALREADY_EXISTS", self.folder)
        self.assertEqual(self.contents(), before)
        self.folder = self.above / "empty"
        self.folder.mkdir()
        self.assert_refused(self.init("--hosts", "head"), "ALREADY_EXISTS", self.folder)
        self.assertEqual(self.contents(), {})

    def test_what_cannot_be_used_is_named_and_nothing_is_made(self):
        for args, word in ((["--hosts", "head:5050"], "'head:5050'"), (["--hosts", "head,10.0.0.256"], "'10.0.0.256'"),
                           (["--hosts", "head,[::1]"], "'[::1]'"),
                           (["--hosts", "node7", "--dispatcher-host", "head:5050"], "'head:5050'"),
                           (["--hosts", "head.rack.example,*.rack.example"], "'*.rack.example'"),
                           (["--hosts", "head", "--trainer", "a/b"], "'a/b'"),
                           (["--hosts", "head", "--trainer", "worker"], "'worker'"),
                           (["--hosts", "head", "--trainer", "dispatcher"], "'dispatcher'"),
                           (["--hosts", "head", "--trainer", "a", "--trainer", "a"], "'a'")):
            self.assert_refused(self.init(*args), "INVALID_ARGUMENT", word)
        for args in ([], ["--hosts", "head", "--days", "0"], ["--hosts", "head", "--days", "3650"],
                     ["--dispatcher-host", "head"]):
            self.assertEqual(self.init(*args)[0], 2)
        self.assertFalse(self.folder.parent.exists())

    def test_certificates_name_their_hosts_and_are_signed_by_the_authority(self):
        self.make("--days", 30)
        ca = self.folder / "ca.pem"
        self.assertIn("CA:TRUE", openssl("x509", "-in", ca, "-noout", "-ext", "basicConstraints"))
        own = {"dispatcher": [["-verify_hostname", "head"]],
               "worker": [["-verify_hostname", "node7"], ["-verify_ip", "10.0.0.4"]]}
        for name, others in (("dispatcher", "worker"), ("worker", "dispatcher")):
            certificate = self.folder / f"{name}.pem"
            for check in (*own[name], ["-verify_hostname", "localhost"], ["-verify_ip", "127.0.0.1"],
                          ["-verify_ip", "::1"]):
                self.assertIn(": OK", openssl("verify", "-x509_strict", "-CAfile", ca, *check, certificate))
            for check in (*own[others], ["-verify_hostname", "node8"]):
                self.assertIn("mismatch", openssl("verify", "-CAfile", ca, *check, certificate))
            self.assertIn(f"CN = {name}\n", openssl("x509", "-in", certificate, "-noout", "-subject"))
            self.assertIn("prime256v1", openssl("pkey", "-in", self.folder / f"{name}.key", "-noout", "-text"))
            for days, word in ((29, "will not expire"), (31, "will expire")):
                self.assertIn(word, openssl("x509", "-in", certificate, "-checkend", days * 86400))
        self.assertIn("will not expire", openssl("x509", "-in", ca, "-checkend", 3640 * 86400))

    def assert_hosts(self, name, hosts):
        shown = openssl("x509", "-in", self.folder / f"{name}.pem", "-noout", "-ext", "subjectAltName")
        self.assertEqual([host for host in re.findall(r"(?:DNS|IP Address):([^,\s]+)", shown)
                          if host not in ("localhost", "127.0.0.1", "0:0:0:0:0:0:0:1")], hosts)

    def test_only_the_dispatchers_certificate_names_its_host(self):
        self.make("--dispatcher-host", "10.0.0.4,HEAD")
        self.assert_hosts("dispatcher", ["10.0.0.4", "HEAD"])
        self.assert_hosts("worker", ["node7"])
        self.assertIn('"grpcs://10.0.0.4:5050"', self.read("worker.toml"))
        self.assertIn("grpcs://10.0.0.4:5050", self.read("operator.env"))
        code, _, err = run("credentials", "renew", self.folder, "--hosts", "node8,node9", "--dispatcher-host", "head2")
        self.assertEqual(code, 0, err)
        self.assert_hosts("dispatcher", ["head2"])
        self.assert_hosts("worker", ["node8", "node9"])
        self.assertEqual(run("credentials", "renew", self.folder, "--dispatcher-host", "head")[0], 2)

    def test_the_auth_file_contains_no_token(self):
        self.make("--trainer", "vision", "--trainer", "text")
        tokens = {path.name: path.read_text().strip() for path in self.folder.glob("*.token")}
        self.assertEqual(set(tokens), {"worker.token", "operator.token", "vision.token", "text.token"})
        self.assertEqual(len(set(tokens.values())), 4)
        for token in tokens.values():
            self.assertRegex(token, r"^[0-9a-f]{64}$")
            self.assertNotIn(token, self.read("auth.toml"))
        self.assertEqual(re.findall(r"^\[(.*)\]\nrole = \"(.*)\"", self.read("auth.toml"), re.M),
                         [("worker", "worker"), ("operator", "operator"), ("vision", "trainer"), ("text", "trainer")])

    def test_a_folder_with_quotes_in_its_name_is_named_correctly(self):
        self.folder = self.above / "it's \"quoted\" \\ here"
        self.make()
        self.assertIn('\\"quoted\\" \\\\ here/ca.pem"\n', self.read("trainer.toml"))
        shown = subprocess.run(["sh", "-c", '. "$0" && cat "$PENSTOCK_TLS_CA"', self.folder / "operator.env"],
                               capture_output=True, text=True, timeout=BOUND, check=True)
        self.assertEqual(shown.stdout, self.read("ca.pem"))

    def test_the_folder_may_follow_the_options(self):
        code, _, err = run("credentials", "init", "--hosts", "head", "--trainer", "vision", self.folder)
        self.assertEqual(code, 0, err)
        self.assertTrue((self.folder / "vision.toml").exists())

    def test_a_principal_is_added_once(self):
        self.make()
        code, _, err = run("credentials", "add", self.folder, "vision", "--namespaces", "vision,tests")
        self.assertEqual(code, 0, err)
        self.assertIn('[vision]\nrole = "trainer"\n', self.read("auth.toml"))
        self.assertIn('namespaces = ["vision", "tests"]\n', self.read("auth.toml"))
        self.assertEqual((self.folder / "vision.token").stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.read("vision.toml"), self.read("trainer.toml").replace("trainer.to", "vision.to"))
        self.assertEqual(run("credentials", "add", self.folder, "rack9", "--role", "worker")[0], 0)
        self.assertFalse((self.folder / "rack9.toml").exists())
        before = self.contents()
        self.assert_refused(run("credentials", "add", self.folder, "vision"), "ALREADY_EXISTS", "auth.toml:", "vision")
        self.assert_refused(run("credentials", "add", self.folder, "ca"), "INVALID_ARGUMENT", "'ca'")
        self.assert_refused(run("credentials", "add", self.folder, "rack10", "--role", "worker", "--namespaces", "a"),
                            "INVALID_ARGUMENT", "namespaces")
        self.assert_refused(run("credentials", "add", self.above, "vision"), "NOT_FOUND", self.above)
        self.assertEqual(self.contents(), before)

    def test_a_replaced_file_keeps_its_owner_and_mode(self):
        self.make()
        owner = (65534, 65533) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        replaced = ("auth.toml", "dispatcher.pem", "worker.pem")
        for name in replaced:
            (self.folder / name).chmod(0o640)
            os.chown(self.folder / name, *owner)
        self.assertEqual(run("credentials", "add", self.folder, "vision")[0], 0)
        self.assertEqual(run("credentials", "renew", self.folder)[0], 0)
        for name in replaced:
            status = (self.folder / name).stat()
            self.assertEqual((name, status.st_mode & 0o777, status.st_uid, status.st_gid), (name, 0o640, *owner))
        self.assertEqual((self.folder / "vision.token").stat().st_mode & 0o777, 0o600)

    def test_renewed_certificates_keep_their_keys_and_hosts(self):
        self.make("--days", 1)
        before = self.contents()
        code, out, err = run("credentials", "renew", self.folder, "--days", 60)
        self.assertEqual(code, 0, err)
        self.assertIn("dispatcher.pem anew, for head, localhost", out)
        self.assertIn("worker.pem anew, for node7, 10.0.0.4, localhost", out)
        after = self.contents()
        self.assertEqual({name for name in after if after[name] != before[name]}, {"dispatcher.pem", "worker.pem"})
        worker = self.folder / "worker.pem"
        self.assertIn("will not expire", openssl("x509", "-in", worker, "-checkend", 59 * 86400))
        for host, word in (("node7", ": OK"), ("node8", "mismatch")):
            self.assertIn(word, openssl("verify", "-CAfile", self.folder / "ca.pem", "-verify_hostname", host, worker))
        self.assertEqual(openssl("x509", "-in", worker, "-noout", "-pubkey"),
                         openssl("pkey", "-in", self.folder / "worker.key", "-pubout"))
        self.assertEqual(run("credentials", "renew", self.folder, "--hosts", "head,node8")[0], 0)
        for host, word in (("node7", "mismatch"), ("node8", ": OK"), ("localhost", ": OK")):
            self.assertIn(word, openssl("verify", "-CAfile", self.folder / "ca.pem", "-verify_hostname", host, worker))


class Cluster(Folder):
    """A dispatcher that runs with the files that were made."""

    def setUp(self):
        super().setUp()
        self.bin = pathlib.Path(command_test.PENSTOCK).parent
        self.data = self.above / "data"
        self.data.mkdir()
        subprocess.run([self.bin / "digits_make_shards", DIGITS, self.data, "2"], check=True, timeout=BOUND)
        self.make()
        self.dispatcher = self.start("dispatcher", "--config", self.folder / "dispatcher.toml", "--port", 0)
        self.service = f"grpcs://localhost:{self.dispatcher.port}"
        self.worker_flags = ["--dispatcher-address", self.service, "--worker-address", "localhost:%port%", "--files-allow",
                             f"{self.data}/"]

    def start(self, *args):
        server = command_test.Server(*args, env={"PENSTOCK_EVENTS": "off"})  # nobody reads them meanwhile
        self.addCleanup(server.kill)
        self.assertTrue(server.line, server.process.stderr.read() if server.process.poll() else "")
        return server

    def train(self, **env):
        """Reads the data once, with variables that name files of the folder; returns (exit code, end of the output)."""
        with tempfile.TemporaryDirectory(dir=self.above) as folder:
            done = subprocess.run(
                [self.bin / "digits_trainer", "--service", self.service, "--files", f"{self.data}/*", "--job",
                 pathlib.Path(folder).name, "--log", f"{folder}/log", "--checkpoint", f"{folder}/state", "--epochs", "1",
                 "--step-ms", "0", "--protocol", "grpc"],
                env={**os.environ, **{variable: str(self.folder / name) for variable, name in env.items()}},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BOUND, check=False)
            log = pathlib.Path(folder, "log").read_text() if done.returncode == 0 else ""
        if done.returncode == 0:
            self.assertTrue(log.endswith("end\n"), log)
        return done.returncode, done.stdout[-2000:]


class ClusterTest(Cluster):
    """A dispatcher and a worker."""

    def test_a_trainer_reads_with_its_token_and_is_refused_without(self):
        self.start("worker", "--config", self.folder / "worker.toml", *self.worker_flags)
        code, out = self.train(PENSTOCK_CONFIG="trainer.toml")
        self.assertEqual(code, 0, out)
        code, out = self.train(PENSTOCK_TLS_CA="ca.pem")
        self.assertNotEqual(code, 0, out)
        self.assertIn("token_file", out)

    def test_a_trainer_that_is_added_may_read_at_once(self):
        self.start("worker", "--config", self.folder / "worker.toml", *self.worker_flags)
        self.assertEqual(run("credentials", "add", self.folder, "vision")[0], 0)
        deadline = time.monotonic() + BOUND
        while True:
            code, out = self.train(PENSTOCK_CONFIG="vision.toml")
            if code == 0:
                break
            self.assertIn("auth_file does not contain the token", out)  # until the dispatcher looks at the file again
            self.assertLess(time.monotonic(), deadline, out)

    def test_a_trainers_token_is_no_workers_token(self):
        code, _, err = run("worker", "--config", self.folder / "worker.toml", "--token-file",
                           self.folder / "trainer.token", *self.worker_flags)
        self.assertEqual(code, 1)
        self.assertIn("(PERMISSION_DENIED)", err)

    def test_an_operator_sees_the_status_and_a_stranger_does_not(self):
        script = f'. "{self.folder}/operator.env" && "$0" status --dispatcher-address "$1"'
        done = subprocess.run(["sh", "-c", script, command_test.PENSTOCK, self.service], capture_output=True, text=True,
                              timeout=BOUND, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("WORKER", done.stdout)
        self.assert_refused(run("status", "--dispatcher-address", self.service, "--tls-ca", self.folder / "ca.pem"),
                            "UNAUTHENTICATED", "token_file")


class RenewalTest(Cluster):
    """Files are replaced while trainers read. Run as a test of its own, because it is slow."""

    TRAINERS = 4

    def setUp(self):
        super().setUp()
        self.worker = self.start("worker", "--config", self.folder / "worker.toml", *self.worker_flags)
        self.trainers = [self.begin(f"trainer{i}") for i in range(self.TRAINERS)]
        self.assert_all_read("before the first change")

    def begin(self, name):
        """Starts a trainer that reads until it is killed; returns its process and its log."""
        log, out = self.above / f"{name}.log", open(self.above / f"{name}.out", "w", encoding="utf-8")
        self.addCleanup(out.close)
        process = subprocess.Popen(
            [self.bin / "digits_trainer", "--service", self.service, "--files", f"{self.data}/*", "--job", name, "--log", log,
             "--checkpoint", self.above / f"{name}.state", "--epochs", "100000", "--step-ms", "20", "--protocol", "grpc"],
            env={**os.environ, "PENSTOCK_CONFIG": str(self.folder / "trainer.toml")}, stdout=out, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, log

    def assert_all_read(self, when):
        """Each trainer gets further elements, in the process that it began with."""
        size = {log: log.stat().st_size if log.exists() else 0 for _, log in self.trainers}
        deadline = time.monotonic() + BOUND
        for process, log in self.trainers:
            while not log.exists() or log.stat().st_size <= size[log]:
                self.assertIsNone(process.poll(), (when, log.with_suffix(".out").read_text()[-2000:]))
                self.assertLess(time.monotonic(), deadline, (when, log))
                time.sleep(0.05)

    def assert_served(self, when):
        """Running trainers read on, and both servers show the present certificates to a new one, which reads too."""
        self.assert_all_read(when)
        code, out = self.train(PENSTOCK_CONFIG="trainer.toml")
        self.assertEqual(code, 0, (when, out))
        for server, name in ((self.dispatcher, "dispatcher"), (self.worker, "worker")):
            shown = ssl.get_server_certificate(("localhost", server.port), timeout=BOUND)
            self.assertEqual(ssl.PEM_cert_to_DER_cert(shown), ssl.PEM_cert_to_DER_cert(self.read(f"{name}.pem")), when)

    def replace(self, name, text):
        new = self.folder / f"{name}.new"
        new.write_text(text)
        new.rename(self.folder / name)

    def test_renewed_certificates_break_no_reading(self):
        before = self.read("dispatcher.pem")
        for days in (60, 90):
            code, _, err = run("credentials", "renew", self.folder, "--days", days)
            self.assertEqual(code, 0, err)
            self.assertNotEqual(self.read("dispatcher.pem"), before)
            self.assert_served(f"renewed for {days} days")

    def test_a_new_authority_breaks_no_reading(self):
        """In the order of docs/security.md: both authorities, then keys and certificates, then the new authority alone."""
        new = self.above / "new"
        code, _, err = run("credentials", "init", new, "--hosts", "head,node7,10.0.0.4")
        self.assertEqual(code, 0, err)
        old_ca, new_ca = self.read("ca.pem"), (new / "ca.pem").read_text()
        for bundle in (old_ca + new_ca, new_ca + old_ca):
            self.replace("ca.pem", bundle)
            self.assert_served("both authorities, old certificates")
        for name in ("worker", "dispatcher"):
            self.replace(f"{name}.key", (new / f"{name}.key").read_text())
            self.assert_all_read("a key without its certificate")
            self.replace(f"{name}.pem", (new / f"{name}.pem").read_text())
            self.assert_served(f"both authorities, new certificate of the {name}")
        self.replace("ca.pem", new_ca)
        self.assert_served("the new authority")
        for server in (self.dispatcher, self.worker):
            with socket.create_connection(("localhost", server.port), timeout=BOUND) as connection, \
                    self.assertRaises(ssl.SSLCertVerificationError):
                ssl.create_default_context(cadata=old_ca).wrap_socket(connection, server_hostname="localhost")


if __name__ == "__main__":
    command_test.PENSTOCK = sys.argv.pop(1)
    unittest.main()
