# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`dataplane`: a fast path, where the program is the limit and no link is. Ranks of an unmodified
PyTorch program on this host sum one float tensor after the other: over Gloo and the kernel's TCP on
the loopback interface, over two daemons that a memif joins, and over one daemon alone. In cases of
a veth pair they are on two hosts of this kernel: over Gloo, with and without segments longer than
the MTU, and over two daemons with af_xdp and af_packet.

Contestants run one at a time, each for all cases, and again in each pass; a case's times are those
of all passes. Times are those of rank 0. The bound of a case is one pass of memcpy over its bytes,
measured in the same run, so it says how far a contestant is from one copy of the data.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import selectors
import statistics
import subprocess
import tempfile
import time

import harness
import report
import veth_path

DESCRIPTION = __doc__
ROOT = pathlib.Path(__file__).resolve().parents[2]
RANK = ROOT / "tests/peers/paired_ranks.py"
DAEMON = ROOT / "build/control/daemon/gradplaned"
CLI = ROOT / "build/control/cli/gradplane"
PYTHON = "/usr/bin/python3"

KIB, MIB = 1024, 1024 * 1024
SIZES = (4, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
QUICK_SIZES = (4, MIB, 64 * MIB)
RANKS = (2, 4, 8)
PASSES, QUICK_PASSES = 3, 1
# A case is repeated for about so long in each pass of each contestant, at Gloo's speed.
CASE_SECONDS = 1.5
EXPECTED_BYTES_PER_SECOND = 1.0e9
EXPECTED_ROUND_SECONDS = 400e-6
MAX_ROUNDS = 3000
MIN_ROUNDS = 4
MANY = {"bytes": 400, "rounds": 10_000, "depth": 1000}
START_SECONDS = 60
ANSWER_SECONDS = 300
FIRST_PORT = 29600
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

MEMIF = """\
control: {{socket: {folder}/{name}.sock}}
port:
  kind: memif
  mtu: {mtu}
  huge_pages: auto
  memif: {{socket: {folder}/m, role: {role}}}
cluster:
  key: "{key}"
  nodes:
    - {{name: a, address: 10.77.0.1/24}}
    - {{name: b, address: 10.77.0.2/24}}
plan: {{kind: sharded, roots: training}}
security: {{authenticate: {authenticate}}}
"""
VETH = """\
control: {{socket: {folder}/{name}.sock}}
port: {{kind: {kind}, interface: {interface}, huge_pages: auto}}
cluster:
  key: "{key}"
  nodes:
    - {{name: a, address: 10.77.0.1/24}}
    - {{name: b, address: 10.77.0.2/24}}
plan: {{kind: sharded, roots: training}}
"""
LOOPBACK = """\
control: {{socket: {folder}/{name}.sock}}
port: {{kind: loopback}}
cluster:
  nodes:
    - {{name: a, address: 10.77.0.1/24, aggregate: true}}
plan: {{kind: star}}
"""


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    nodes: tuple = ()  # (name, memif role), a daemon for each; none: Gloo alone
    text: str = ""  # of a daemon's file
    settings: tuple = ()
    path: str = "host"
    offloads: bool = True  # of the kernel's TCP

    def settings_of(self, folder, key, name, role):
        return dict(self.settings, folder=folder, key=key, name=name, role=role)


TWO = (("a", "server"), ("b", "client"))
CONTESTANTS = (
    Contestant("gloo"),
    Contestant("memif", TWO, MEMIF, (("mtu", 9000), ("authenticate", "true"))),
    Contestant("memif-open", TWO, MEMIF, (("mtu", 9000), ("authenticate", "false"))),
    Contestant("memif-1500", TWO, MEMIF, (("mtu", 1500), ("authenticate", "true"))),
    Contestant("loopback", (("a", ""),), LOOPBACK),
    Contestant("gloo-segments", path="veth"),
    Contestant("gloo-plain", path="veth", offloads=False),
    *(Contestant(kind, (("a", ""), ("b", "")), VETH,
                 (("kind", kind), ("interface", veth_path.DATA)), path="veth", offloads=False)
      for kind in ("af_xdp", "af_packet")),
)
# Whom the others of a path are compared with.
RIVALS = {"host": "gloo", "veth": "gloo-plain"}
COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("rounds", lambda e: str(e["runs"])),
    ("median", lambda e: time_text(e["median_s"])),
    ("p99", lambda e: time_text(e["p99_s"])),
    ("GB/s", lambda e: f"{e['case']['bytes'] * e['per_time'] / e['median_s'] / 1e9:.2f}"),
    ("x Gloo's time", lambda e: ratio_text(e["over_gloo"])),
    ("x Gloo's p99", lambda e: ratio_text(e["p99_over_gloo"])),
    ("over one copy", lambda e: f"{e['over_bound']:.2f}"),
    ("cores of daemons", lambda e: f"{e['daemon_cores']:.2f}"),
    ("cores of ranks", lambda e: f"{e['rank_cores']:.2f}"),
)


