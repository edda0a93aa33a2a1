# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Starts Open MPI's ranks in network namespaces."""

import pathlib
import re
import subprocess

AGENT = pathlib.Path(__file__).resolve().parent / "netns_agent"
DATAPLANE = "dp0"
MANAGEMENT = "mg0"
# Settings for starting ranks. Open MPI 5 uses PRRTE, whose settings have other names.
STARTS = (
    ("--mca", "plm_rsh_agent", AGENT),
    ("--mca", "plm_rsh_no_tree_spawn", 1),
    ("--mca", "oob_tcp_if_include", MANAGEMENT),
)
STARTS_BY_PRRTE = (
    ("--prtemca", "plm_ssh_agent", AGENT),
    ("--prtemca", "plm_ssh_no_tree_spawn", 1),
    ("--prtemca", "prte_if_include", MANAGEMENT),
)
FIRST_WITH_PRRTE = 5
# A rank that waits in a collective polls, and yields the CPU to other processes.
MESSAGES = (
    ("--mca", "pml", "ob1"),
    ("--mca", "btl", "tcp,self"),
    ("--mca", "mpi_yield_when_idle", 1),
)
VERSION_SECONDS = 10


def major_version():
    said = subprocess.run(["mpirun", "--version"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=VERSION_SECONDS, check=True).stdout  # fmt: skip
    found = re.search(r"Open MPI\) (\d+)", said)
    if not found:
        raise RuntimeError(f"`mpirun --version` names no Open MPI: {said.strip()}")
    return int(found[1])


def mpi_command(namespaces, addresses, program, *arguments, interface=DATAPLANE):
    """The arguments and environment of a command that starts rank R in namespaces[R], whose
    management address is addresses[R]. MPI's messages go over `interface`. Run the command in the
    first namespace."""
    starts = STARTS_BY_PRRTE if major_version() >= FIRST_WITH_PRRTE else STARTS
    settings = [*starts, *MESSAGES, ("--mca", "btl_tcp_if_include", interface)]
    # PRRTE does not count the local host's slot if it knows the host by its address.
    command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', namespaces[0],
               "mpirun", "--allow-run-as-root", "--bind-to", "none",
               "--map-by", "node:OVERSUBSCRIBE", "--host", ",".join(addresses),
               "-np", str(len(addresses)), *(str(word) for setting in settings for word in setting),
               str(program), *map(str, arguments)]  # fmt: skip
    pairs = (f"{address}={name}" for address, name in zip(addresses, namespaces))
    return command, {"NETNS_AGENT_MAP": " ".join(pairs)}
