# SPDX-License-Identifier: Apache-2.0
"""The contents of the virtual machines: an initramfs with our programs and all files that they open."""
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
PYTHON = pathlib.Path("/usr/bin/python3")
PROGRAMS = ("/usr/bin/ibv_devinfo", "/usr/bin/ibv_rc_pingpong", "/sbin/ip", "/sbin/tc", "/usr/bin/rdma")
# Opened at run time, so that ldd does not show them. libgcc_s ends threads.
OPENED = ("libgcc_s.so.1", "libibverbs.so.1", "libibverbs/librxe-rdmav34.so", "libucp.so.0",
          "ucx/libuct_ib.so.0", "ucx/libuct_rdmacm.so.0", "ucx/libuct_cma.so.0")
# Python modules that the programs in the guest and the demo import, and modules that those import late.
IMPORTS = ("demo, check, machine, pages, workers, workers_machine, trainer_machine, encodings.idna, encodings.ascii, "
           "encodings.latin_1, unittest.mock")
# Folders and links of every Debian.
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class Image:
    """A tree of files, in `folder`, that becomes the archive `file`."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder.with_suffix(".cpio")
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "tmp", "run", "root", "var"):
            (folder / name).mkdir(parents=True)
        for name, target in LINKS.items():
            (folder / name).symlink_to(target)

    def place(self, path):
        """Makes the folder for the guest's `path`; returns its place here."""
        place = self.folder / str(path).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def write(self, path, text):
        self.place(path).write_text(text)

    def copy(self, source, path=None):
        """Copies a file, to the same path unless told otherwise; links become the files that they point to."""
        place = self.place(path or source)
        if not place.exists():
            shutil.copy2(source, place)

    def add_program(self, source, path=None):
        """Adds a program or a library, without its symbols, and the libraries it is linked with."""
        place = self.place(path or source)
        if place.exists():
            return
        subprocess.run(["strip", "-o", place, source], check=True)
        linked = subprocess.run(["ldd", source], check=False, stdout=subprocess.PIPE, text=True).stdout
        if missing := re.findall(r"(\S+) => not found", linked):
            raise SystemExit(f"rdma: {source} needs {', '.join(missing)}, which this machine lacks")
        for library in re.findall(r"(/\S+) \(0x", linked):
            if not self.place(library).exists():
                shutil.copy2(library, self.place(library))

    def pack(self):
        """Packs without compression: the emulated processor would unpack it slower than it reads it."""
        names = subprocess.run(["find", ".", "-mindepth", "1", "-print0"], cwd=self.folder, check=True,
                               stdout=subprocess.PIPE).stdout
        with open(self.file, "wb") as archive:
            subprocess.run(["cpio", "-0", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=self.folder, check=True,
                           input=names, stdout=archive)
        shutil.rmtree(self.folder)


def add_python(image):
    """Adds the interpreter and the modules that the guest imports, compiled where Debian has compiled them."""
    source = (f"import sys; sys.path[:0] = ['{HERE}/guest', '{ROOT}/examples/digits']; import {IMPORTS}\n"
              "for module in list(sys.modules.values()):\n"
              "    for name in (getattr(module, '__file__', None), getattr(module, '__cached__', None)):\n"
              "        if name: print(name)")
    printed = subprocess.run([PYTHON, "-B", "-c", source], check=True, stdout=subprocess.PIPE, text=True).stdout
    files = [pathlib.Path(line) for line in printed.splitlines() if line.startswith("/usr/lib/python3")]
    for file in files:
        if file.suffix == ".so":
            image.add_program(file)
        elif file.exists():
            image.copy(file)
    image.add_program(PYTHON.resolve(), PYTHON)


def build(folder, kernel, build_folder, tests):
    """Makes the archive in `folder`: the programs of `build_folder`, and the tests that are given by path."""
    image = Image(folder)
    for name in ("penstock", "digits_make_shards", "digits_trainer", "digits_evaluate"):
        image.add_program(build_folder / "bin" / name, f"/penstock/bin/{name}")
    for module in (build_folder / "lib/penstock").glob("*.so"):
        image.add_program(module, f"/penstock/lib/penstock/{module.name}")
    for test in tests:
        image.add_program(test, f"/penstock/tests/{test.name}")
    for file in ("demo.py", "check.py", "processes.py", "digits.csv"):
        image.copy(ROOT / "examples/digits" / file, f"/penstock/examples/{file}")
    for file in (HERE / "guest").glob("*.py"):
        image.copy(file, f"/penstock/guest/{file.name}")
    for module in kernel.modules:
        image.copy(module, f"/modules/{module.name}")
    image.write("/modules/order", "".join(f"{module.name}\n" for module in kernel.modules))
    for program in PROGRAMS:
        image.add_program(program)
    for library in OPENED:
        image.add_program(LIBRARIES / library)
    add_python(image)
    image.copy("/usr/bin/busybox")
    image.copy(HERE / "guest/init", "/init")
    image.copy("/etc/libibverbs.d/rxe.driver")
    image.write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    image.write("/etc/nsswitch.conf", "hosts: files\n")
    image.write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    image.pack()
    return image.file
