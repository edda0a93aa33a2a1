#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Daemons with two poll cores: both carry blocks of each job, and the sums are exact."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from cluster import (
    CLI, DAEMON, RANK, RANK_SECONDS, Cluster, expect, go_on, netlab, replan, run, run_until_open,
    skip, terminate, wait_until,
)  # fmt: skip

WORKERS = ["w1", "w2", "w3"]
HOSTS = ["agg", *WORKERS]
RUN = f"gc{os.getpid() % 100000}"
CORES = "poll: {cores: [0, 1]}\n"
LOCAL = """node: {{name: {name}}}
control: {{socket: {folder}/{name}.sock}}
port: {{{port}}}
poll: {{cores: [0, 1]}}
cluster:
  key: "{key}"
  nodes:
    - {{name: a, address: 10.77.0.1/24, aggregate: true}}
"""


def lab(hosts=HOSTS, loss=0.0):
    return netlab.Lab(RUN, hosts, netlab.Link(rate_bits=200_000_000, loss=loss))


def both_carry(report, least):
    cores = report["poll"]["cores"]
    expect([core["cpu"] for core in cores] == [0, 1], f"a daemon has two cores: {cores}")
    for core in cores:
        moved = min(core["rx_datagrams"], core["tx_datagrams"])
        expect(moved >= least, f"{report['node']}: each core moves datagrams: {cores}")


def sums_are_exact_over_two_cores():
    with lab(loss=0.02) as made, Cluster(made, "star", rate="200 Mbit/s", extra=CORES) as c:
        ranks = run_until_open(c, WORKERS, 400)
        for process in ranks:
            text = process.communicate(timeout=RANK_SECONDS)[0]
            expect(process.returncode == 0, f"a rank finds every sum right: {text.strip()}")
        for name in HOSTS:
            both_carry(c.status(name), 100)
        text = c.tell("w1", "status")
        expect("CPU 0" in text and "CPU 1" in text, f"each core is shown: {text}")
        metrics = c.tell("w1", "metrics")
        expect('gradplane_poll_core_datagrams_total{cpu="1",direction="tx"}' in metrics, metrics)


def sharded_with_operations_of_all_sizes_is_exact():
    extra = CORES + "multicast: {enabled: true}\n"
    with lab() as made:
        with Cluster(made, "sharded\n  roots: training", rate="200 Mbit/s", extra=extra) as c:
            c.run_ranks(["w1", "w1", "w2", "w3"], "--rounds", 40, "--elements", 30000)
            for name in WORKERS:
                both_carry(c.status(name), 20)


def another_plan_is_put_in_force_on_both_cores():
    with lab() as made, Cluster(made, "star", rate="200 Mbit/s", extra=CORES) as c:
        ranks = run_until_open(c, WORKERS, 3000)
        for kind, *roots in (("sharded", "agg", "w1", "w2"), ("star", "agg")):
            answer = replan(c, "agg", "--plan", kind, "--root", *roots)
            expect(answer.returncode == 0, f"{answer.stdout}{answer.stderr}")
            go_on(c, 100)
        for core in c.status("w1")["poll"]["cores"]:
            expect(core["jobs"] == 1, f"each core has a part of the job: {core}")
        for process in ranks:
            process.send_signal(signal.SIGTERM)


def a_daemon_that_is_killed_is_named():
    with lab() as made, Cluster(made, "star", rate="200 Mbit/s", extra=CORES) as c:
        ranks = run_until_open(c, WORKERS)
        c.daemons["w2"].kill()
        for r in (0, 2):
            text = ranks[r].communicate(timeout=60)[0]
            expect(ranks[r].returncode != 0 and "w2" in text, f"it names the node: {text}")
        expect(ranks[1].wait(timeout=60) != 0, "the rank of the node that is gone fails")
        c.start("w2")
        c.wait_ready("w2")
        c.run_ranks(WORKERS, "--rounds", 20, "--elements", 20000, "--key", "c" * 32)


