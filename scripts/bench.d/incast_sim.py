# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`incast-sim`: 2 to 1024 senders to one receiver in virtual time (tests/sim/incast.h), packet by
packet. It has the production grant scheduler and its senders, and the production controllers
without grants. Everything follows from the seed, so each case is run once. It is run once more with
a victim flow of small packets, because these take a part of the link."""

import json
import os
import pathlib
import subprocess

import harness
import report
from cases import MBIT

DESCRIPTION = __doc__
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "tests/sim/incast"  # in the build folder
RUN_SECONDS = 120
SENDERS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
QUICK_SENDERS = (2, 16, 128)
RATE_MBIT = 1000
DELAY_US = 50  # one way
BUFFER_BYTES = 256 * 1024  # holds what a few senders may send at once
SMALL_BUFFER_BYTES = 64 * 1024
MARK_BYTES = 20_000
CONTESTANTS = ("grants", "reno", "cubic", "dctcp", "swift")
# For these numbers of senders there is a plot of complete blocks over time.
CDF_SENDERS = (8, 128)


def make_case(senders, buffer_bytes=BUFFER_BYTES, mark_bytes=0):
    return {
        "senders": senders,
        "rate_bits_per_second": RATE_MBIT * MBIT,
        "delay_us": DELAY_US,
        "buffer_bytes": buffer_bytes,
        "mark_bytes": mark_bytes,
    }


def make_cases(quick):
    senders = QUICK_SENDERS if quick else SENDERS
    large = [make_case(n) for n in senders]
    return large + [make_case(n, SMALL_BUFFER_BYTES, MARK_BYTES) for n in senders]


def network_text(case):
    rate = f"{case['rate_bits_per_second'] // MBIT} Mbit/s, {case['delay_us']} us one way"
    marks = f", marks from {case['mark_bytes']} bytes on" if case["mark_bytes"] else ""
    return f"{rate}, {case['buffer_bytes'] // 1024} KiB{marks}"


def label(case):
    return f"{case['senders']} senders, {network_text(case)}"


def simulate(contestant, case, *options):
    """The simulator's line of output. Raises BenchError."""
    program = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build")) / PROGRAM
    command = [program, "--senders", case["senders"], "--controller", contestant,
               "--mbit", case["rate_bits_per_second"] // MBIT,
               "--delay-us", case["delay_us"], "--buffer", case["buffer_bytes"],
               "--mark", case["mark_bytes"], "--cdf", *options]  # fmt: skip
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False,
            timeout=RUN_SECONDS,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise harness.BenchError(f"{program} is missing; run scripts/build") from error
    except subprocess.TimeoutExpired as error:
        raise harness.BenchError(f"{label(case)}: no end within {RUN_SECONDS} s") from error
    if done.returncode != 0:
        raise harness.BenchError(f"{label(case)}, {contestant}: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def measure(contestant, case):
    """One entry."""
    alone, shared = simulate(contestant, case), simulate(contestant, case, "--victim")
    entry = {"contestant": contestant, "case": case, "bound_s": alone["bound_s"], "runs": 1}
    return {
        **entry,
        "median_s": alone["time_s"],
        "over_bound": alone["time_over_bound"],
        "sender_spread": alone["spread"],
        "queue_drops": alone["drops"],
        "retransmitted_over_needed": alone["sent_again"] / (alone["blocks"] * case["senders"]),
        "deepest_queue_bytes": alone["deepest_queue_bytes"],
        "buffer_bytes": alone["buffer_bytes"],
        "block_complete_quantiles_s": alone["block_complete_quantiles_s"],
        "victim_p50_s": shared["victim_p50_us"] / 1e6,
        "victim_p99_s": shared["victim_p99_us"] / 1e6,
        "samples_s": [alone["time_s"]],
        "correct": True,
    }


def run(options):
    """The entries of all chosen cases."""
    entries = [
        measure(contestant, case)
        for case in make_cases(options.quick) if options.case.search(label(case))
        for contestant in CONTESTANTS
        if options.contestant.search(contestant)
    ]  # fmt: skip
    if options.json and entries:
        said = {"quick": options.quick, "time": "virtual", "seed": 1}
        report.write_json(options.json, report.document("incast-sim", entries, said))
    return entries


def time_text(entry):
    return (f"{entry['over_bound']:.3f} / {entry['sender_spread']:.2f} / {entry['queue_drops']}")


def victim_text(entry):
    return f"{entry['victim_p50_s'] * 1e6:.0f} / {entry['victim_p99_s'] * 1e6:.0f}"


def groups(entries):
    """(text, entries) for each network."""
    for network in report.unique(network_text(entry["case"]) for entry in entries):
        yield network, [entry for entry in entries if network_text(entry["case"]) == network]


def table(entries, text):
    """Markdown: a row for each number of senders, a column for each contestant."""
    names = report.unique(entry["contestant"] for entry in entries)
    lines = ["| senders | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    for senders in sorted({entry["case"]["senders"] for entry in entries}):
        mine = {e["contestant"]: e for e in entries if e["case"]["senders"] == senders}
        cells = [text(mine[name]) if name in mine else "-" for name in names]
        lines.append(f"| {senders} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def tables(entries):
    parts = []
    for network, mine in groups(entries):
        parts += [f"**{network}**: time over bound / last over first sender / drops\n",
                  table(mine, time_text),
                  f"**{network}**: delay of a victim's packets, median / p99 in us\n",
                  table(mine, victim_text)]  # fmt: skip
    return "\n".join(parts)


def draw(entries, folder):
    """Draws, for each network, time and spread against the senders, and complete blocks over time.
    Returns the files."""
    import incast_plots  # only here, so that tables need no matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for index, (network, mine) in enumerate(groups(entries), 1):
        made += incast_plots.draw_against_senders(mine, network, folder / f"incast-sim-{index}.svg")
        for senders in CDF_SENDERS:
            those = [entry for entry in mine if entry["case"]["senders"] == senders]
            path = folder / f"incast-sim-{index}-complete-{senders}.svg"
            made += incast_plots.draw_completion(those, path) if those else []
    return made
