# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Configures, starts and ends the gradplaned of every host of the demo, and reads its status."""

import os
import secrets

import processes

DAEMON = "control/daemon/gradplaned"
CLI = "control/cli/gradplane"

CONFIG = """\
control:
  socket: {socket}
port:
  kind: {port}
  interface: dp0
cluster:
  key_file: {key_file}
  coordinator: agg
  nodes:
{nodes}plan:
  kind: {plan}
poll:
  idle: adaptive
"""
NODE = "    - {{name: {name}, address: {address}/24{more}, port: {{link_rate: {rate} bit/s}}}}\n"


class Daemons:
    """The daemons of all hosts. Their sockets have different paths, because the hosts share one
    file system."""

    def __init__(self, build, lab, rates, port, plan, logs):
        self._cli = build / CLI
        self._folder = logs / "nodes"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._best_counts = {}
        for needed in (build / DAEMON, self._cli):
            if not os.access(needed, os.X_OK):
                raise processes.ProcessError(f"{needed} is missing; run scripts/build")
        key_file = self._folder / "cluster.key"
        key_file.touch(mode=0o600)
        key_file.write_text(secrets.token_hex(16) + "\n")
        nodes = "".join(
            NODE.format(
                name=host.name,
                address=host.dataplane_address,
                more=", aggregate: true" if host.name == "agg" else "",
                rate=rates[host.name],
            )
            for host in lab.hosts.values()
        )
        self._hosts = lab.hosts
        self.processes = {}
        for host in lab.hosts.values():
            config = self._folder / f"{host.name}.yaml"
            config.write_text(
                CONFIG.format(socket=self.socket(host), port=port,
                              key_file=key_file, nodes=nodes, plan=plan)
            )  # fmt: skip
            command = [build / DAEMON, "--config", config, "--node", host.name]
            log = logs / f"gradplaned-{host.name}.log"
            name = f"gradplaned on {host.name}"
            self.processes[host.name] = processes.Process(name, host, command, log)

    def socket(self, host):
        return f"/run/gradplane/demo-{host.name}.sock"

    def run_command(self, host, command):
        return [str(self._cli), "run", "--socket", self.socket(host), "--", *command]

    def check_alive(self):
        for process in self.processes.values():
            process.check_alive()

    def wait_until_up(self):
        processes.wait_until_daemons_up(
            self.processes, lambda name: self._status(self._hosts[name])
        )

    def _status(self, host):
        return processes.gradplane_status(self._cli, self.socket(host))

    def note_status(self):
        """Keeps each node's counters. Call it now and then, because those of a job end with it."""
        for host in self._hosts.values():
            status = self._status(host) or {}
            for source in (status.get("jobs", []), status.get("peers", [])):
                for what in ("blocks_lost", "blocks_retransmitted"):
                    key = (host.name, what)
                    count = sum(entry.get(what, 0) for entry in source)
                    self._best_counts[key] = max(self._best_counts.get(key, 0), count)

    def total(self, what):
        return sum(count for (_, key), count in self._best_counts.items() if key == what)

    def cpu_seconds(self):
        return sum(process.cpu_seconds() for process in self.processes.values())

    def end(self):
        for process in self.processes.values():
            process.end()
