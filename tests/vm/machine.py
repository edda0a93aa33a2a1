# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A small virtual machine with emulated NICs: Debian's kernel, the host's files, QEMU without KVM.

Nothing is installed, and the guest does not write to the host's files: packages are unpacked into
the build folder (packages.py), and the guest mounts the host's root read-only.
"""

import contextlib
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

import nics
from packages import BUILD, CACHE, QEMU, ROOT, Skip, fetch_kernel

INIT = pathlib.Path(__file__).with_name("init")
BUSYBOX = "/bin/busybox"
CPUS = 2
MEMORY_MB = 3072
HUGE_PAGES = 512
SKIP = 77
LAST_LINES = 40


class Failure(Exception):
    """An error in the machine, with the last lines of its output."""


def check_tools():
    if os.geteuid() != 0:
        raise Skip("the guest reads the host's files as root; run this as root")
    for tool, package in ((QEMU, "qemu-system-x86"), (BUSYBOX, "busybox-static"),
                          ("cpio", "cpio"), ("dpkg-deb", "dpkg"), ("apt-get", "apt")):  # fmt: skip
        if shutil.which(tool) is None:
            raise Skip(f"{tool} is missing; run scripts/setup, or install {package}")


def test(run, programs):
    """Runs a test that needs programs of the build folder. Returns the exit code of its script."""
    try:
        for program in programs:
            if not (BUILD / program).exists():
                raise Skip(f"{program} is not built")
        print(run(), end="")
    except Skip as reason:
        print(f"SKIP: {reason}")
        return SKIP
    except Failure as problem:
        print(f"FAIL {problem}")
        return 1
    return 0


def last_lines(path):
    if not path.exists():
        return f"    ({path} is not there)"
    lines = path.read_text(errors="replace").replace("\r", "").splitlines()
    return "\n".join(f"    {line[:300]}" for line in lines[-LAST_LINES:]) or "    (nothing)"


def make_initrd(kernel):
    """Makes an archive with the first process, busybox and the modules. All else is the host's."""
    initrd = CACHE / "initrd"
    with tempfile.TemporaryDirectory(prefix="initrd-", dir=CACHE) as made:
        for folder in ("bin", "modules"):
            pathlib.Path(made, folder).mkdir()
        shutil.copy(BUSYBOX, f"{made}/bin/busybox")
        shutil.copy(INIT, f"{made}/init")
        for path in [*kernel.glob("*.ko"), kernel / "order"]:
            shutil.copy(path, f"{made}/modules")
        names = "\n".join(str(p.relative_to(made)) for p in pathlib.Path(made).rglob("*"))
        with open(initrd, "wb") as archive:
            subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=names.encode(),
                           cwd=made, stdout=archive, check=True, timeout=60)  # fmt: skip
    return initrd


def numa_options():
    """Each CPU has a NUMA node with its share of the memory."""
    share = f"{MEMORY_MB // CPUS}M"
    return [
        word
        for n in range(CPUS)
        for word in ("-object", f"memory-backend-ram,id=memory{n},size={share}",
                     "-numa", f"node,nodeid={n},cpus={n},memdev=memory{n}")
    ]  # fmt: skip


def qemu_options(kernel, initrd, out, models):
    # On a busy host the kernel's check of the timer may see no ticks in time, and panic.
    append = (f"console=ttyS0 quiet intel_iommu=on iommu=pt no_timer_check panic=-1 "
              f"gp_huge_pages={HUGE_PAGES}")  # fmt: skip
    share = "security_model=none,multidevs=remap"
    return [
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{out}/console.log",
        "-machine", "q35,kernel-irqchip=split", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-smp", str(CPUS), "-m", str(MEMORY_MB), *numa_options(),
        # DPDK uses virtual addresses for DMA only if the IOMMU takes 48 bits of them.
        "-device", "intel-iommu,intremap=on,caching-mode=on,aw-bits=48",
        "-kernel", str(kernel / "vmlinuz"), "-initrd", str(initrd), "-append", append,
        "-virtfs", f"local,path=/,mount_tag=host,readonly=on,{share}",
        "-virtfs", f"local,path={out},mount_tag=out,{share}",
        *nics.arguments(models),
    ]  # fmt: skip


@contextlib.contextmanager
def plugged_in(models):
    """As nics.network(), but raises Skip with the reason if this host cannot do that."""
    with contextlib.ExitStack() as stack:
        try:
            before = stack.enter_context(nics.network(models))
        except (OSError, subprocess.SubprocessError) as problem:
            said = getattr(problem, "stderr", None) or str(problem)
            raise Skip(f"NICs with queues need taps on a bridge: {said.strip()}") from problem
        yield before


def run_guest(name, models, command, seconds, qemu=(QEMU,)):
    """Boots a guest, runs `command` (words) at the root of the checkout, and returns its output.

    `qemu` are the words that start QEMU. CACHE/NAME then has console.log, guest.log and the files
    that the guest wrote there. Raises Failure with the guest's last lines if the command fails or
    does not end within `seconds`.
    """
    check_tools()
    out = CACHE / name
    shutil.rmtree(out, ignore_errors=True)
    kernel = fetch_kernel()
    out.mkdir(parents=True)
    words = [*qemu, *qemu_options(kernel, make_initrd(kernel), out, models)]
    (out / "qemu.txt").write_text("\n".join(words))
    (out / "command").write_text(f"cd {shlex.quote(str(ROOT))} && exec {shlex.join(command)}\n")
    problem = f"did not end within {seconds} s"
    try:
        with plugged_in(models) as before:
            done = subprocess.run([*before, *words], stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=seconds, check=False)  # fmt: skip
        problem = f"QEMU: exit code {done.returncode}: {done.stderr.strip()[-500:]}"
    except subprocess.TimeoutExpired:
        done = None
    said = out / "exit"
    code = said.read_text().strip() if said.exists() else ""
    if done and code == "0":
        return (out / "guest.log").read_text(errors="replace")
    if code:
        problem = f"{command[0]} ended with exit code {code}"
    raise Failure(f"guest {name}: {problem}\n  last lines of its console:\n"
                  f"{last_lines(out / 'console.log')}\n  last lines of {command[0]}:\n"
                  f"{last_lines(out / 'guest.log')}\n  all of it: {out}")  # fmt: skip
