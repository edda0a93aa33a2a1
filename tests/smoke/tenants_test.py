#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""One tenant against the others at a real daemon: quotas by the kernel's word of who connects."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from cluster import CLI, DAEMON, expect, run, terminate, wait_until

SECONDS = 20
MAX_MESSAGE_BYTES = 65536
MAX_PASSED_FDS = 8
TENANT, NEIGHBOUR = 40001, 40002
JOBS, RANKS = 2, 3
CONFIG = f"""node: {{name: local}}
control: {{socket: SOCKET, allow_uids: [{TENANT}, {NEIGHBOUR}]}}
port: {{kind: loopback}}
cluster: {{nodes: [{{name: local, address: 10.77.0.1/24, aggregate: true}}]}}
rounds: {{bytes: 64 KiB}}
quotas: {{jobs: {JOBS}, ranks: {RANKS}, wait: 10 s}}
"""


class Daemon:
    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="gradplane-smoke-")
        folder = pathlib.Path(self._folder.name)
        folder.chmod(0o755)
        self.socket = folder / "s"
        config = folder / "c.yaml"
        config.write_text(CONFIG.replace("SOCKET", str(self.socket)))
        self._log = open(folder / "log", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [DAEMON, "--config", config], stdin=subprocess.DEVNULL, stdout=self._log,
            stderr=self._log,
        )  # fmt: skip
        wait_until(self.status, "the daemon to answer")
        # Who may open the socket is another test's matter.
        self.socket.chmod(0o666)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            terminate(self.process)
        self._log.close()
        self._folder.cleanup()

    def status(self):
        answer = subprocess.run(
            [CLI, "status", "--json", "--socket", self.socket],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def channels(self):
        """Channels of ranks that the daemon has mapped."""
        maps = pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()
        return maps.count("memfd:gradplane-channel")


@contextlib.contextmanager
def as_user(uid):
    """Sockets keep whose they were when they connected."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Rank:
    """The bare protocol; nothing is done with what the daemon gives."""

    def __init__(self, daemon, uid, key, rank=0, world=2):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(SECONDS)
        with as_user(uid):
            self.socket.connect(str(daemon.socket))
        self._send({"type": "hello", "version": 1, "role": "rank", "pid": os.getpid()})
        expect(self.receive()["type"] == "hello", "the daemon greets")
        self._send({"type": "attach", "key": f"{key:032x}", "rank": rank, "world_size": world})
        self.descriptors = 0
        answer = self.receive()
        while answer["type"] == "waiting":
            answer = self.receive()
        self.attached = answer["type"] == "attached"
        self.refusal = answer.get("reason", "")

    def _send(self, message):
        self.socket.send(json.dumps(message).encode())

    def receive(self):
        data, fds, _, _ = socket.recv_fds(self.socket, MAX_MESSAGE_BYTES, MAX_PASSED_FDS)
        for fd in fds:
            os.close(fd)
        self.descriptors = len(fds)
        return json.loads(data)


def a_tenant_leaves_room_for_others_and_refused_ranks_get_no_memory():
    with Daemon() as daemon:
        keys = iter(range(1, 100))
        ranks = [Rank(daemon, TENANT, next(keys)) for _ in range(JOBS)]
        expect(all(r.attached and r.descriptors == 3 for r in ranks), "it may have some")
        expect(daemon.channels() == JOBS, "each rank has its memory")
        more = [Rank(daemon, TENANT, next(keys)) for _ in range(14)]
        expect(not any(r.attached or r.descriptors for r in more), "and no more")
        expect(f"{JOBS} jobs of user {TENANT} already" in more[0].refusal, more[0].refusal)
        expect(daemon.channels() == JOBS, "a refused rank has no memory")
        neighbour = Rank(daemon, NEIGHBOUR, 1000)
        expect(neighbour.attached, f"a neighbour finds room: {neighbour.refusal}")
        counted = daemon.status()["control_rejected"]
        expect(counted.get("user_jobs") == len(more), f"each is counted: {counted}")


def ranks_are_bounded_too():
    with Daemon() as daemon:
        ranks = [Rank(daemon, TENANT, 1, rank, 8) for rank in range(RANKS + 1)]
        expect([r.attached for r in ranks] == [True] * RANKS + [False], "so many and no more")
        expect("(quotas.ranks)" in ranks[-1].refusal, ranks[-1].refusal)
        expect(daemon.channels() == RANKS, "a refused rank has no memory")
        expect(daemon.status()["control_rejected"].get("user_ranks") == 1, "it is counted")


def who_waits_too_long_is_told_for_whom():
    with Daemon() as daemon:
        rank = Rank(daemon, TENANT, 1, 0, 3)
        told = rank.receive()
        while told["type"] == "waiting":
            told = rank.receive()
        expect(told["type"] == "failed" and "ranks 1 and 2 of 3" in told["reason"], str(told))
        report = daemon.status()
        expect(report["control_rejected"].get("waited_too_long") == 1, str(report))
        expect(not report["jobs"], "its slot is free")


if __name__ == "__main__":
    sys.exit(run([
        a_tenant_leaves_room_for_others_and_refused_ranks_get_no_memory,
        ranks_are_bounded_too,
        who_waits_too_long_is_told_for_whom,
    ]))  # fmt: skip
