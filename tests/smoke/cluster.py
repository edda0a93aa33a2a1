# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Real daemons on the hosts of a lab, for smoke tests. Needs root and a build with DPDK."""

import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import netlab  # noqa: E402

BUILD = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
DAEMON = BUILD / "control/daemon/gradplaned"
CLI = BUILD / "control/cli/gradplane"
RANK = BUILD / "tests/smoke/rank_client"
START_SECONDS = 30
RANK_SECONDS = 120
SKIP = 77
# Seven hosts with two trees. r1 and r2 have no ranks. Each tree has at least one relay.
TREE_HOSTS = ["agg", "r1", "r2", "w1", "w2", "w3", "w4"]
TREE = """manual
  trees:
    - root: agg
      parents: {r1: agg, r2: agg, w1: r1, w2: r1, w3: r2, w4: r2}
    - root: r1
      weight: 2
      parents: {r2: r1, w1: r1, w2: r2, w3: r2, w4: r1}"""


class Failure(Exception):
    """A result that differs from the expected one."""


def skip_unless_possible():
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for needed in (DAEMON, CLI, RANK):
        if not os.access(needed, os.X_OK):
            skip(f"{needed.name} is not built")


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(SKIP)


def expect(condition, what):
    if not condition:
        raise Failure(what)


def wait_until(condition, what, seconds=START_SECONDS):
    """Polls until a condition is true, and returns its value. A failure names the condition."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Failure(f"waited {seconds} s for {what}")
        time.sleep(0.05)
    return value


class Cluster:
    """A daemon for each host of a lab, with sockets, files and ranks. Ends all that it started."""

    def __init__(self, lab, plan="star", port="af_packet", rate="", extra=""):
        self.lab = lab
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gradplane-smoke-"))
        self._key = secrets.token_hex(16)
        self._plan = plan
        self._port = port
        self._rate = f"\n  link_rate: {rate}" if rate else ""
        self._extra = extra
        self.daemons = {}
        self._ranks = []

    def __enter__(self):
        for name in self.lab.hosts:
            self.start(name)
        for name in self.lab.hosts:
            self.wait_ready(name)
        return self

    def __exit__(self, *_):
        for process in [*self._ranks, *self.daemons.values()]:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def socket(self, name):
        return self.folder / f"{name}.sock"

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def config(self, name, **changes):
        """Writes a node's configuration file. `changes` replaces text in it."""
        nodes = "".join(
            f"    - {{name: {h.name}, address: {h.dataplane_address}/24"
            f"{', aggregate: true' if h.name.startswith('agg') else ''}}}\n"
            for h in self.lab.hosts.values()
        )
        text = (
            f"control:\n  socket: {self.socket(name)}\n"
            f"port:\n  kind: {self._port}\n  interface: dp0{self._rate}\n"
            f'cluster:\n  key: "{self._key}"\n  nodes:\n{nodes}plan:\n  kind: {self._plan}\n'
            f"{self._extra}"
        )
        for old, new in changes.get("replace", []):
            expect(old in text, f"'{old}' is in the configuration")
            text = text.replace(old, new)
        path = self.folder / f"{changes.get('file', name)}.yaml"
        path.write_text(text)
        path.chmod(0o600)
        return path

    def command(self, name, config=None):
        return [
            "ip", "netns", "exec", self.lab.hosts[name].namespace,
            str(DAEMON), "--config", str(config or self.config(name)), "--node", name,
        ]  # fmt: skip

    def start(self, name, **changes):
        """Starts a daemon. `changes` are those of config()."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                self.command(name, self.config(name, **changes)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )

    def wait_ready(self, name):
        def ready():
            expect(self.daemons[name].poll() is None, f"daemon {name} runs:\n{self.log(name)}")
            return self.status(name)

        wait_until(ready, f"the daemon of {name} to answer")

    def status(self, name):
        """The daemon's status, or None if it does not answer."""
        answer = subprocess.run(
            [CLI, "status", "--json", "--socket", self.socket(name)],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def tell(self, name, *command):
        """Runs a command of the operator's tool on a node, and returns its output."""
        return subprocess.run(
            [CLI, *command, "--socket", self.socket(name)],
            capture_output=True, text=True, timeout=20, check=True,
        ).stdout  # fmt: skip

    def rank(self, host, rank, world, *options):
        """Starts a rank without a framework on a host."""
        process = subprocess.Popen(
            [RANK, "--socket", self.socket(host), "--rank", str(rank), "--world", str(world),
             *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._ranks.append(process)
        return process

    def run_ranks(self, hosts, *options):
        """Runs all ranks of a job. Fails unless each rank finds every sum right."""
        ranks = [self.rank(h, r, len(hosts), *options) for r, h in enumerate(hosts)]
        for process in ranks:
            text = process.communicate(timeout=RANK_SECONDS)[0]
            expect(process.returncode == 0, f"a rank finds every sum right: {text.strip()}")
        return ranks


def terminate(process, seconds=10):
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=seconds)


def run_until_open(c, workers, count=100000):
    """Starts ranks of a job, one on each worker, and waits until rounds complete."""
    options = ("--rounds", count, "--elements", 5000)
    ranks = [c.rank(h, r, len(workers), *options) for r, h in enumerate(workers)]
    wait_until(lambda: rounds_of(c, "agg") > 20, "rounds to go by")
    return ranks


def rounds_of(c, host):
    """The number of rounds that the first job of a node has completed."""
    jobs = c.status(host)["jobs"]
    return jobs[0]["rounds_completed"] if jobs else 0


def go_on(c, rounds):
    before = rounds_of(c, "w1")
    wait_until(lambda: rounds_of(c, "w1") > before + rounds, "rounds to go on")


def all_are_right(ranks):
    """Waits for the ranks, which must find all sums right. Returns their output."""
    texts = []
    for process in ranks:
        texts.append(process.communicate(timeout=RANK_SECONDS)[0].strip())
        expect(process.returncode == 0, f"a rank finds every sum right: {texts[-1]}")
    return texts


def replan(c, host, *command):
    """Runs `gradplane replan` on a host for the job of w1, and returns the finished process."""
    job = c.status("w1")["jobs"][0]["id"]
    return subprocess.run(
        [CLI, "replan", f"{job:08x}", *command, "--socket", c.socket(host)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def run(tests):
    """Runs test functions, and prints one line for each. Returns the exit code."""
    skip_unless_possible()
    failed = 0
    for test in tests:
        try:
            test()
            print(f"ok   {test.__name__}")
        except (Failure, subprocess.TimeoutExpired, netlab.LabError) as problem:
            failed += 1
            print(f"FAIL {test.__name__}: {problem}")
        sys.stdout.flush()
    return 1 if failed else 0
