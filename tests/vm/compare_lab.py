#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The kernel's netem and DCTCP beside the emulated network: in a virtual machine, because the
kernels of many hosts have neither."""

import sys

import machine

PROGRAMS = ("tests/lab/lab_switch",)
SECONDS = 300


def main():
    command = ["env", f"GRADPLANE_BUILD={machine.BUILD}", "tests/vm/lab_guest.py"]
    return machine.test(lambda: machine.run_guest("lab", [], command, SECONDS), PROGRAMS)


if __name__ == "__main__":
    sys.exit(main())
