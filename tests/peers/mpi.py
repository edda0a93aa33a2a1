# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""How Open MPI's ranks are started in network namespaces."""

import pathlib

AGENT = pathlib.Path(__file__).resolve().parent / "netns_agent"
DATAPLANE = "dp0"
MANAGEMENT = "mg0"
# A rank that waits in a collective polls; it yields the CPU to whoever else wants it.
SETTINGS = {
    "plm_rsh_agent": AGENT,
    "plm_rsh_no_tree_spawn": 1,
    "oob_tcp_if_include": MANAGEMENT,
    "pml": "ob1",
    "btl": "tcp,self",
    "mpi_yield_when_idle": 1,
}


def mpi_command(namespaces, addresses, program, *arguments, interface=DATAPLANE):
    """(arguments, environment) that start rank R in namespaces[R], whose management address is
    addresses[R]. `interface` has MPI's own messages. To be run in the first of the namespaces."""
    settings = {**SETTINGS, "btl_tcp_if_include": interface}
    settings = [word for key, value in settings.items() for word in ("--mca", key, str(value))]
    command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', namespaces[0],
               "mpirun", "--allow-run-as-root", "--bind-to", "none", "--map-by", "node",
               "--host", ",".join(addresses), "-np", str(len(addresses)), *settings,
               str(program), *map(str, arguments)]  # fmt: skip
    pairs = (f"{address}={name}" for address, name in zip(addresses, namespaces))
    return command, {"NETNS_AGENT_MAP": " ".join(pairs)}
