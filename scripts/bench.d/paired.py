# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The daemons of a contestant, and ranks of an unmodified PyTorch program that follows commands
(tests/peers/paired_ranks.py), on this host or on two hosts that a veth pair joins."""

import contextlib
import json
import os
import pathlib
import re
import secrets
import selectors
import subprocess
import tempfile
import time

import harness
import veth_path

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANK = ROOT / "tests/peers/paired_ranks.py"
DAEMON = ROOT / "build/control/daemon/gradplaned"
CLI = ROOT / "build/control/cli/gradplane"
PYTHON = "/usr/bin/python3"
START_SECONDS = 60
ANSWER_SECONDS = 300
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_bytes(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


class Running:
    """A contestant's daemons and the ranks of its jobs, as a context. It ends all that it started.

    The ranks of each job meet at a port of their own, from `port` on.
    """

    def __init__(self, contestant, ranks, jobs, port, logs):
        self._contestant, self._count, self._port = contestant, ranks, port
        self._jobs = jobs
        self._logs = logs / f"{contestant.name}-{ranks}-{jobs}"
        self.daemons, self.ranks = [], []
        self._hosts = None
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        try:
            self._folder = self._stack.enter_context(
                tempfile.TemporaryDirectory(prefix="gradplane-bench-")
            )
            self._logs.mkdir(parents=True, exist_ok=True)
            if self._contestant.path == "veth":
                pair = veth_path.two_hosts(self._contestant.offloads)
                self._hosts = self._stack.enter_context(pair)
            self._start_daemons()
            self._start_ranks()
            for number, rank in enumerate(self.ranks):
                self._answer(number, rank, START_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.ranks:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for process in self.ranks + self.daemons:
            if process in self.daemons:
                process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._stack.close()

    def _inside(self, host):
        return self._hosts.inside(host) if self._hosts else []

    def _log(self, name):
        return self._stack.enter_context(open(self._logs / f"{name}.log", "wb"))

    def _start_daemons(self):
        key = secrets.token_hex(16)
        for host, (name, role) in enumerate(self._contestant.nodes):
            config = pathlib.Path(self._folder) / f"{name}.yaml"
            settings = self._contestant.settings_of(self._folder, key, name, role)
            config.write_text(self._contestant.text.format(**settings))
            config.chmod(0o600)
            log = self._log(name)
            self.daemons.append(
                subprocess.Popen([*self._inside(host), DAEMON, "--config", config,
                                  "--node", name],
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )  # fmt: skip
            self._wait_for(name)

    def _wait_for(self, name):
        deadline = time.monotonic() + START_SECONDS
        command = [CLI, "status", "--json", "--socket", f"{self._folder}/{name}.sock"]
        while subprocess.run(command, capture_output=True, timeout=10, check=False).returncode:
            if self.daemons[-1].poll() is not None or time.monotonic() > deadline:
                raise harness.BenchError(f"daemon {name} does not answer; see {self._logs}")
            time.sleep(0.05)

    def _start_ranks(self):
        for job in range(self._jobs):
            self._start_job(self._port + job)

    def _start_job(self, port):
        for rank in range(self._count):
            command = [PYTHON, str(RANK)]
            if self._contestant.nodes:
                # The first half of the ranks is at the first node.
                node = self._contestant.nodes[rank * len(self._contestant.nodes) // self._count][0]
                socket = f"{self._folder}/{node}.sock"
                command = [str(CLI), "run", "--socket", socket, "--require", "--", *command]
            variables = {
                "RANK": str(rank), "WORLD_SIZE": str(self._count), "MASTER_ADDR": self._meeting(),
                "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": self._interface(),
                "OMP_NUM_THREADS": "1", "USE_LIBUV": "0",
            }  # fmt: skip
            command = [*self._inside(rank * 2 // self._count), *command]
            log = self._log(f"rank{len(self.ranks)}")
            self.ranks.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=log, env={**os.environ, **variables})
            )  # fmt: skip

    def _meeting(self):
        """The address of rank 0."""
        return veth_path.MEETING_ADDRESS.format(1) if self._hosts else "127.0.0.1"

    def _interface(self):
        """The interface of Gloo. With daemons Gloo carries nothing that is timed."""
        if self._hosts is None:
            return "lo"
        return veth_path.MEETING if self._contestant.nodes else veth_path.DATA

    def _answer(self, number, rank, seconds):
        with selectors.DefaultSelector() as selector:
            selector.register(rank.stdout, selectors.EVENT_READ)
            line = selector.select(seconds) and rank.stdout.readline()
        if not line:
            raise harness.BenchError(
                f"rank {number} of {self._contestant.name} did not answer within {seconds} s, or "
                f"ended; see {self._logs}"
            )
        return json.loads(line)

    def resident_bytes(self):
        """The resident memory of all daemons."""
        return sum(map(resident_bytes, self.daemons))

    def ask(self, command):
        """Sends a command to all ranks. Returns (seconds of rank 0, whether all ranks had correct
        sums, cores used by daemons and ranks)."""
        begun = time.monotonic()
        before = [sum(map(cpu_seconds, group)) for group in (self.daemons, self.ranks)]
        for rank in self.ranks:
            rank.stdin.write(json.dumps(command).encode() + b"\n")
            rank.stdin.flush()
        answers = [self._answer(n, rank, ANSWER_SECONDS) for n, rank in enumerate(self.ranks)]
        after = [sum(map(cpu_seconds, group)) for group in (self.daemons, self.ranks)]
        took = time.monotonic() - begun
        cores = [(b - a) / took for a, b in zip(before, after)]
        return answers[0]["seconds"], all(a["correct"] for a in answers), cores
