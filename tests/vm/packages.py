# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Debian packages for the virtual machine: a kernel, and a newer QEMU.

They are unpacked into the build folder. Nothing is installed, and apt's sources do not change.
"""

import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build")).resolve()
CACHE = BUILD / "vm"
# The full kernel package and not the cloud's, because it has 9p.
KERNEL = "linux-image-amd64"
MODULES = (
    "virtio_pci", "9pnet_virtio", "9p", "vfio_iommu_type1", "vfio_pci",
    "af_packet", "veth", "bridge", "sch_tbf", "sch_htb", "sch_red", "sch_netem", "tcp_dctcp",
)  # fmt: skip
QEMU = "qemu-system-x86_64"
# All files that it needs to boot a kernel: a BIOS, and two ROMs that QEMU loads with it.
QEMU_FILES = {
    "qemu-system-x86": (f"usr/bin/{QEMU}",),
    "qemu-system-data": ("usr/share/qemu/kvmvapic.bin", "usr/share/qemu/linuxboot_dma.bin"),
    "seabios": ("usr/share/seabios/bios-256k.bin",),
}
DEBIAN = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
FETCH_SECONDS = 120
NO_KERNEL = "there is no kernel package"


class Skip(Exception):
    """The reason why this host cannot run a virtual machine."""


def tell(command, lacking, **options):
    """Returns a command's output. Raises Skip if it fails; `lacking` says what is missing then."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=FETCH_SECONDS, check=False, **options)  # fmt: skip
    except subprocess.TimeoutExpired as late:
        said = f"`{' '.join(command)}` did not end within {FETCH_SECONDS} s"
        raise Skip(f"{lacking}: {said}") from late
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        reason = next((line for line in lines if line.startswith("E: ")), lines[-1])
        raise Skip(f"{lacking}: `{' '.join(command)}`: {reason}")
    return done.stdout


def kernel_package():
    """The package on which KERNEL depends and which has the files: linux-image-<version>-amd64."""
    listed = tell(["apt-cache", "depends", KERNEL], NO_KERNEL)
    found = re.search(r"Depends: (linux-image-\S+)", listed)
    if not found:
        raise Skip(f"{NO_KERNEL}: {KERNEL} depends on none; run apt-get update")
    return found[1]


def module_order(folder):
    """MODULES and the modules that they need, in loading order: each file's name and bytes."""
    # Debian 12 has lib/modules/.../NAME.ko, Debian 13 usr/lib/modules/.../NAME.ko.xz.
    files = {path.name.split(".")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    order = {}

    def add(name):
        path = files.get(name)
        if path is None or name in order:  # built into the kernel, or in the list already
            return
        packed = path.read_bytes()
        module = lzma.decompress(packed) if path.suffix == ".xz" else packed
        depends = re.search(rb"\0depends=([^\0]*)\0", module)
        for needed in filter(None, depends[1].decode().split(",") if depends else []):
            add(needed.replace("-", "_"))
        order[name] = module

    for name in MODULES:
        add(name.replace("-", "_"))
    return {f"{name}.ko": module for name, module in order.items()}


def fetch_kernel():
    """Makes CACHE/kernel, once for each package version: vmlinuz, the modules and their order."""
    kernel = CACHE / "kernel"
    here = (kernel / "stamp").read_text() if (kernel / "stamp").exists() else ""
    try:
        package = kernel_package()
    except Skip:  # apt knows no packages; an older kernel is good enough
        if here.endswith(f" {' '.join(MODULES)}\n"):
            return kernel
        raise
    stamp = f"{package} {' '.join(MODULES)}\n"
    if here == stamp:
        return kernel
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kernel-", dir=CACHE) as made:
        # apt uses its own user if that can write there; otherwise it warns.
        try:
            tell(["apt-get", "download", "-q", package], NO_KERNEL, cwd=made)
        except Skip:  # an older kernel is good enough here, too
            if here.endswith(f" {' '.join(MODULES)}\n"):
                return kernel
            raise
        archive = next(pathlib.Path(made).glob("*.deb"))
        tell(["dpkg-deb", "-x", str(archive), f"{made}/files"], NO_KERNEL)
        files = pathlib.Path(made, "files")
        shutil.rmtree(kernel, ignore_errors=True)
        kernel.mkdir()
        shutil.copy(next(files.glob("boot/vmlinuz-*")), kernel / "vmlinuz")
        order = module_order(files)
        for name, module in order.items():
            (kernel / name).write_bytes(module)
        (kernel / "order").write_text("".join(f"{name}\n" for name in order))
        (kernel / "stamp").write_text(stamp)
    return kernel


def has_model(qemu, model):
    """Whether the QEMU that these words start emulates a device."""
    words = [*qemu, "-device", "help"]
    return f'name "{model}"' in tell(words, f"{qemu[0]} does not say which devices it has")


def qemu_with(model):
    """The words that start a QEMU which emulates a device: the installed one, or one of backports.

    That of backports is fetched once. Remove its folder to fetch a newer one in the next run.
    """
    if has_model([QEMU], model):
        return [QEMU]
    if not (CACHE / "qemu").exists():
        fetch_qemu(f"the installed QEMU has no {model}, and there is none of backports")
    unpacked = [str(CACHE / "qemu" / QEMU)]
    if not has_model(unpacked, model):
        raise Skip(f"neither the installed QEMU has {model} nor that of {CACHE / 'qemu'}")
    return unpacked


def private_apt(folder, suite):
    """Options with which apt uses one suite of Debian, and not the host's lists and caches.

    It still reads the host's apt.conf, which may name a proxy.
    """
    for made in ("lists/partial", "cache/archives/partial"):
        (folder / made).mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYS}] {DEBIAN} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null", "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State::Lists": folder / "lists", "Dir::State::Status": "/dev/null",
        "Dir::Cache": folder / "cache", "Acquire::http::Timeout": 20, "Acquire::Retries": 1,
    }  # fmt: skip
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def fetch_qemu(lacking):
    """Makes CACHE/qemu: the program and its files, from the backports of the host's release."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(),
                        re.MULTILINE)  # fmt: skip
    if not release:
        raise Skip(f"{lacking}: /etc/os-release has no VERSION_CODENAME")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="qemu-", dir=CACHE) as made:
        folder = pathlib.Path(made)
        options = private_apt(folder, f"{release[1]}-backports")
        # Without this option apt only warns if it cannot fetch a list.
        tell(["apt-get", *options, "update", "-q", "--error-on=any"], lacking)
        tell(["apt-get", *options, "download", "-q", *QEMU_FILES], lacking, cwd=folder)
        # With this folder beside it, QEMU does not use data and modules of the installed one.
        bundle = folder / "qemu/qemu-bundle"
        bundle.mkdir(parents=True)
        for package, files in QEMU_FILES.items():
            archive = next(folder.glob(f"{package}_*.deb"))
            tell(["dpkg-deb", "-x", str(archive), f"{folder}/{package}"], lacking)
            for name in files:
                (bundle / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(folder / package / name, bundle / name)
        (bundle / "usr/bin" / QEMU).rename(folder / "qemu" / QEMU)
        missing = re.findall(r"(\S+) => not found", tell(["ldd", f"{folder}/qemu/{QEMU}"], lacking))
        if missing:
            raise Skip(f"{lacking} that runs: it needs {', '.join(missing)}")
        # Another run may have made it meanwhile.
        if not (CACHE / "qemu").exists():
            (folder / "qemu").rename(CACHE / "qemu")
