#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""One tenant against the others at a real daemon, whose quotas go by the kernel's user ids."""

import contextlib
import json
import mmap
import os
import pathlib
import signal
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
        # Other tests check who may open the socket.
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
        """The number of channels that the daemon has mapped."""
        maps = pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()
        return maps.count("memfd:gradplane-channel")

    def files(self):
        """The number of channels that the daemon has open."""
        links = pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()
        return sum("memfd:gradplane-channel" in os.readlink(link) for link in links)


@contextlib.contextmanager
def as_user(uid):
    """Runs the `with` block as another user. A socket keeps the user that has connected it."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


class Rank:
    """A rank that implements only the protocol, and does not use what the daemon passes to it."""

    def __init__(self, daemon, uid, key, rank=0, world=2, keep=None):
        self._keep = keep  # makes, from the descriptor, what the rank keeps of its memory
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
        self.descriptors = len(fds)
        if fds and self._keep:
            self.kept = self._keep(fds[0])
        for fd in fds:
            os.close(fd)
        return json.loads(data)

    def leave(self, in_order=True):
        if in_order:
            self._send({"type": "detach", "clean": True})
            while self.socket.recv(MAX_MESSAGE_BYTES):
                pass
        self.socket.close()


class Path:
    """Refers to a file without opening it. It can be opened later through /proc."""

    def __init__(self, fd):
        self._fd = os.open(f"/proc/self/fd/{fd}", os.O_PATH)

    def read(self):
        return pathlib.Path(f"/proc/self/fd/{self._fd}").read_bytes()

    def close(self):
        os.close(self._fd)


class Copy:
    def __init__(self, fd):
        self._fd = os.dup(fd)

    def close(self):
        os.close(self._fd)


def mapped(fd):
    return mmap.mmap(fd, 4096)


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


def a_rank_counts_until_its_memory_is_given_back():
    with Daemon() as daemon:
        keys = iter(range(1, 1000))
        kept = []
        for keep, in_order in ((Copy, True), (mapped, True), (Copy, False)):
            rank = Rank(daemon, TENANT, next(keys), keep=keep)
            expect(rank.attached, rank.refusal)
            rank.leave(in_order)
            kept.append(rank.kept)
        expect(len(kept) == RANKS, "as many as the quota allows")
        refused = Rank(daemon, TENANT, next(keys))
        expect(not refused.attached, "who keeps the memory of its ranks gets no more")
        expect("(quotas.ranks)" in refused.refusal, refused.refusal)
        expect(Rank(daemon, NEIGHBOUR, next(keys)).attached, "a neighbour finds room")
        for memory in kept:
            memory.close()
            rank = Rank(daemon, TENANT, next(keys), keep=Copy)
            expect(rank.attached, f"one given back, one more: {rank.refusal}")
            rank.leave()
            expect(not Rank(daemon, TENANT, next(keys)).attached, "and no more than that")


def who_leaves_in_order_and_keeps_nothing_attaches_at_once():
    with Daemon() as daemon:
        for key in range(1, 4 * RANKS):
            rank = Rank(daemon, TENANT, key)
            expect(rank.attached, rank.refusal)
            rank.leave()


def a_path_to_the_memory_keeps_nothing_of_it():
    with Daemon() as daemon:
        rank = Rank(daemon, TENANT, 1, keep=Path)
        expect(any(rank.kept.read()), "the daemon has written its header")
        rank.leave()
        wait_until(lambda: daemon.files() == 0, "the daemon to have nothing of it open")
        expect(not any(rank.kept.read()), "its content is gone")
        rank.kept.close()


def a_word_about_a_broken_lease_does_not_end_the_daemon():
    with Daemon() as daemon:
        daemon.process.send_signal(signal.SIGIO)
        expect(Rank(daemon, TENANT, 1).attached, "it serves")


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
        a_rank_counts_until_its_memory_is_given_back,
        who_leaves_in_order_and_keeps_nothing_attaches_at_once,
        a_path_to_the_memory_keeps_nothing_of_it,
        a_word_about_a_broken_lease_does_not_end_the_daemon,
        who_waits_too_long_is_told_for_whom,
    ]))  # fmt: skip
