#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bundle on a machine that has glibc, the files its kernel shows, and nothing else.

Makes the bundle of a build, unpacks it in a folder with glibc's files, and runs
its programs there, by chroot in a mount namespace of its own.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/digits"))
from processes import Process  # noqa: E402

SKIPPED = 77
GLIBC = re.compile(r"^(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libanl)[.-]")
# Run as sh -c: argument 0 is the bare root.
ENTER = 'for folder in proc sys dev; do mount --rbind "/$folder" "$0/$folder" || exit 1; done; exec chroot "$0" "$@"'


def inside(command):
    """Returns the command line that runs `command` in the bare root."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *user, "sh", "-c", ENTER, bare, *command]


def run(*command, env=None):
    """Runs a command; returns (exit code, standard output, standard error)."""
    done = subprocess.run(inside(command), capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], **(env or {})})
    return done.returncode, done.stdout, done.stderr


def make_bare_root(folder, build, ucx):
    """Makes a root with glibc, mount points, and the unpacked bundle in /penstock-bundle."""
    archive = folder / "penstock-bundle.tar.zst"
    subprocess.run([ROOT / "cmake/bundle.sh", build, archive, *ucx], check=True,
                   env={**os.environ, "PENSTOCK_BUNDLE_LEVEL": "1"})
    root = folder / "root"
    for name in ("proc", "sys", "dev", "tmp", "etc", "lib64", "lib/x86_64-linux-gnu"):
        (root / name).mkdir(parents=True)
    libraries = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True,
                               env={"PATH": "/sbin:/usr/sbin"}).stdout
    for name, path in re.findall(r"^\s*(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", libraries, re.MULTILINE):
        if GLIBC.match(name):
            shutil.copy(path, root / ("lib64" if name.startswith("ld-") else "lib/x86_64-linux-gnu") / name)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    subprocess.run(f"zstd -q -d -c {archive} | tar -x -C {root}", shell=True, check=True)
    return root


class OnABareMachine(unittest.TestCase):
    def test_it_prints_its_version(self):
        code, out, err = run("/penstock-bundle/bin/penstock", "version")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^penstock \d+\.\d+\.\d+\n")
        self.assertIn("\ndevices ", out)

    def test_doctor_examines_it_and_finds_the_ucx_that_came_along(self):
        code, out, err = run("/penstock-bundle/bin/penstock", "doctor", "--json")
        report = json.loads(out)
        self.assertEqual(code, report["exit_code"], err)
        found = {finding["id"]: finding for finding in report["findings"]}
        if has_ucx:
            self.assertNotIn("ucx.not_found", found)
            self.assertTrue(any("/penstock-bundle/bin/../lib/libucp.so.0" in finding["what"]
                                for finding in found.values()), out)

    def test_a_test_that_came_along_passes(self):
        code, out, err = run("/penstock-bundle/tests/cuda_backend_test")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"\[  PASSED  \] [1-9]")

    def test_the_bench_measures_without_python(self):
        code, out, err = run("/penstock-bundle/bin/penstock", "bench", "Range", "--protocol", "local,shm", "--pairs", "1",
                             "--window", "0.05", "--json", "/tmp/bench.jsonl", "--html", "/tmp/bench.html")
        self.assertEqual(code, 0, err)
        self.assertIn("limit GB/s", out)
        self.assertIn("no page can be made here: cannot run python3: No such file", err)
        records = [json.loads(line) for line in (bare / "tmp/bench.jsonl").read_text().splitlines()]
        self.assertEqual([record["note"] for record in records if record.get("summary") and not record["gb_per_s"]], [])
        self.assertFalse((bare / "tmp/bench.html").exists())

    def test_its_gpu_part_says_of_each_step_how_it_ended(self):
        script = bare / "penstock-bundle/gpu-day"  # needs a shell, which a bare root lacks
        if not script.exists():
            self.skipTest("this bundle has no GPU part; ./run bundle --gpu")
        done = subprocess.run([script, bare / "tmp/day"], capture_output=True, text=True, timeout=200,
                              env={**os.environ, "PENSTOCK_BENCH": "--pairs 1 --window 0.05 --size 65536"})
        steps = [json.loads(line) for line in (bare / "tmp/day/gpu-day.json").read_text().splitlines()]
        results = {step["step"]: step["result"] for step in steps}
        self.assertEqual(results["measurements"], "passed", done.stdout + done.stderr)
        measured = [json.loads(line) for line in (bare / "tmp/day/gpu-report.json").read_text().splitlines()]
        self.assertGreater(len([row for row in measured if (row.get("gb_per_s") or 0) > 0]), 3)
        if done.returncode != 0:  # no GPU here
            self.assertEqual(results["cuda_gpu_test-ShmToGpu"], "failed")
            self.assertRegex((bare / "tmp/day/failures.txt").read_text(), "no GPU|driver")

    def test_a_trainer_reads_a_job_over_each_protocol(self):
        code, out, err = run("/penstock-bundle/bin/digits_make_shards",
                             "/penstock-bundle/share/penstock/examples/digits/digits.csv", "/tmp", "3")
        self.assertEqual(code, 0, out + err)
        penstock, processes = "/penstock-bundle/bin/penstock", []
        folder = bare.parent
        try:
            dispatcher = Process(folder, "dispatcher", inside([penstock, "dispatcher", "--port", "0"]))
            processes.append(dispatcher)
            port = dispatcher.wait_until_ready(r"ready at localhost:(\d+)")[1]
            ucx = {"PENSTOCK_UCX_LANES": "tcp"}
            worker = Process(folder, "worker", inside([penstock, "worker", "--dispatcher-address",
                             f"grpc://localhost:{port}", "--port", "0"]), ucx)
            processes.append(worker)
            worker.wait_until_ready(r"ready at localhost:\d+")
            for protocol in ["shm", "tcp", "grpc"] + (["ucx"] if has_ucx else []):
                with self.subTest(protocol):
                    code, out, err = run(
                        "/penstock-bundle/bin/digits_trainer", "--service", f"grpc://localhost:{port}",
                        "--files", "/tmp/train-*.tfrecord", "--job", f"digits-{protocol}", "--epochs", "1",
                        "--seed", "1", "--step-ms", "0", "--protocol", protocol, "--log", f"/tmp/{protocol}.log",
                        "--checkpoint", f"/tmp/{protocol}.checkpoint", env=ucx)
                    self.assertEqual(code, 0, out + err)
                    log = (bare / f"tmp/{protocol}.log").read_text()
                    rows = sum(len(line.split()) - 2 for line in log.splitlines() if line.startswith("batch "))
                    self.assertEqual(rows, 1497, out + err)
        finally:
            for process in reversed(processes):
                process.stop()

    def test_made_credentials_start_a_cluster_with_tls_and_roles(self):
        penstock, made, processes = "/penstock-bundle/bin/penstock", "/tmp/credentials", []
        code, _, err = run(penstock, "credentials", "init", made, "--hosts", "localhost")
        self.assertEqual(code, 0, err)
        try:
            dispatcher = Process(bare.parent, "secure-dispatcher", inside(
                [penstock, "dispatcher", "--config", f"{made}/dispatcher.toml", "--port", "0"]))
            processes.append(dispatcher)
            service = "grpcs://localhost:" + dispatcher.wait_until_ready(r"ready at [^ ]*:(\d+)")[1]
            worker = Process(bare.parent, "secure-worker", inside(
                [penstock, "worker", "--config", f"{made}/worker.toml", "--dispatcher-address", service,
                 "--worker-address", "localhost:%port%"]))
            processes.append(worker)
            address = worker.wait_until_ready(r"worker ready at (localhost:\d+)")[1]
            ca = {"PENSTOCK_TLS_CA": f"{made}/ca.pem", "PENSTOCK_DISPATCHER_ADDRESS": service}
            code, out, err = run(penstock, "status", env={**ca, "PENSTOCK_TOKEN_FILE": f"{made}/operator.token"})
            self.assertEqual(code, 0, err)
            self.assertIn(f"{address} ", out)
            self.assertEqual(run(penstock, "status", env=ca)[0], 1)
        finally:
            for process in reversed(processes):
                process.stop()


if __name__ == "__main__":
    build, ucx = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]  # in the form that cmake/bundle.sh takes
    missing = [tool for tool in ("patchelf", "strip", "zstd", "unshare") if not shutil.which(tool)]
    enters = subprocess.run(["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "true"],
                            capture_output=True, text=True) if not missing else None
    if missing or enters.returncode != 0:
        print(f"skipped: {', '.join(missing)} missing; ./run deps bundle" if missing else f"skipped: {enters.stderr}")
        sys.exit(1 if missing and os.environ.get("CI") == "true" else SKIPPED)
    with tempfile.TemporaryDirectory(prefix="penstock-bare-") as folder:
        bare = make_bare_root(pathlib.Path(folder), build, ucx)
        has_ucx = (bare / "penstock-bundle/lib/penstock/libpenstock_ucx.so").exists()
        unittest.main(argv=sys.argv[:1])
