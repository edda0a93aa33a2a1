# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The emulated NICs, in pairs with a hub between them. The host adds them, the guest binds them.

NICs distribute frames from a hub to their queues. virtio-net is an exception: it has only as many
queues as its network backend, and a hub of QEMU has one queue for each NIC. So the pair of
virtio-net NICs with several queues uses taps of the host, on a bridge in QEMU's own network
namespace.
"""

import contextlib
import os
import pathlib
import subprocess

# QEMU's device models, with the options that drivers in the guest need.
MODELS = {
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
    # With the legacy interface, or without the IOMMU, DPDK's driver waits for ever.
    "virtio-net": "virtio-net-pci,disable-legacy=on,iommu_platform=on",
    # One vector for each queue in each direction, one for control, and one for configuration.
    "virtio-net-rss": "virtio-net-pci,disable-legacy=on,iommu_platform=on,"
                      "mq=on,rss=on,vectors=6",
    "igb": "igb",
}
QUEUES = {"igb": 2, "virtio-net-rss": 2}
ON_TAPS = ("virtio-net-rss",)
# The model that QEMU has only from version 8 on.
NEW = "igb"
# Of QEMU's models, these send a buffer that crosses pages which are not adjacent in the guest's
# memory. The others drop the frame, because they map each buffer as one piece.
CROSS_PAGES = ("virtio-net",)
# A test of queues first opens this pair, which sets up the memory of the process.
BESIDE_QUEUES = "e1000e"
TUN = pathlib.Path("/dev/net/tun")
FIRST_SLOT = 0x10
# An igb's virtual functions, which are not used, have the slots 16 and 17 after its own.
IGB_SLOTS = (0x08, 0x0a)
DEVICES = pathlib.Path("/sys/bus/pci/devices")
PROBE = pathlib.Path("/sys/bus/pci/drivers_probe")


def models_of(tasks):
    """The models in tasks such as suite:e1000e, each once."""
    models = []
    for task in tasks:
        kind, model = task.split(":")
        models += [model, BESIDE_QUEUES] if kind == "queues" else [model]
    return list(dict.fromkeys(models))


def slots(model):
    """The slots of both NICs of a model on bus 0. Each has its own IOMMU group."""
    if model == "igb":
        return IGB_SLOTS
    first = FIRST_SLOT + 2 * list(MODELS).index(model)
    return first, first + 1


def addresses(model):
    """The PCI addresses of both NICs of a model."""
    return [f"0000:00:{slot:02x}.0" for slot in slots(model)]


def tap(slot):
    """The name of a NIC's tap."""
    return f"gptap{slot}"


def run_ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=20)


@contextlib.contextmanager
def network(models):
    """Makes the network of the NICs on taps. Yields the words to put before QEMU's command.

    Raises OSError or subprocess.SubprocessError if this host cannot make it.
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
    """QEMU's arguments for a pair of each model. Boot ROMs are off, which saves a package."""
    words = []
    for hub, model in enumerate(models):
        for slot in slots(model):
            mac = f"52:54:00:00:00:{slot:02x}"
            words += ["-netdev", netdev(hub, model, slot)]
            device = f"{MODELS[model]},netdev=net{slot},addr={slot:#x},mac={mac},romfile="
            words += ["-device", device]
    return words


def bind(model):
    """Binds both NICs of a model to vfio-pci, and returns their addresses. Runs in the guest."""
    for address in addresses(model):
        device = DEVICES / address
        if not device.exists():
            raise RuntimeError(f"the guest has no PCI device {address} ({model})")
        (device / "driver_override").write_text("vfio-pci")
        if (device / "driver").exists():  # such as virtio-pci, which the guest needs for its files
            (device / "driver/unbind").write_text(address)
        PROBE.write_text(address)
        driver = (device / "driver").resolve().name
        if driver != "vfio-pci":
            raise RuntimeError(f"{address} ({model}) has the driver '{driver}', not vfio-pci")
    return addresses(model)
