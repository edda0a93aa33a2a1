# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The emulated NICs, in pairs with a hub between. The host plugs them in, the guest binds them.

A NIC gives its queues what comes from a hub by itself, but for virtio-net: that has no more queues
than its network has, and a hub of QEMU has one for each NIC. So the pair of virtio-net with several
queues has taps of the host instead, on a bridge in a network namespace that is QEMU's alone.
"""

import contextlib
import os
import pathlib
import subprocess

# QEMU's device models with the options without which a driver of the guest cannot use them.
MODELS = {
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
    # With the legacy interface, or past the IOMMU, DPDK's driver waits forever.
    "virtio-net": "virtio-net-pci,disable-legacy=on,iommu_platform=on",
    # A vector for each queue in each direction, one for control and one for changes.
    "virtio-net-rss": "virtio-net-pci,disable-legacy=on,iommu_platform=on,"
                      "mq=on,rss=on,vectors=6",
    "igb": "igb",
}
QUEUES = {"igb": 2, "virtio-net-rss": 2}
ON_TAPS = ("virtio-net-rss",)
# QEMU has this model from version 8 on.
NEW = "igb"
# A test of queues opens another pair first, whose memory is that of the process.
BESIDE_QUEUES = "e1000e"
TUN = pathlib.Path("/dev/net/tun")
FIRST_SLOT = 0x10
# The virtual functions of an igb, which nobody uses, have the slots 16 and 17 after its own.
IGB_SLOTS = (0x08, 0x0a)
DEVICES = pathlib.Path("/sys/bus/pci/devices")
PROBE = pathlib.Path("/sys/bus/pci/drivers_probe")


def models_of(tasks):
    """Of tasks such as suite:e1000e, each once."""
    models = []
    for task in tasks:
        kind, model = task.split(":")
        models += [model, BESIDE_QUEUES] if kind == "queues" else [model]
    return list(dict.fromkeys(models))


def slots(model):
    """Where both NICs of a model are plugged in, on bus 0: each with an IOMMU group of its own."""
    if model == "igb":
        return IGB_SLOTS
    first = FIRST_SLOT + 2 * list(MODELS).index(model)
    return first, first + 1


def addresses(model):
    """The PCI addresses of both."""
    return [f"0000:00:{slot:02x}.0" for slot in slots(model)]


def tap(slot):
    """The tap of a NIC."""
    return f"gptap{slot}"


def run_ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=20)


@contextlib.contextmanager
def network(models):
    """Makes what the NICs on taps are plugged into; the words that QEMU runs behind.

    Raises OSError or subprocess.SubprocessError where this host cannot.
    """
    tapped = [model for model in models if model in ON_TAPS]
    if not tapped:
        yield []
        return
    namespace = f"gradplane-vm-{os.getpid()}"
    run_ip("netns", "add", namespace)
    try:
        for bridge, model in enumerate(tapped):
            run_ip("-n", namespace, "link", "add", f"gpbr{bridge}", "type", "bridge",
                   "mcast_snooping", "0")  # fmt: skip
            run_ip("-n", namespace, "link", "set", f"gpbr{bridge}", "up")
            for slot in slots(model):
                run_ip("-n", namespace, "tuntap", "add", "dev", tap(slot), "mode", "tap",
                       "multi_queue", "vnet_hdr")  # fmt: skip
                run_ip("-n", namespace, "link", "set", tap(slot), "master", f"gpbr{bridge}", "up")
        yield ["ip", "netns", "exec", namespace]
    finally:
        run_ip("netns", "delete", namespace)


def netdev(hub, model, slot):
    if model not in ON_TAPS:
        return f"hubport,id=net{slot},hubid={hub}"
    return (f"tap,id=net{slot},ifname={tap(slot)},script=no,downscript=no,vhost=off,"
            f"queues={QUEUES[model]}")  # fmt: skip


def arguments(models):
    """QEMU's arguments for a pair of each model. They need no boot ROM, which is a package more."""
    words = []
    for hub, model in enumerate(models):
        for slot in slots(model):
            mac = f"52:54:00:00:00:{slot:02x}"
            words += ["-netdev", netdev(hub, model, slot)]
            device = f"{MODELS[model]},netdev=net{slot},addr={slot:#x},mac={mac},romfile="
            words += ["-device", device]
    return words


def bind(model):
    """Gives both NICs of a model to vfio-pci, and returns their addresses. In the guest."""
    for address in addresses(model):
        device = DEVICES / address
        if not device.exists():
            raise RuntimeError(f"the guest has no PCI device {address} ({model})")
        (device / "driver_override").write_text("vfio-pci")
        if (device / "driver").exists():  # as virtio-pci, which the guest needs for its files
            (device / "driver/unbind").write_text(address)
        PROBE.write_text(address)
        driver = (device / "driver").resolve().name
        if driver != "vfio-pci":
            raise RuntimeError(f"{address} ({model}) has the driver '{driver}', not vfio-pci")
    return addresses(model)
