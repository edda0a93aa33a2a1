# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The emulated NICs, in pairs with a hub between. The host plugs them in, the guest binds them."""

import pathlib

# QEMU's device models with the options without which a driver of the guest cannot use them.
MODELS = {
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
    # With the legacy interface, or past the IOMMU, DPDK's driver waits forever.
    "virtio-net": "virtio-net-pci,disable-legacy=on,iommu_platform=on",
}
FIRST_SLOT = 0x10
DEVICES = pathlib.Path("/sys/bus/pci/devices")
PROBE = pathlib.Path("/sys/bus/pci/drivers_probe")


def slots(model):
    """Where both NICs of a model are plugged in, on bus 0: each with an IOMMU group of its own."""
    first = FIRST_SLOT + 2 * list(MODELS).index(model)
    return first, first + 1


def addresses(model):
    """The PCI addresses of both."""
    return [f"0000:00:{slot:02x}.0" for slot in slots(model)]


def arguments(models):
    """QEMU's arguments for a pair of each model. They need no boot ROM, which is a package more."""
    words = []
    for hub, model in enumerate(models):
        for slot in slots(model):
            mac = f"52:54:00:00:00:{slot:02x}"
            words += ["-netdev", f"hubport,id=net{slot},hubid={hub}"]
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
