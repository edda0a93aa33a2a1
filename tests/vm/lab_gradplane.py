# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A flow of gradplane over a link of lab_guest.py, for as long as a measurement takes.

Rank 0 on host a broadcasts to rank 1 on host b, and a is the root of the only tree. So blocks go
only from a to b, and acks come back, as in a TCP flow.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "scripts/bench.d")]
import processes  # noqa: E402
import ranks  # noqa: E402

BUILD = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
WORK = pathlib.Path("/run/tmp/gradplane")
LOGS = pathlib.Path("/run/out")
ADDRESSES = {"a": "10.77.1.1", "b": "10.77.1.2"}
KEY = "00112233445566778899aabbccddeeff"
CONFIG = """control: {{socket: {work}/{node}.sock}}
port: {{kind: af_packet, interface: dp0}}
liveness: {{heartbeat: 1 s, suspect_after: 15 s}}
cluster:
  key: "{key}"
  nodes:
    - {{name: a, address: {a}/24}}
    - {{name: b, address: {b}/24}}
plan: {{kind: star, root: a}}
congestion: {{controller: {controller}}}
"""
READY_SECONDS = 60
# Long enough that every measurement ends while the flow still sends.
MESSAGE_BYTES = 96 << 20
# Preamble, checksum and gap; and a block's frame including them.
LINK_OVERHEAD_BYTES = 24
FRAME_BYTES = 1514 + LINK_OVERHEAD_BYTES


class Flow:
    """Daemons and ranks on the two hosts of a link. Ends all processes that it started."""

    def __init__(self, link, controller):
        self.label = f"{type(link).__name__}-{controller}"
        self._spaces = link.hosts
        self._controller = controller
        self._processes = {}
        self._ranks = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self._processes.values()):
            process.end()
        if self._ranks is not None:
            self._ranks.close()

    def run(self, name, node, command):
        host = types.SimpleNamespace(namespace=self._spaces[node])
        log = LOGS / f"{self.label}-{name}.log"
        self._processes[name] = processes.Process(name, host, command, log)

    def start(self):
        WORK.mkdir(parents=True, exist_ok=True)
        for node in self._spaces:
            config = WORK / f"{node}.yaml"
            config.write_text(CONFIG.format(work=WORK, node=node, key=KEY,
                                            controller=self._controller, **ADDRESSES))  # fmt: skip
            config.chmod(0o600)
            daemon = [BUILD / "control/daemon/gradplaned", "--config", config, "--node", node]
            self.run(node, node, daemon)
        daemons = {node: self._processes[node] for node in self._spaces}
        processes.wait_until_daemons_up(daemons, self.status)
        self._ranks = ranks.Ranks(WORK, range(len(self._spaces)))
        for rank, node in enumerate(self._spaces):
            self.run(f"rank-{rank}", node, [
                BUILD / "tests/peers/gradplane_ranks", "--socket", WORK / f"{node}.sock", "--key",
                KEY, "--rank", rank, "--world", len(self._spaces), "--exact", "--commands",
                self._ranks.commands_path(rank), "--answers", self._ranks.answers_path(rank),
            ])  # fmt: skip
        self.expect_answers()
        self._ranks.send({"do": "round", "seed": 1, "bytes": MESSAGE_BYTES, "at_ns": 0,
                          "op": "broadcast"})  # fmt: skip
        if not processes.wait_until(lambda: self.blocks()[0] > 100, READY_SECONDS):
            self._processes["rank-0"].fail("has sent nothing")

    def expect_answers(self):
        for answer in self._ranks.collect(READY_SECONDS):
            if "error" in answer:
                self._processes[f"rank-{answer['rank']}"].fail(answer["error"])

    def status(self, node):
        return processes.gradplane_status(BUILD / "control/cli/gradplane", WORK / f"{node}.sock")

    def blocks(self):
        """The number of blocks that host b has received, and the age of its daemon in seconds."""
        report = self.status("b")
        if report is None:
            self._processes["b"].fail("does not answer")
        received = sum(job["blocks_received"] for job in report["jobs"])
        return received, report["uptime_ns"] / 1e9

    def save(self):
        for node in self._spaces:
            said = json.dumps(self.status(node), indent=1)
            (LOGS / f"{self.label}-{node}.json").write_text(said)


def link_bits(space):
    """The bits that a host has received over its link until now, and the time."""
    shown = subprocess.run(["ip", "-n", space, "-s", "-j", "link", "show", "dev", "dp0"],
                           capture_output=True, text=True, check=True, timeout=10)  # fmt: skip
    received = json.loads(shown.stdout)[0]["stats64"]["rx"]
    return 8 * (received["bytes"] + LINK_OVERHEAD_BYTES * received["packets"]), time.monotonic()


def rates(link, seconds, flow=None):
    """The rates of all flows to host b together, and of `flow`, in Mbit/s on the link."""
    first = link_bits(link.hosts["b"]), flow.blocks() if flow else (0, 0)
    time.sleep(seconds)
    last = link_bits(link.hosts["b"]), flow.blocks() if flow else (0, 1)
    (all_bits, all_time), (blocks, block_time) = (
        [after - before for before, after in zip(*pair)] for pair in zip(first, last)
    )
    return all_bits / all_time / 1e6, 8 * FRAME_BYTES * blocks / block_time / 1e6
