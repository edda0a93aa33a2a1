# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`aggregator`: how much one core receives from a memif, or from a veth pair, whose other end
another core keeps full. A poll loop of gradplane sums for eight workers, checks the tag of each
packet, and sends the results to all workers. For comparison `dpdk-testpmd` in its mode `rxonly`
drops frames of the same length, which another one sends in its mode `txonly`. That is the bound. An
entry's median_s is the time of a packet.

Contestants run in turn, in each pass. Two cores must be idle otherwise. Samples of cores that are
near each other and of cores that are not are in separate tables.
"""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import core_distance
import harness
import report
import veth_path

DESCRIPTION = __doc__
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/tests/perf/aggregator"
TESTPMD = "dpdk-testpmd"

BLOCKS = (1408, 8832)  # fill frames of 1500 and nearly of 9000 bytes
WORKERS = (8, 2)
ROUND_KIB = {1408: 64, 8832: 256}
# The workers repair nothing. So what they have in flight must fit the rings of a packet socket: by
# the length of blocks and the number of workers, of which each has four rounds in flight.
VETH_ROUND_KIB = {(1408, 8): 16, (1408, 2): 64, (8832, 8): 64, (8832, 2): 256}
VETH_MTU = {1408: 1500, 8832: 9000}
VETH_KINDS = ("af_packet", "af_xdp")
INTERFACES = ("gpa0", "gpb0")
# Envelope, header, hop feedback and tag; UDP, IPv4 and Ethernet (docs/wire-protocol.md).
OVERHEAD_BYTES = 56 + 8 + 20 + 14
SECONDS, QUICK_SECONDS = 3, 1
PASSES, QUICK_PASSES = 3, 1
START_SECONDS = 2
# Workers that wait longer for a packet have lost one.
LONGEST_PAUSE_SECONDS = 0.5
LIMIT_SECONDS = 60
POLL_CORE, PEER_CORE = 0, 1
PAGE_BYTES = 4096
# Of testpmd: name, core and mode.
ENDS = (("rx", POLL_CORE, "rxonly"), ("tx", PEER_CORE, "txonly"))
TAGGED = {"gradplane": True, "gradplane-open": False}
RX_RATE = re.compile(r"Rx-pps:\s+(\d+)")
COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("Mpps in", lambda e: f"{e['received_per_second'] / 1e6:.2f}"),
    ("Mpps out", lambda e: f"{e['sent_per_second'] / 1e6:.2f}"),
    ("GB/s in", lambda e: f"{e['received_per_second'] * e['case']['block_bytes'] / 1e9:.2f}"),
    ("ns a packet in", lambda e: f"{e['median_s'] * 1e9:.0f}"),
    ("of testpmd's packets", lambda e: percent(e["over_bound"])),
    ("turns without work", lambda e: idle_text(e["idle_share"])),
    ("passes", lambda e: str(e["runs"])),
)


def idle_text(share):
    return "-" if share is None else f"{100 * share:.0f} % of the time"


def percent(over_bound):
    return "-" if over_bound is None else f"{100 / over_bound:.0f} %"


def label(case):
    place = f", cores {case['cores']}" if "cores" in case else ""
    port = f", {case['kind']}" if case["kind"] in VETH_KINDS else ""
    return f"{case['workers']} workers, blocks of {case['block_bytes']} bytes{port}{place}"


def round_kib_of(case):
    if case["kind"] in VETH_KINDS:
        return VETH_ROUND_KIB[case["block_bytes"], case["workers"]]
    return ROUND_KIB[case["block_bytes"]]


def make_cases():
    memif = [{"workers": n, "block_bytes": size, "kind": "memif"}
             for size in BLOCKS for n in WORKERS]  # fmt: skip
    # A frame of af_xdp is less than a page.
    veth = [(BLOCKS[0], "af_packet"), (BLOCKS[0], "af_xdp"), (BLOCKS[1], "af_packet")]
    return memif + [{"workers": n, "block_bytes": size, "kind": kind}
                    for size, kind in veth for n in WORKERS]  # fmt: skip


@contextlib.contextmanager
def place_of(case):
    """A context with the words that run a command where its port can be opened: for a veth pair, in
    a namespace that has both ends."""
    if case["kind"] not in VETH_KINDS:
        yield []
        return
    name = f"gradplane-bench-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    try:
        veth_path.run("ip", "netns", "add", name)
        # Neither end may send a frame of its own. A kernel without IPv6 has no such setting.
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"],
                       check=False, capture_output=True, timeout=LIMIT_SECONDS)  # fmt: skip
        veth_path.run(*inside, "ip", "link", "add", INTERFACES[0], "type", "veth",
                      "peer", "name", INTERFACES[1])  # fmt: skip
        for interface in INTERFACES:
            mtu = str(VETH_MTU[case["block_bytes"]])
            veth_path.run(*inside, "ip", "link", "set", interface, "mtu", mtu, "up")
        yield inside
    except subprocess.CalledProcessError as error:
        raise harness.BenchError(f"{error}: {error.stderr}") from error
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True,
                       timeout=LIMIT_SECONDS)  # fmt: skip


def sums(case, tagged, seconds):
    """How much the poll loop of gradplane has received and sent."""
    command = [PROGRAM, "--workers", str(case["workers"]), "--seconds", str(seconds)]
    command += ["--block-bytes", str(case["block_bytes"]), "--kind", case["kind"]]
    command += ["--round-kib", str(round_kib_of(case))]
    command += ["--cores", str(POLL_CORE), str(PEER_CORE)] + ([] if tagged else ["--open"])
    with place_of(case) as inside:
        done = subprocess.run(
            [*inside, *(str(word) for word in command)], capture_output=True, text=True,
            check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip
    if done.returncode != 0:
        said = f"{done.stdout} {done.stderr}".strip()[-500:]
        raise harness.BenchError(f"{PROGRAM.name} failed with {done.returncode}: {said}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["longest_pause_s"] > LONGEST_PAUSE_SECONDS:
        raise harness.BenchError(f"the workers stood still, as after a loss: {answer}")
    return answer


def device(kind, end, folder, buffer_bytes):
    """The words that give testpmd one end, 0 or 1, of a pair."""
    # As in device_plan.cc.
    is_long = buffer_bytes > PAGE_BYTES
    if kind == "memif":
        return (f"net_memif0,role={('server', 'client')[end]},socket={folder}/m,socket-abstract=no,"
                f"bsize={buffer_bytes},rsize={11 if is_long else 10}")  # fmt: skip
    block_bytes = max(buffer_bytes, PAGE_BYTES)
    own = {"af_packet": f",qdisc_bypass=0,framesz={buffer_bytes},blocksz={block_bytes},"
           "framecnt=1024", "af_xdp": ",busy_budget=0"}  # fmt: skip
    return f"net_{kind}0,iface={INTERFACES[end]}{own[kind]}"


def testpmd(name, core, vdev, inside, folder, frame_bytes, buffer_bytes, mode):
    """Starts testpmd at one end of a pair. It ends when its stdin does."""
    command = [
        *inside, TESTPMD, "--lcores", f"0@{core},1@{core}", "--no-huge", "-m", "512", "--no-pci",
        "--file-prefix", f"gradplane-{os.getpid()}-{name}",
        f"--vdev={vdev}",
        "--", f"--forward-mode={mode}", "--stats-period", "1", "--total-num-mbufs", "8192",
        "--mbuf-size", str(buffer_bytes + 128),
        "--txd", "1024", "--rxd", "1024",
    ]  # fmt: skip
    if mode == "txonly":
        command += ["--txpkts", str(frame_bytes)]
    log = open(f"{folder}/{name}.log", "wb")
    with log:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)


def stop(process):
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def receives(case, seconds):
    """How much one testpmd has received from another one."""
    frame_bytes = case["block_bytes"] + OVERHEAD_BYTES
    # As large as the buffers of gradplane's ports, so that a frame fits one buffer.
    # Those of af_packet are powers of two.
    long_bytes = 16384 if case["kind"] == "af_packet" else 9280
    buffer_bytes = 2048 if frame_bytes <= 1600 else long_bytes
    with (
        place_of(case) as inside,
        tempfile.TemporaryDirectory(prefix="gradplane-bench-") as folder,
    ):
        processes = []
        try:
            for end, (name, core, mode) in enumerate(ENDS):
                if end > 0:
                    time.sleep(START_SECONDS)
                vdev = device(case["kind"], end, folder, buffer_bytes)
                processes.append(
                    testpmd(name, core, vdev, inside, folder, frame_bytes, buffer_bytes, mode)
                )
            time.sleep(START_SECONDS + seconds + 1)
        finally:
            for process in reversed(processes):
                stop(process)
        said = pathlib.Path(folder, "rx.log").read_text(errors="replace")
    rates = [int(rate) for rate in RX_RATE.findall(said) if int(rate) > 0]
    if not rates:
        raise harness.BenchError(f"{TESTPMD} received nothing: {said[-500:]}")
    rate = statistics.median(rates)
    return {"received_per_second": rate, "sent_per_second": 0, "correct": True}


def same_path(case, other):
    """Whether testpmd does the same in both cases."""
    return all(case.get(key) == other.get(key) for key in ("kind", "block_bytes", "cores"))


def entry_of(name, case, answers, bound):
    """One entry of "cases" of the JSON, from the answers of all passes."""
    rate = statistics.median(a["received_per_second"] for a in answers)
    idle = [a["idle_share"] for a in answers if "idle_share" in a]
    return {
        "contestant": name, "case": case, "bound_s": bound, "runs": len(answers),
        "correct": all(a["correct"] for a in answers),
        "median_s": 1 / rate, "over_bound": 1 / rate / bound if bound else None,
        "received_per_second": rate,
        "sent_per_second": statistics.median(a["sent_per_second"] for a in answers),
        "idle_share": statistics.median(idle) if idle else None,
        "samples": answers,
    }  # fmt: skip


def tables(entries):
    return report.local_table(entries, COLUMNS, label)


def draw(entries, folder):
    return []


def sample(name, case, seconds):
    tagged = TAGGED.get(name)
    return receives(case, seconds) if tagged is None else sums(case, tagged, seconds)


def run(options):
    """The entries of all chosen cases."""
    for program in (PROGRAM, core_distance.PROGRAM):
        if not program.exists():
            raise harness.BenchError(f"{program} is not built; run scripts/build")
    if shutil.which(TESTPMD) is None:
        raise harness.BenchError(f"{TESTPMD} is missing; run scripts/setup")
    if (os.cpu_count() or 1) < 2:
        raise harness.BenchError("the poll loop and its workers need a core each")
    cases = [case for case in make_cases() if options.case.search(label(case))]
    names = [n for n in (*TAGGED, "testpmd") if options.contestant.search(n)]
    seconds = QUICK_SECONDS if options.quick else SECONDS
    passes = options.repeats or (QUICK_PASSES if options.quick else PASSES)
    answers = {}
    for _ in range(passes):
        for case in cases:
            for name in names:
                place, one = core_distance.measure(
                    POLL_CORE, PEER_CORE, functools.partial(sample, name, case, seconds)
                )
                there = dict(case, cores=place)
                answers.setdefault((name, label(there)), (there, []))[1].append(one)
    entries = []
    for (name, of_case), (case, found) in answers.items():
        # What testpmd receives does not depend on the number of workers.
        peers = [a for (other, _), (at, found_of) in answers.items() for a in found_of
                 if other == "testpmd" and same_path(at, case)]  # fmt: skip
        bound = 1 / statistics.median(a["received_per_second"] for a in peers) if peers else None
        entries.append(entry_of(name, case, found, bound))
    if options.json:
        settings = {"quick": options.quick, "repeats": passes, "first_seed": 0}
        report.write_json(options.json, report.document("aggregator", entries, settings))
    return entries
