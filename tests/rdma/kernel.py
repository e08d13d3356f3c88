# SPDX-License-Identifier: Apache-2.0
"""Debian's stock kernel and the modules that the virtual machines load.

Downloaded once, unpacked, never installed. The flavour for clouds has no
software RDMA, so it is the general one.
"""
import fcntl
import pathlib
import re
import shutil
import subprocess
import tempfile

# In the order of loading: the dependencies of a module come before it. crc32 is requested by name at run time, so
# depmod does not list it as a dependency of rdma_rxe.
MODULES = ("crc32_generic", "crc32-pclmul", "virtio_pci", "virtio_net", "dummy", "veth", "sch_netem",
           "ib_uverbs", "rdma_rxe", "rdma_ucm")
# The package's folders in which these modules may be.
FOLDERS = ("arch/x86/crypto", "crypto", "drivers/infiniband", "drivers/net", "drivers/virtio", "fs/configfs", "lib",
           "net")


class Kernel:
    """image: the kernel to boot; modules: files, in the order of loading."""

    def __init__(self, folder):
        self.version = folder.name
        self.image = folder / f"boot/vmlinuz-{self.version}"
        self.modules = [pathlib.Path(line.split()[1])
                        for line in (folder / "modules").read_text().splitlines()]


def out(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def package():
    """Returns the package of the newest kernel; security updates change its name."""
    depends = out("apt-cache", "depends", "linux-image-amd64")
    found = re.search(r"Depends: (linux-image-[0-9.]+-[0-9]+-amd64)$", depends, re.MULTILINE)
    if not found:
        raise SystemExit(f"rdma: apt finds no kernel package for linux-image-amd64; run apt-get update:\n{depends}")
    return found[1]


def get(cache):
    """Returns the kernel in the folder `cache`; downloads it if necessary."""
    name = package()
    folder = cache / name.removeprefix("linux-image-")
    cache.mkdir(parents=True, exist_ok=True)
    # Both scenes may start at once on a machine without a kernel: the second waits.
    with open(cache / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "modules").exists():
            with tempfile.TemporaryDirectory(dir=cache) as unpacked:
                unpack(name, pathlib.Path(unpacked) / folder.name)
                shutil.rmtree(folder, ignore_errors=True)
                (pathlib.Path(unpacked) / folder.name).rename(folder)
            write_order(folder)
    return Kernel(folder)


def unpack(name, folder):
    folder.mkdir()
    out("apt-get", "download", name, cwd=folder, stderr=subprocess.DEVNULL)
    (archive,) = folder.glob("*.deb")
    version = folder.name
    wanted = [f"./boot/vmlinuz-{version}", f"./lib/modules/{version}/modules.*"]
    wanted += [f"./lib/modules/{version}/kernel/{part}/*" for part in FOLDERS]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as files:
        out("tar", "-x", "-C", folder, "--wildcards", *wanted, stdin=files.stdout)
    archive.unlink()
    out("/sbin/depmod", "-b", folder, version)


def write_order(folder):
    """Writes the file `modules`, with each line of modprobe --show-depends once."""
    lines = {}
    for module in MODULES:
        shown = out("/sbin/modprobe", "-d", folder, "-S", folder.name, "--show-depends", module)
        lines.update(dict.fromkeys(line for line in shown.splitlines() if line.startswith("insmod ")))
    (folder / "modules").write_text("".join(f"{line}\n" for line in lines))