def a_node_with_another_number_of_cores_is_named():
    with lab() as made, Cluster(made, "star", rate="200 Mbit/s", extra=CORES) as c:
        expect(terminate(c.daemons["w3"]) == 0, "the daemon ends in order")
        config = c.config("w3", replace=[(CORES, "")])
        with open(c.folder / "w3.log", "ab") as log:
            c.daemons["w3"] = subprocess.Popen(
                c.command("w3", config), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        c.wait_ready("w3")
        for process in [c.rank(h, r, 3) for r, h in enumerate(WORKERS)]:
            text = process.communicate(timeout=60)[0]
            expect("the number of poll cores (poll.cores) is 1 on node w3" in text, text)


def jobs_with_grants_have_one_core():
    extra = CORES + "grants: {enabled: true}\n"
    with lab() as made, Cluster(made, "star", rate="200 Mbit/s", extra=extra) as c:
        c.run_ranks(WORKERS, "--rounds", 20, "--elements", 20000)
        report = c.status("w1")
        expect(report["poll"]["why_one_core"] == "grants.enabled is true", str(report["poll"]))
        expect("grants.enabled is true" in c.log("w1"), "the daemon says so when it starts")


class Local:
    """Daemons on this host without a lab, and their ranks."""

    def __enter__(self):
        self._kept = tempfile.TemporaryDirectory(prefix="gradplane-smoke-")
        self.folder = pathlib.Path(self._kept.name)
        self._daemons = []
        return self

    def __exit__(self, *_):
        for daemon in self._daemons:
            if daemon.poll() is None:
                daemon.kill()
            daemon.wait()
        self._kept.cleanup()

    def start(self, name, port, more_nodes=""):
        config = self.folder / f"{name}.yaml"
        text = LOCAL.format(name=name, folder=self.folder, port=port, key="ab" * 16)
        config.write_text(text + more_nodes)
        config.chmod(0o600)
        with open(self.folder / f"{name}.log", "wb") as log:
            daemon = subprocess.Popen(
                [DAEMON, "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._daemons.append(daemon)
        return daemon

    def status(self, name):
        answer = subprocess.run(
            [CLI, "status", "--json", "--socket", self.folder / f"{name}.sock"],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def run_ranks(self, names, *options):
        ranks = [
            subprocess.Popen(
                [RANK, "--socket", self.folder / f"{name}.sock", "--rank", str(r), "--world",
                 str(len(names)), *map(str, options)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True,
            )
            for r, name in enumerate(names)
        ]  # fmt: skip
        for process in ranks:
            text = process.communicate(timeout=RANK_SECONDS)[0]
            expect(process.returncode == 0, f"a rank finds every sum right: {text.strip()}")


def two_daemons_over_a_memif_share_each_job_by_core():
    other = "    - {name: b, address: 10.77.0.2/24}\n"
    with Local() as host:
        for name, role in (("a", "server"), ("b", "client")):
            memif = f"memif: {{socket: {host.folder}/m, role: {role}}}"
            host.start(name, f"kind: memif, huge_pages: never, {memif}", other)
            wait_until(lambda name=name: host.status(name), f"daemon {name} to answer")
        host.run_ranks(["a", "b"], "--rounds", 300, "--elements", 20000)
        for name in ("a", "b"):
            both_carry(host.status(name), 300)


def a_daemon_alone_shares_a_job_by_core():
    with Local() as host:
        daemon = host.start("a", "kind: loopback")
        wait_until(lambda: host.status("a"), "the daemon to answer")
        host.run_ranks(["a", "a", "a"], "--rounds", 200, "--elements", 20000)
        expect(len(host.status("a")["poll"]["cores"]) == 2, "it has two cores")
        expect(terminate(daemon) == 0, "it ends in order")


if __name__ == "__main__":
    if (os.cpu_count() or 1) < 2:
        skip("two poll cores need two CPUs")
    sys.exit(run([
        a_daemon_alone_shares_a_job_by_core,
        two_daemons_over_a_memif_share_each_job_by_core,
        sums_are_exact_over_two_cores,
        sharded_with_operations_of_all_sizes_is_exact,
        another_plan_is_put_in_force_on_both_cores,
        a_daemon_that_is_killed_is_named,
        a_node_with_another_number_of_cores_is_named,
        jobs_with_grants_have_one_core,
    ]))  # fmt: skip
