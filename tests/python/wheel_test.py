# SPDX-License-Identifier: Apache-2.0
"""The wheel in an environment of its own: all examples of README.md run there, with no library of the system but
those that every system has.

`./run wheel` makes it; skipped where its tools are not available.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
ROOT = pathlib.Path(__file__).parents[2]
# From manylinux, PEP 600.
EVERYWHERE = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|libz)\.so")
UCX = re.compile(r"^libuc[pstm]\.so")
BARE = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PENSTOCK", "LD_"))}


def run(*command, cwd, **options):
    done = subprocess.run(command, cwd=cwd, env=BARE, capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Wheel(unittest.TestCase):
    def python(self, program):
        return run(home / "bin/python", "-c", program, cwd=home)

    def test_the_readmes_quick_start(self):
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
        sums = [int(line) for line in self.python("\n".join(blocks)).split()]
        self.assertEqual((len(sums), sum(sums)), (20, 2000000))

    def test_it_is_the_one_that_was_installed(self):
        self.assertTrue(self.python("import penstock as ps; print(ps.__file__)").startswith(str(home)))

    def test_the_command(self):
        version = self.python("import penstock as ps; print(ps.__version__)").strip()
        self.assertEqual(run(home / "bin/penstock", "--version", cwd=home).strip(), f"penstock {version}")
        self.assertIn("dispatcher", run(home / "bin/penstock", "--help", cwd=home))

    def test_it_is_typed(self):
        self.assertTrue((package / "py.typed").exists())

    def test_it_holds_what_it_needs(self):
        programs = [package / "bin/penstock", *package.glob("_core*.so"), *package.glob("lib/penstock/*.so")]
        self.assertGreaterEqual(len(programs), 2)
        for program in programs:
            needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", program, cwd=home))
            self.assertTrue(needed)
            for library in needed:
                if UCX.match(library):
                    self.assertEqual(program.name, "libpenstock_ucx.so")
        # Including the libraries that those need in turn; none may be the system's.
        for program in programs:
            if program.name == "libpenstock_ucx.so":
                continue
            for name, path in re.findall(r"^\s*(\S+) => (.*?)(?: \(0x.*)?$", run("ldd", program, cwd=home), re.M):
                if not EVERYWHERE.match(name):
                    self.assertIn("penstock.libs", path, f"{program} takes {name} from {path}")

    def test_ucx_is_the_systems(self):
        plugin = package / "lib/penstock/libpenstock_ucx.so"
        if not plugin.exists():
            self.skipTest("built without UCX")
        (ucp,) = re.findall(r"libucp\.so\.0 => (\S+)", run("ldd", plugin, cwd=home))
        program = (
            "import penstock as ps\n"
            "service = ps.data.service\n"
            "dispatcher = service.DispatchServer()\n"
            "address = dispatcher.target.split('://')[1]\n"
            "try:\n"
            "  worker = service.WorkerServer(service.WorkerConfig(address, data_transfer_protocol='ucx', ucx_lanes='tcp'))\n"
            "  print('opened')\n"
            "except ps.errors.Error as error: print(error)\n"
        )
        self.assertIn("opened", self.python(program))
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        without = 'mount --bind /dev/null "$0" && exec "$@"'
        if subprocess.run(["unshare", "--mount", *user, "true"], capture_output=True).returncode != 0:
            self.skipTest("a file cannot be hidden here: unshare --mount fails")
        said = run("unshare", "--mount", *user, "sh", "-c", without, ucp, home / "bin/python", "-c", program, cwd=home)
        self.assertIn("cannot load UCX", said)
        self.assertIn("install it", said)


def install(folder):
    """Makes an environment with the wheel; None if the tools for that are not available."""
    made = subprocess.run([ROOT / "run", "wheel"], capture_output=True, text=True, cwd=ROOT)
    if made.returncode != 0:
        said = made.stdout + made.stderr
        if re.search(r"No matching distribution|Could not fetch|Temporary failure in name|NewConnectionError", said):
            print(f"skipped: the tools for wheels cannot be had: {said[-500:]}")
            sys.exit(SKIPPED)
        sys.exit(f"./run wheel failed: {said[-4000:]}")
    home = folder / "environment"
    run(sys.executable, "-m", "venv", home, cwd=folder)
    run(home / "bin/pip", "install", "-q", made.stdout.split()[-1], cwd=ROOT)
    return home


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = install(pathlib.Path(folder).resolve())
        (package,) = home.glob("lib/python3*/site-packages/penstock")
        unittest.main(exit=True)
