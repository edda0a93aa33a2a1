#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The port `pci` on emulated NICs, in a virtual machine: the port suite, and two hosts that train.

usage: pci_test.py [TASK:MODEL...]    as in pci_guest.py; without arguments, as in scripts/test
"""

import sys

import machine
import nics
import packages

ONE_QUEUE = [model for model in nics.MODELS if model not in nics.QUEUES]
# QEMU translates every instruction, so a training takes half a minute.
TASKS = (
    *(f"suite:{model}" for model in (*ONE_QUEUE, "igb")),
    *(f"{kind}:{model}" for kind in ("sums", "jumbo") for model in ONE_QUEUE),
    *(f"{kind}:{model}" for model in nics.QUEUES for kind in ("queues", "sums")),
    *(f"torch:{model}" for model in (*ONE_QUEUE, "igb")),
)  # fmt: skip
PROGRAMS = ("control/daemon/gradplaned", "control/cli/gradplane", "tests/smoke/rank_client",
            "tests/conformance/conformance_pci")  # fmt: skip
SECONDS = 1200
ADAPTERS = "trainer-shim/torch/libgradplane_torch_*.so"


def what_runs(tasks):
    """The tasks that this host can run, the words that start QEMU, and the other tasks."""
    qemu = (machine.QEMU,)
    left_out = []

    def leave_out(unfit, why):
        nonlocal tasks
        kept = [task for task in tasks if not unfit(task)]
        if len(kept) < len(tasks):
            gone = ", ".join(task for task in tasks if task not in kept)
            left_out.append(f"left out: {gone}: {why}")
        tasks = kept

    if not any(machine.BUILD.glob(ADAPTERS)):
        leave_out(lambda task: task.startswith("torch:"), "the build has no torch")
    if not nics.TUN.exists():
        leave_out(lambda task: task.split(":")[1] in nics.ON_TAPS, f"there is no {nics.TUN}")
    if nics.NEW in nics.models_of(tasks):
        try:
            qemu = packages.qemu_with(nics.NEW)
        except machine.Skip as reason:
            leave_out(lambda task: task.split(":")[1] == nics.NEW, str(reason))
    if not tasks:
        raise machine.Skip("; ".join(left_out))
    return tasks, qemu, left_out


def run_tasks(tasks):
    machine.check_tools()
    tasks, qemu, left_out = what_runs(tasks)
    command = ["tests/vm/pci_guest.py", str(machine.BUILD), *tasks]
    said = machine.run_guest("pci", nics.models_of(tasks), command, SECONDS, qemu)
    return said + (f"NOTE: {'; '.join(left_out)}\n" if left_out else "")


def main():
    return machine.test(lambda: run_tasks(sys.argv[1:] or TASKS), PROGRAMS)


if __name__ == "__main__":
    sys.exit(main())