def time_text(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"


def ratio_text(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def size_text(count):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def path_of(case):
    return case.get("path", "host")


def label(case):
    place = {"host": "", "veth": ", a veth pair"}[path_of(case)]
    if "depth" in case:
        return f"{case['ranks']} ranks, {case['rounds']} sums of {case['bytes']} B in flight{place}"
    return f"{case['ranks']} ranks, {size_text(case['bytes'])}{place}"


def make_cases(quick):
    sizes = QUICK_SIZES if quick else SIZES
    cases = [{"ranks": 2, "bytes": size} for size in sizes]
    cases.append({"ranks": 2, **MANY})
    if not quick:
        cases += [{"ranks": n, "bytes": size} for n in RANKS[1:] for size in QUICK_SIZES]
        cases += [{"ranks": 2, "bytes": size, "path": "veth"} for size in SIZES]
    return cases


def rounds_of(case):
    expected = EXPECTED_ROUND_SECONDS + case["bytes"] / EXPECTED_BYTES_PER_SECOND
    return max(MIN_ROUNDS, min(MAX_ROUNDS, int(CASE_SECONDS / expected)))


def command_of(case):
    told = {k: v for k, v in case.items() if k not in ("ranks", "path")}
    return {"rounds": rounds_of(case), **told}


def cpu_seconds(process):
    """User and system time so far."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


class Running:
    """A contestant's daemons and ranks. Ends all that it started."""

    def __init__(self, contestant, ranks, port, logs):
        self._contestant, self._count, self._port = contestant, ranks, port
        self._logs = logs / f"{contestant.name}-{ranks}"
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
        for rank in range(self._count):
            command = [PYTHON, str(RANK)]
            if self._contestant.nodes:
                # The first half of the ranks is at the first node.
                node = self._contestant.nodes[rank * len(self._contestant.nodes) // self._count][0]
                socket = f"{self._folder}/{node}.sock"
                command = [str(CLI), "run", "--socket", socket, "--require", "--", *command]
            variables = {
                "RANK": str(rank), "WORLD_SIZE": str(self._count), "MASTER_ADDR": self._meeting(),
                "MASTER_PORT": str(self._port), "GLOO_SOCKET_IFNAME": self._interface(),
                "OMP_NUM_THREADS": "1",
            }  # fmt: skip
            command = [*self._inside(rank * 2 // self._count), *command]
            self.ranks.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=self._log(f"rank{rank}"), env={**os.environ, **variables})
            )  # fmt: skip

    def _meeting(self):
        """Where rank 0 is found."""
        return veth_path.MEETING_ADDRESS.format(1) if self._hosts else "127.0.0.1"

    def _interface(self):
        """Gloo's. Beside daemons it carries nothing that is timed."""
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

    def ask(self, command):
        """(seconds of rank 0, whether all ranks had the right sums, cores of daemons and ranks)."""
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


def copy_seconds(count):
    """One copy of so many bytes, the median of some."""
    source, target = bytearray(count), bytearray(count)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        target[:] = source
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def entry_of(contestant, case, samples, bound):
    """One entry of "cases" of the JSON, of the answers of all passes."""
    seconds = [value for times, _, _ in samples for value in times]
    entry = {
        "contestant": contestant, "case": case, "bound_s": bound, "runs": len(seconds),
        "correct": all(correct for _, correct, _ in samples),
    }  # fmt: skip
    median, p99 = statistics.median(seconds), percentile(seconds, 0.99)
    return {
        **entry,
        "median_s": median, "p99_s": p99, "over_bound": median / bound,
        "per_time": case["rounds"] if "depth" in case else 1,
        "daemon_cores": statistics.mean(cores[0] for _, _, cores in samples),
        "rank_cores": statistics.mean(cores[1] for _, _, cores in samples),
        "samples_s": seconds,
    }  # fmt: skip


def compare(entries):
    """Adds to each entry how it stands beside Gloo in the same case."""
    gloo = {
        label(e["case"]): e for e in entries if e["contestant"] == RIVALS[path_of(e["case"])]
    }
    for entry in entries:
        rival = gloo.get(label(entry["case"]))
        entry["over_gloo"] = entry["median_s"] / rival["median_s"] if rival else None
        entry["p99_over_gloo"] = entry["p99_s"] / rival["p99_s"] if rival else None
    return entries


def tables(entries):
    return report.local_table(entries, COLUMNS, label)


def draw(entries, folder):
    return []


def run(options):
    """The entries of all cases that are asked for."""
    for program in (DAEMON, CLI):
        if not program.exists():
            raise harness.BenchError(f"{program} is not built; run scripts/build")
    cases = [c for c in make_cases(options.quick) if options.case.search(label(c))]
    chosen = [c for c in CONTESTANTS if options.contestant.search(c.name)]
    passes = options.repeats or (QUICK_PASSES if options.quick else PASSES)
    samples, port = {}, FIRST_PORT
    for _ in range(passes):
        for ranks in sorted({case["ranks"] for case in cases}):
            for contestant in chosen:
                place = (ranks, contestant.path)
                theirs = [c for c in cases if (c["ranks"], path_of(c)) == place]
                if not theirs:
                    continue
                port += 1
                with Running(contestant, ranks, port, options.logs) as running:
                    for case in theirs:
                        command = command_of(case)
                        running.ask({**command, "rounds": max(2, command["rounds"] // 10)})
                        key = (contestant.name, label(case))
                        samples.setdefault(key, (case, []))[1].append(running.ask(command))
    bounds = {size: copy_seconds(size) for size in {case["bytes"] for case in cases}}
    entries = compare([
        entry_of(name, case, answers, bounds[case["bytes"]] * case.get("rounds", 1))
        for (name, _), (case, answers) in samples.items()
    ])  # fmt: skip
    if options.json:
        settings = {"quick": options.quick, "repeats": passes, "first_seed": 0}
        report.write_json(options.json, report.document("dataplane", entries, settings))
    return entries
