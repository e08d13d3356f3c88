# SPDX-License-Identifier: Apache-2.0
"""A virtual machine, emulated in software: it needs no right of the host except to run qemu."""
import ctypes
import mmap
import os
import re
import subprocess
import time

QEMU = "qemu-system-x86_64"
# Mitigations and timer calibration cost an emulated processor seconds; on a busy host its timer comes too late for the
# kernel's check, which then panics.
COMMAND_LINE = "console=ttyS0 panic=-1 quiet tsc=reliable lpj=4000000 no_timer_check mitigations=off nopti"
READ_TSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"  # rdtsc; shl rdx, 32; or rax, rdx; ret
ENDED_WELL = 1  # qemu's exit code for a guest that ends with 0; 0 is a guest that crashed


def tsc_khz():
    """Returns the rate of this processor's TSC, which is also the guest's.

    A guest's own measurement of it on a busy host is wrong by factors, and its clock runs away.
    """
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(READ_TSC)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def sample():
        """Returns (width, nanoseconds, ticks) of the reading that was interrupted least."""
        def once():
            before, ticks, after = time.monotonic_ns(), read(), time.monotonic_ns()
            return after - before, before, ticks
        return min(once() for _ in range(100))
    _, began, first = sample()
    time.sleep(0.2)
    _, ended, last = sample()
    return round((last - first) * 1_000_000 / (ended - began))


def cable(path, end):
    """Returns the arguments of one of two machines joined through the socket `path`: end 0 listens, 1 connects."""
    server = "off" if end else "on"
    return ("-netdev", f"stream,id=cable,server={server},addr.type=unix,addr.path={path}",
            "-device",
            f"virtio-net-pci,bus=pcie.0,netdev=cable,mac=52:54:00:00:00:0{end + 1},host_mtu=9000,romfile=")


def two_nodes(cores):
    """Returns the arguments of a machine with two NUMA nodes, each with half of the cores and of 2 GiB.

    It has a second PCI bus, which belongs to the second node, with an empty root port.
    """
    nodes = []
    for node in range(2):
        first = node * cores // 2
        nodes += ["-object", f"memory-backend-ram,id=node{node},size=1G",
                  "-numa", f"node,nodeid={node},memdev=node{node},cpus={first}-{first + cores // 2 - 1}"]
    return [*nodes, "-device", "pxb-pcie,id=far,bus=pcie.0,bus_nr=128,numa_node=1",
            "-device", "pcie-root-port,bus=far,chassis=1"]


class Machine:
    """Runs the scene guest/SCENE.py; its output goes to the file `log`."""

    def __init__(self, kernel, image, scene, log, devices=()):
        self.scene, self.log = scene, log
        cores = min(4, 2 * (os.cpu_count() or 1))
        command = [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(cores), "-m", "2G", *two_nodes(cores), "-machine", "q35",
                   "-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio",
                   "-device", "isa-debug-exit,iobase=0xf4,iosize=0x1",
                   "-kernel", kernel.image, "-initrd", image,
                   "-append", f"{COMMAND_LINE} tsc_early_khz={tsc_khz()} penstock.scene={scene}",
                   *devices]
        with open(log, "wb") as out:
            self.qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def runs(self):
        return self.qemu.poll() is None

    def text(self):
        return self.log.read_text(errors="replace").replace("\r", "")

    def failure(self):
        """Returns the failure of a machine that has ended, or None."""
        code = self.qemu.returncode
        text = self.text()
        if code != ENDED_WELL:
            return f"{self.scene} failed (qemu ended with {code})"
        if not re.search(r"^scene: ended well$", text, re.MULTILINE):
            return f"{self.scene} ended without its last line"
        if bad := re.search(r"BUG:|Oops:|WARNING: CPU|Call Trace:", text):
            return f"{self.scene}: the kernel reported {bad[0]}"
        return None

    def stop(self):
        """Ends it if it has not ended."""
        if self.runs():
            self.qemu.kill()
        self.qemu.wait()
