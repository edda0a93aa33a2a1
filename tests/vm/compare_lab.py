#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Compares the kernel's netem and DCTCP with the emulated network and gradplane's DCTCP. It runs in
a virtual machine, because the kernels of many hosts have neither.

usage: compare_lab.py [TEST...]    as in lab_guest.py; without arguments, all tests
"""

import sys

import machine

PROGRAMS = ("tests/lab/lab_switch", "control/daemon/gradplaned", "control/cli/gradplane",
            "tests/peers/gradplane_ranks")  # fmt: skip
SECONDS = 600


def main():
    command = ["env", f"GRADPLANE_BUILD={machine.BUILD}", "tests/vm/lab_guest.py", *sys.argv[1:]]
    return machine.test(lambda: machine.run_guest("lab", [], command, SECONDS), PROGRAMS)


if __name__ == "__main__":
    sys.exit(main())
