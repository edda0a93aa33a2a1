#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The port `pci` on emulated NICs, in a virtual machine: the port suite, and two hosts that train.

usage: pci_test.py [TASK:MODEL...]    as in pci_guest.py; without words, what scripts/test runs
"""

import sys

import machine
import nics

ONE_QUEUE = [model for model in nics.MODELS if model not in nics.QUEUES]
# QEMU translates every instruction: PyTorch takes a minute to start, so one model trains with it.
TASKS = (
    *(f"suite:{model}" for model in ONE_QUEUE),
    *(f"sums:{model}" for model in ONE_QUEUE),
    *(f"{kind}:{model}" for model in nics.QUEUES for kind in ("queues", "sums")),
    "torch:vmxnet3",
)
PROGRAMS = ("control/daemon/gradplaned", "control/cli/gradplane", "tests/smoke/rank_client",
            "tests/conformance/conformance_pci")  # fmt: skip
SECONDS = 420


ADAPTERS = "trainer-shim/torch/libgradplane_torch_*.so"


def main():
    tasks = sys.argv[1:] or TASKS
    if not any(machine.BUILD.glob(ADAPTERS)):
        print("A build without torch: no task of torch is run.")
        tasks = [task for task in tasks if not task.startswith("torch:")]
    if not nics.TUN.exists():
        print(f"A host without {nics.TUN}: no task of NICs with several queues is run.")
        tasks = [task for task in tasks if task.split(":")[1] not in nics.QUEUES]
    models = nics.models_of(tasks)
    command = ["tests/vm/pci_guest.py", str(machine.BUILD), *tasks]
    return machine.test(lambda: machine.run_guest("pci", models, command, SECONDS), PROGRAMS)


if __name__ == "__main__":
    sys.exit(main())
