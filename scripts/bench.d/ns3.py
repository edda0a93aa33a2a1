# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`ns3`: N senders push M bytes each to one receiver in ns-3, an independent model of links,
queues, IP and TCP. gradplane's engine runs in it unchanged (tests/ns3), next to ns-3's own TCP.

Time is virtual, so other programs cannot disturb it, and it says nothing of CPUs. The rounds of a
contestant follow each other over open connections, after a pause. A push ends when the receiver has
all of it. Its bound is computed with the contestant's own packets.
"""

import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import harness
import report

DESCRIPTION = __doc__
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/tests/ns3/ns3_incast"

KIB = 1024
SENDERS = (8, 32, 64, 128, 256)
QUICK_SENDERS = (8, 32)
PUSH_BYTES = 256 * KIB
QUEUE_BYTES = 128 * KIB
MARK_BYTES = 30_000
RATE_MBIT = 1000
LINK_DELAY_US = 50
ROUNDS = 5
SEED = 1
# A run of 256 senders takes about half a minute of one core.
RUN_SECONDS = 900

CONTESTANTS = ("gradplane-shares", "gradplane-grants", "gradplane-delay", "gradplane-reno",
               "gradplane-cubic", "gradplane-dctcp", "gradplane-swift", "gradplane-bbr",
               "tcp-reno", "tcp-cubic", "tcp-bbr", "tcp-dctcp")  # fmt: skip
COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("median ms", lambda e: f"{e['median_s'] * 1000:.1f}"),
    ("over bound", lambda e: f"{e['over_bound']:.3f}"),
    ("first", lambda e: f"{e['first_over_bound']:.3f}"),
    ("worst", lambda e: f"{e['worst_over_bound']:.3f}"),
    ("all-reduce", lambda e: over(e["all_reduce_over_bound"])),
    ("spread", lambda e: f"{e['spread']:.2f}"),
    ("drops", lambda e: f"{e['drops']:.0f}"),
    ("marks", lambda e: f"{e['marks']:.0f}"),
    ("sent again", lambda e: f"{e['retransmitted_over_needed'] * 100:.1f} %"),
    ("deepest queue", lambda e: f"{e['deepest_queue_bytes'] / KIB:.0f} KiB"),
)


def make_cases(quick):
    return [
        {"senders": senders, "bytes": PUSH_BYTES, "rate_bits_per_second": RATE_MBIT * 10**6,
         "link_delay_us": LINK_DELAY_US, "queue_bytes": QUEUE_BYTES, "mark_bytes": mark,
         "seed": SEED}
        for mark in (0, MARK_BYTES)
        for senders in (QUICK_SENDERS if quick else SENDERS)
    ]  # fmt: skip


def queue_text(case):
    marks = f"marks from {case['mark_bytes'] / 1000:g} KB on" if case["mark_bytes"] else "drop-tail"
    return f"{case['queue_bytes'] // KIB} KiB, {marks}"


def label(case):
    return f"{case['senders']} senders, {queue_text(case)}"


def over(ratio):
    return "-" if ratio is None else f"{ratio:.3f}"


def command(contestant, case, rounds):
    return [
        str(PROGRAM), "--contestant", contestant, "--senders", str(case["senders"]),
        "--bytes", str(case["bytes"]), "--mbit", f"{case['rate_bits_per_second'] / 10**6:g}",
        "--delay-us", str(case["link_delay_us"]), "--queue", str(case["queue_bytes"]),
        "--mark", str(case["mark_bytes"]), "--seed", str(case["seed"]), "--rounds", str(rounds),
    ]  # fmt: skip


def measure(contestant, case, rounds):
    """One entry of "cases" of the JSON."""
    try:
        done = subprocess.run(
            command(contestant, case, rounds), capture_output=True, text=True, check=False,
            timeout=RUN_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {**blank(contestant, case), "failure": f"no end within {RUN_SECONDS} s"}
    try:
        said = json.loads(done.stdout)
    except ValueError:
        why = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {**blank(contestant, case), "failure": why[0]}
    return result(contestant, case, said)


def blank(contestant, case):
    return {"contestant": contestant, "case": case, "bound_s": 0.0, "runs": 0, "correct": False}


def result(contestant, case, said):
    """An entry from the output of one run of ns3_incast. Drops and marks are per round."""
    rounds, bound = said["rounds"], said["bound_s"]
    entry = {**blank(contestant, case), "bound_s": bound, "runs": len(rounds)}
    if said["failure"] or said["drops_elsewhere"]:
        lost = f"{said['drops_elsewhere']} packets lost where nothing may be"
        return {**entry, "failure": said["failure"] or lost}
    pushes = [one["push_s"] for one in rounds]
    sums = [one["all_reduce_s"] for one in rounds if one["all_reduce_s"] is not None]
    return {
        **entry,
        "correct": True,
        "median_s": statistics.median(pushes),
        "over_bound": statistics.median(pushes) / bound,
        "first_over_bound": pushes[0] / bound,
        "worst_over_bound": max(pushes) / bound,
        "all_reduce_over_bound": statistics.median(sums) / bound if sums else None,
        "spread": statistics.median(one["spread"] for one in rounds),
        "drops": said["drops"] / len(rounds),
        "marks": said["marks"] / len(rounds),
        "marks_heard": said["marks_heard"] / len(rounds),
        "deepest_queue_bytes": said["deepest_queue_bytes"],
        "retransmitted_over_needed": said["repeated_bytes"] / said["needed_bytes"],
        "rounds": rounds,
    }


def short(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def cell(entry):
    if entry is None or "failure" in entry:
        return "-"
    return f"{short(entry['over_bound'])} / {short(entry['worst_over_bound'])}"


def overviews(entries):
    """Markdown: for each queue a row for each contestant, a column for each number of senders."""
    lines = []
    for queue in report.unique(queue_text(entry["case"]) for entry in entries):
        mine = [entry for entry in entries if queue_text(entry["case"]) == queue]
        senders = sorted({entry["case"]["senders"] for entry in mine})
        heads = " | ".join(f"{n} senders" for n in senders)
        lines += ["", f"**{queue}**: median / worst round over the bound", "",
                  f"| contestant | {heads} |", "| --- " * (len(senders) + 1) + "|"]  # fmt: skip
        for name in report.unique(entry["contestant"] for entry in mine):
            by = {e["case"]["senders"]: e for e in mine if e["contestant"] == name}
            lines.append(f"| {name} | " + " | ".join(cell(by.get(n)) for n in senders) + " |")
    return "\n".join(lines)


def details(entries):
    """Markdown: a heading for each case, a row for each contestant."""
    lines = []
    for case in report.unique(entry["case"] for entry in entries):
        lines += ["", f"**{label(case)}**", "",
                  "| " + " | ".join(title for title, _ in COLUMNS) + " |",
                  "| --- " * len(COLUMNS) + "|"]  # fmt: skip
        for entry in (entry for entry in entries if entry["case"] == case):
            if "failure" in entry:
                why = entry["failure"].replace("|", "/")[:120]
                lines.append(f"| {entry['contestant']} | {why} |" + " |" * (len(COLUMNS) - 2))
            else:
                lines.append("| " + " | ".join(text(entry) for _, text in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def tables(entries):
    return overviews(entries) + "\n" + details(entries)


def draw(entries, folder):
    """Plots, for each queue, time over bound against the number of senders, as SVG."""
    made = []
    shown = [entry for entry in entries if "failure" not in entry]
    for marks in sorted({entry["case"]["mark_bytes"] > 0 for entry in shown}):
        import plots  # only here, so that tables need no matplotlib

        folder.mkdir(parents=True, exist_ok=True)
        mine = [entry for entry in shown if (entry["case"]["mark_bytes"] > 0) == marks]
        path = folder / f"ns3-{'ecn' if marks else 'drop-tail'}.svg"
        plots.draw_senders(mine, queue_text(mine[0]["case"]), path)
        made.append(path)
    return made


def run(options):
    """The entries of all chosen cases."""
    if not PROGRAM.exists():
        raise harness.BenchError(
            f"{PROGRAM} is not there: meson found no ns-3 when it set up build/; install "
            "libns3-dev (scripts/setup does), delete build/, and try again"
        )
    wanted = [
        (name, case)
        for case in make_cases(options.quick) if options.case.search(label(case))
        for name in CONTESTANTS if options.contestant.search(name)
    ]  # fmt: skip
    rounds = options.repeats or ROUNDS
    begun, found = time.monotonic(), {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # The longest runs begin first, so that none runs alone at the end.
        order = sorted(range(len(wanted)), key=lambda i: -wanted[i][1]["senders"])
        waiting = {pool.submit(measure, *wanted[i], rounds): i for i in order}
        for done in concurrent.futures.as_completed(waiting):
            index = waiting[done]
            found[index] = done.result()
            name, case = wanted[index]
            seconds = time.monotonic() - begun
            print(f"{len(found)} of {len(wanted)}, {seconds:.0f} s: {label(case)}: {name}",
                  file=sys.stderr, flush=True)  # fmt: skip
    entries = [found[index] for index in range(len(wanted))]
    if options.json and entries:
        said = {"quick": options.quick, "repeats": rounds, "first_seed": SEED}
        report.write_json(options.json, report.document("ns3", entries, said))
    return entries
