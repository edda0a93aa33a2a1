# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`dataplane`: a fast path, on which the program is the limit and not a link. Ranks of an
unmodified PyTorch program on this host sum one float tensor after the other: over Gloo and the
kernel's TCP on the loopback interface, over two daemons that a memif joins, and over one daemon. In
cases with a veth pair the ranks are in two network namespaces: over Gloo, with and without segments
longer than the MTU, and over two daemons with af_xdp and af_packet.

Contestants run one at a time, each for all cases, and again in each pass. The times of a case are
those of all passes, measured by rank 0. The bound of a case is the time of one memcpy of its bytes,
measured in the same run. So a ratio to it says how far a contestant is from one copy of the data.
"""

import dataclasses
import statistics
import time

import harness
import paired
import report
import veth_path

DESCRIPTION = __doc__

KIB, MIB = 1024, 1024 * 1024
SIZES = (4, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
QUICK_SIZES = (4, MIB, 64 * MIB)
RANKS = (2, 4, 8, 16, 32, 64)
MAX_RANKS_OF_DAEMON = 64  # kMaxLocalRanks
JOBS = (2, 4, 8)
# Sums of 4 bytes of which one begins in each period of so many milliseconds.
PERIODS_MS = (1, 10, 100)
PASSES, QUICK_PASSES = 3, 1
# A case is repeated for about so long in each pass of each contestant, if it is as fast as Gloo.
CASE_SECONDS = 1.5
EXPECTED_BYTES_PER_SECOND = 1.0e9
EXPECTED_ROUND_SECONDS = 400e-6
MAX_ROUNDS = 3000
MIN_ROUNDS = 4
MANY = {"bytes": 400, "rounds": 10_000, "depth": 1000}
# Tensors that a step sums at the same time.
TENSORS = (10, 100, 1000)
FIRST_PORT = 29600

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
poll: {{{poll}}}
"""
VETH = """\
control: {{socket: {folder}/{name}.sock}}
port: {{kind: {kind}, interface: {interface}, mtu: {mtu}, huge_pages: auto}}
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
    nodes: tuple = ()  # (name, memif role) of each daemon; empty: only Gloo
    text: str = ""  # the configuration of a daemon
    settings: tuple = ()
    path: str = "host"
    offloads: bool = True  # whether the kernel's TCP uses segmentation offloads
    only_after_pauses: bool = False

    def takes(self, case):
        if self.only_after_pauses and "every_ms" not in case:
            return False
        return not self.nodes or case["ranks"] <= MAX_RANKS_OF_DAEMON * len(self.nodes)

    def settings_of(self, folder, key, name, role):
        return dict(self.settings, folder=folder, key=key, name=name, role=role)


TWO = (("a", "server"), ("b", "client"))
DEFAULTS = {"mtu": 9000, "authenticate": "true", "poll": ""}


def over_memif(name, *, only_after_pauses=False, **settings):
    return Contestant(name, TWO, MEMIF, tuple({**DEFAULTS, **settings}.items()),
                      only_after_pauses=only_after_pauses)  # fmt: skip


CONTESTANTS = (
    Contestant("gloo"),
    over_memif("memif"),
    over_memif("memif-open", authenticate="false"),
    over_memif("memif-1500", mtu=1500),
    # Its poll threads never sleep between two sums.
    over_memif("memif-awake", poll="spin: 1 s", only_after_pauses=True),
    Contestant("loopback", (("a", ""),), LOOPBACK),
    Contestant("gloo-segments", path="veth"),
    Contestant("gloo-plain", path="veth", offloads=False),
    *(Contestant(kind, (("a", ""), ("b", "")), VETH,
                 (("kind", kind), ("interface", veth_path.DATA), ("mtu", veth_path.MTU)),
                 path="veth", offloads=False)
      for kind in ("af_xdp", "af_packet")),
)
# The contestant with which the others of a path are compared.
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
    ("MB of daemons", lambda e: f"{e['daemon_bytes'] / 1e6:.0f}"),
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


def jobs_of(case):
    """The number of jobs at the same time. All have the same ranks and sizes."""
    return case.get("jobs", 1)


def label(case):
    place = {"host": "", "veth": ", a veth pair"}[path_of(case)]
    who = f"{case['ranks']} ranks"
    if jobs_of(case) > 1:
        who += f" in each of {jobs_of(case)} jobs"
    if "depth" in case:
        at_once = "" if case["depth"] == case["rounds"] else f", {case['depth']}"
        return f"{who}, {case['rounds']} sums of {case['bytes']} B{at_once} in flight{place}"
    if "every_ms" in case:
        return f"{who}, {size_text(case['bytes'])} every {case['every_ms']} ms{place}"
    return f"{who}, {size_text(case['bytes'])}{place}"


def make_cases(quick):
    sizes = QUICK_SIZES if quick else SIZES
    cases = [{"ranks": 2, "bytes": size} for size in sizes]
    cases.append({"ranks": 2, **MANY})
    if not quick:
        cases += [{"ranks": 2, "bytes": MANY["bytes"], "rounds": n, "depth": n} for n in TENSORS]
        cases += [{"ranks": n, "bytes": size} for n in RANKS[1:] for size in QUICK_SIZES]
        cases += [{"ranks": 2, "bytes": MIB, "jobs": n} for n in JOBS]
        periods = [{"ranks": 2, "bytes": 4, "every_ms": period} for period in PERIODS_MS]
        cases += periods
        cases += [{"ranks": 2, "bytes": size, "path": "veth"} for size in SIZES]
        cases += [{**case, "path": "veth"} for case in periods]
    return cases


def rounds_of(case):
    expected = EXPECTED_ROUND_SECONDS + case["bytes"] / EXPECTED_BYTES_PER_SECOND
    expected = max(expected, case.get("every_ms", 0) / 1000)
    return max(MIN_ROUNDS, min(MAX_ROUNDS, int(CASE_SECONDS / expected)))


def command_of(case):
    told = {k: v for k, v in case.items() if k not in ("ranks", "path", "jobs")}
    if "depth" in case:
        return {**told, "repeats": MANY["rounds"] // case["rounds"]}
    return {"rounds": rounds_of(case), **told}


def copy_seconds(count):
    """The median time of some copies of so many bytes."""
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
    """One entry of "cases" of the JSON, from the answers of all passes."""
    seconds = [value for times, *_ in samples for value in times]
    entry = {
        "contestant": contestant, "case": case, "bound_s": bound, "runs": len(seconds),
        "correct": all(correct for _, correct, *_ in samples),
    }  # fmt: skip
    median, p99 = statistics.median(seconds), percentile(seconds, 0.99)
    return {
        **entry,
        "median_s": median, "p99_s": p99, "over_bound": median / bound,
        "per_time": case["rounds"] if "depth" in case else 1,
        "daemon_cores": statistics.mean(cores[0] for _, _, cores, _ in samples),
        "rank_cores": statistics.mean(cores[1] for _, _, cores, _ in samples),
        "daemon_bytes": max(resident for *_, resident in samples),
        "samples_s": seconds,
    }  # fmt: skip


def compare(entries):
    """Adds to each entry its ratio to Gloo in the same case."""
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
    """The entries of all chosen cases."""
    for program in (paired.DAEMON, paired.CLI):
        if not program.exists():
            raise harness.BenchError(f"{program} is not built; run scripts/build")
    cases = [c for c in make_cases(options.quick) if options.case.search(label(c))]
    chosen = [c for c in CONTESTANTS if options.contestant.search(c.name)]
    passes = options.repeats or (QUICK_PASSES if options.quick else PASSES)
    samples, port = {}, FIRST_PORT
    for _ in range(passes):
        for ranks, jobs in sorted({(case["ranks"], jobs_of(case)) for case in cases}):
            for contestant in chosen:
                place = (ranks, jobs, contestant.path)
                theirs = [c for c in cases if (c["ranks"], jobs_of(c), path_of(c)) == place
                          and contestant.takes(c)]  # fmt: skip
                if not theirs:
                    continue
                port += jobs
                with paired.Running(contestant, ranks, jobs, port, options.logs) as running:
                    for case in theirs:
                        command = command_of(case)
                        running.ask({**command, "rounds": max(2, command["rounds"] // 10)})
                        key = (contestant.name, label(case))
                        answer = (*running.ask(command), running.resident_bytes())
                        samples.setdefault(key, (case, []))[1].append(answer)
    bounds = {size: copy_seconds(size) for size in {case["bytes"] for case in cases}}
    entries = compare([
        entry_of(name, case, answers, bounds[case["bytes"]] * case.get("rounds", 1))
        for (name, _), (case, answers) in samples.items()
    ])  # fmt: skip
    if options.json:
        settings = {"quick": options.quick, "repeats": passes, "first_seed": 0}
        report.write_json(options.json, report.document("dataplane", entries, settings))
    return entries
