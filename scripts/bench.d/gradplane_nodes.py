# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Starts and ends a gradplaned for every host of a lab, and reads their status."""

import json
import os
import pathlib
import secrets
import signal
import tempfile

import netlab
import processes

# scripts/bench has its own /run/gradplane, which disappears with it.
RUN_FOLDER = pathlib.Path("/run/gradplane")
FIRST_UDP_PORT = 47000
UDP_PORTS = 128  # the most of one cluster
DAEMON = "control/daemon/gradplaned"
CLI = "control/cli/gradplane"
JOB_COUNTERS = ("blocks_sent", "blocks_lost", "blocks_retransmitted", "blocks_duplicate",
                "rounds_closed_early", "rounds_closed_deadline", "blocks_to_groups")  # fmt: skip

CONFIG = """\
control:
  socket: {socket}
port:
  kind: af_packet
  interface: {interface}
{port}cluster:
  udp_port: {udp_port}
  key_file: {key_file}
  coordinator: {server}
  nodes:
{nodes}plan:
  kind: {plan}
{extra}"""
NODE = "    - {{name: {name}, address: {address}/16, aggregate: {aggregate}{site}{own}}}\n"


def own_name(host, number):
    """A name of dp0 only for these daemons, because gradplaned takes no interface under a name
    under which another daemon has it. Two clusters can share dp0 here, because only one is awake at
    a time, and each has its own UDP ports."""
    name = f"dp0n{number}"
    shown = netlab.run_command(["ip", "-n", host.namespace, "link", "show", "dev", "dp0"])
    if f"altname {name}\n" not in shown:
        netlab.run_command(
            ["ip", "-n", host.namespace, "link", "property", "add", "dev", "dp0", "altname", name]
        )
    return name


def permanent_neighbours(namespace):
    """The permanent neighbours of a namespace, as lines of `ip -batch` that add them again."""
    shown = netlab.run_command(["ip", "-n", namespace, "-j", "neigh", "show", "nud", "permanent"])
    return [
        f"neighbour replace {n['dst']} lladdr {n['lladdr']} dev {n['dev']} nud permanent"
        for n in json.loads(shown or "[]")
    ]


def node_lines(lab, server, rates, sites):
    """The list of nodes for a configuration. `rates` has known link rates by host, and `sites` has
    the sites of hosts, or is None."""
    return "".join(
        NODE.format(
            name=host.name,
            address=host.dataplane_address,
            aggregate="true" if host.name == server else "false",
            site=f", site: {sites[host.name]}" if sites else "",
            own=f", port: {{link_rate: {rates[host.name]} bit/s}}" if host.name in rates else "",
        )
        for host in lab.hosts.values()
    )


class GradplaneNodes:
    """The daemons of a lab. `server` coordinates. With the plan `star` it is the root; with
    `sharded` the hosts of ranks are roots."""

    def __init__(self, build, lab, server, plan, rate_bits, logs, number, extra="", port="",
                 tells_links=True, sites=None):  # fmt: skip
        """`rate_bits` is the rate of every link, or has the rate of each host's link. `extra` is
        added to the YAML file, and `port` to its section `port`, as whole lines. Nodes know the
        links of others only with `tells_links`; each paces its own in any case. `sites` has the
        site of each host, if several hosts share one."""
        self._cli = build / CLI
        for needed in (build / DAEMON, self._cli):
            if not os.access(needed, os.X_OK):
                raise processes.ProcessError(f"{needed} is missing; run scripts/build")
        self._hosts = lab.hosts
        # The folder has a short name, because paths of sockets are short. All hosts share it.
        RUN_FOLDER.mkdir(exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-", dir=RUN_FOLDER)
        self._counts = {}
        self._epoch = 0
        udp_port = FIRST_UDP_PORT + UDP_PORTS * number
        key_file = logs / "cluster.key"
        key_file.touch(mode=0o600)
        key_file.write_text(secrets.token_hex(16) + "\n")
        if plan == "sharded":
            plan = "sharded\n  roots: training"
        if not isinstance(rate_bits, dict):
            rate_bits = dict.fromkeys(lab.hosts, rate_bits)
        self._neighbours = {
            host.namespace: permanent_neighbours(host.namespace) for host in lab.hosts.values()
        }
        self.processes = {}
        for host in lab.hosts.values():
            interface = own_name(host, number)
            config = logs / f"{host.name}.yaml"
            rates = rate_bits if tells_links else {host.name: rate_bits[host.name]}
            config.write_text(CONFIG.format(
                socket=self.socket(host.name), interface=interface, port=port, udp_port=udp_port,
                key_file=key_file, server=server, plan=plan, extra=extra,
                nodes=node_lines(lab, server, rates, sites),
            ))  # fmt: skip
            command = [build / DAEMON, "--config", config, "--node", host.name]
            self.processes[host.name] = processes.Process(
                f"gradplaned on {host.name}", host, command, logs / f"gradplaned-{host.name}.log"
            )

    def socket(self, name):
        return f"{self._folder.name}/{name}.sock"

    def run_command(self, name, *options):
        return [self._cli, "run", "--socket", self.socket(name), *options, "--"]

    def check_alive(self):
        for process in self.processes.values():
            process.check_alive()

    def wait_until_up(self):
        processes.wait_until_daemons_up(self.processes, self.status)
        # DPDK sets the MAC address of dp0 again, and then the kernel forgets all neighbours. They
        # are restored, because otherwise peers' TCP could lose time by lost ARP requests.
        for namespace, lines in self._neighbours.items():
            netlab.ip_batch(namespace, lines)

    def status(self, name):
        """A daemon's status report, or None if it gives none."""
        return processes.gradplane_status(self._cli, self.socket(name))

    def counters(self):
        """The counters, summed over all nodes and jobs, and the newest `epoch`. The largest values
        that were seen count, because a job's counters end with it."""
        for name in self._hosts:
            jobs = (self.status(name) or {}).get("jobs", [])
            for what in JOB_COUNTERS:
                count = sum(job.get(what, 0) for job in jobs)
                self._counts[name, what] = max(self._counts.get((name, what), 0), count)
            self._epoch = max([self._epoch, *(job.get("epoch", 0) for job in jobs)])
        sums = {
            what: sum(count for (_, key), count in self._counts.items() if key == what)
            for what in JOB_COUNTERS
        }
        return {**sums, "epoch": self._epoch}

    def end(self):
        for process in self.processes.values():
            process.signal_group(signal.SIGCONT)  # a stopped process can only end when it goes on
            process.end()
        self._folder.cleanup()
