# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`interleave`: several jobs share one link. Each job repeats: it computes, which is a wait here,
and then sums its gradients over a root without ranks, whose link the jobs share. The results are
the time of iterations over that of the same job alone with the same contestant, and the iteration
from which the jobs take turns.

For a job that is alone, communication takes the share `a` of an iteration, and computing the rest.
The time of the communication alone is measured first, for each contestant, and the time of the
computing follows from it.
"""

import os
import re
import statistics
import sys

import bounds
import cases
import emulated_lab
import interleave_run
import meters
import report
from interleave_run import Contestant, Plan

DESCRIPTION = __doc__
RATE_MBIT = 100
ROOT = "h0"  # the host whose link all jobs share
WORKERS = 2
# The pushes of two workers take 148 ms of such a link.
BYTES = 832 * cases.KIB
BYTES_STEP = 4 * interleave_run.BUCKETS
OFFSET = 0.01  # each job starts this share of its communication after the job before
ITERATIONS = 40
FEWER_ITERATIONS = 30
QUICK_ITERATIONS = 15
# The queue length from which the switch marks, for controllers that react to marks. For DCTCP more
# than a seventh of rate x round trip is enough (RFC 8257, section 4.1), which is 2 KB here. A short
# queue gives it more round trips in an iteration, in which jobs can shift. CUBIC reduces its window
# by 30 % at each mark, and needs a longer queue.
ECN_BYTES = {"dctcp": 8000, "cubic": 30_000}
# Jobs have converged if the mean of so many iterations of each is at most this over a lone job's.
CONVERGED = 0.02
CONVERGED_ITERATIONS = 8


def grants(policy):
    return Contestant(
        f"grants-{policy}",
        extra=f"grants: {{enabled: true, policy: {policy}}}\n",
        port="  buffer: 128 KiB\n",
    )


def controller(name, mltcp):
    decorated = "true" if mltcp else "false"
    return Contestant(
        f"{name}{'+mltcp' if mltcp else ''}",
        extra=f"congestion: {{controller: {name}, mltcp: {decorated}}}\n",
        ecn_bytes=ECN_BYTES.get(name, 0),
    )


def make_contestants(quick):
    names = ("cubic",) if quick else ("delay", "cubic", "dctcp", "swift")
    policies = ("fair", "mltcp") if quick else ("fair", "mltcp", "strict")
    kernel = ("cubic",) if quick else ("reno", "cubic")
    found = [grants(policy) for policy in policies]
    found += [controller(name, mltcp) for name in names for mltcp in (False, True)]
    return found + [Contestant(f"tcp-{cc}", tcp=cc) for cc in kernel]


def case(shares, periods=None, jitter=0.0, iterations=ITERATIONS):
    """`shares` has the share of each job's iteration that its communication takes alone. `periods`
    has the length of each job's iteration over the first job's, from which its bytes follow.
    `jitter` is the standard deviation of the computing time over its mean."""
    return {
        **cases.case(1 + WORKERS, BYTES, RATE_MBIT),
        "shares": list(shares),
        "periods": list(periods or [1] * len(shares)),
        "jitter": jitter,
        "iterations": iterations,  # of the first job
    }


def make_cases(quick):
    if quick:
        return [case([1 / 2] * 2, iterations=QUICK_ITERATIONS)]
    return [
        case([1 / 2] * 2),
        case([1 / 3] * 3, iterations=FEWER_ITERATIONS),
        case([1 / 4] * 4, iterations=FEWER_ITERATIONS),
        case([1 / 2] * 2, jitter=0.05),
        case([1 / 3] * 2, periods=[1, 1.5], iterations=FEWER_ITERATIONS),
        case([0.7, 0.5]),
    ]


# The contestants of cases with other jobs than two equal ones, as all would take too long.
ASKED_ALIKE = re.compile("^(grants-.*|cubic.*|tcp-cubic)$")
ASKED = re.compile(r"^(grants-(fair|mltcp)|cubic.*)$")


def is_asked(contestant, case):
    if is_alike(case) and not case["jitter"]:
        return len(case["shares"]) == 2 or ASKED_ALIKE.match(contestant)
    return ASKED.match(contestant)


def is_alike(case):
    return len(report.unique(zip(case["shares"], case["periods"]))) == 1


def label(case):
    shares, periods = case["shares"], case["periods"]
    text = " and ".join(f"{share:.3g}" for share in report.unique(shares))
    words = [f"{len(shares)} jobs, a = {text}"]
    if len(report.unique(periods)) > 1:
        words.append("periods " + " : ".join(f"{period:g}" for period in periods))
    if case["jitter"]:
        words.append(f"jitter {case['jitter'] * 100:g} %")
    return ", ".join([*words, *case.get("more", [])])


def bytes_of(case, job):
    weight = case["shares"][job] * case["periods"][job] / (case["shares"][0] * case["periods"][0])
    return round(case["bytes"] * weight / BYTES_STEP) * BYTES_STEP


def bound_s(case, job=0):
    """The bound of a job's communication."""
    return bounds.incast_bound_s(WORKERS, bytes_of(case, job), case["rate_bits_per_second"])


def make_plans(case, alone_s):
    """The plans of all jobs. `alone_s` has the time of each job's communication alone."""
    return [
        Plan(
            bytes_of(case, job),
            round(case["iterations"] * case["periods"][0] / case["periods"][job]),
            compute_s=alone_s[job] * (1 / case["shares"][job] - 1),
            at_s=job * OFFSET * alone_s[0],
            jitter=case["jitter"],
            seed=interleave_run.FIRST_SEED * (1 + job),
        )
        for job in range(len(case["shares"]))
    ]


def ratios_of(ends, isolated_s):
    """The time of every iteration but the first, from end to end, over that of a lone job."""
    return [(after - before) / isolated_s for before, after in zip(ends, ends[1:])]


def converged_at(ratios):
    """The first iteration from which on all jobs have converged; None if there is none."""
    for first in range(min(len(job) for job in ratios) - CONVERGED_ITERATIONS + 1):
        windows = [job[first : first + CONVERGED_ITERATIONS] for job in ratios]
        if all(statistics.mean(window) <= 1 + CONVERGED for window in windows):
            return first
    return None


def summary(ratios):
    """Statistics of `ratios`, which has the iterations of each job over those of a lone one."""
    every = [ratio for job in ratios for ratio in job]
    return {
        "runs": len(every),
        "mean_over": statistics.mean(every),
        "p99_over": bounds.percentile(every, 0.99),
        "settled_over": statistics.mean(r for job in ratios for r in job[len(job) // 2 :]),
        "converged_at": converged_at(ratios),
        "ratios": [[round(ratio, 4) for ratio in job] for job in ratios],
    }


def result(plans, alone_s, trained, stats, machine):
    """The fields of one entry of "cases" of the JSON, without contestant, case and bound."""
    if not all(job.correct for job in trained):
        return {"runs": 0, "correct": False, "failure": "a sum was wrong"}
    isolated_s = [alone + plan.compute_s for alone, plan in zip(alone_s, plans)]
    ratios = [ratios_of(job.ends, one_s) for job, one_s in zip(trained, isolated_s)]
    busy, of_seconds = machine.busy_core_seconds(
        int(min(job.starts[0] for job in trained) * 1e9),
        int(max(job.ends[-1] for job in trained) * 1e9),
    )
    busy = busy / of_seconds / machine.cores if of_seconds else None
    use = meters.network_use(stats)
    shared = stats["links"][ROOT]["down"]
    return {
        **summary(ratios),
        "correct": True,
        "isolated_s": isolated_s,
        "communication_s": alone_s,
        "compute_s": [plan.compute_s for plan in plans],
        "late_begin_s": max(job.late_s for job in trained),
        "drops": shared["queue_drops"],
        "marks": shared["marks"],
        "deepest_queue_bytes": use["deepest_queue_bytes"],
        "lost_by_switch": use["lost_by_switch"],
        "late_frames_share": use["late_frames"] / max(1, use["delivered_frames"]),
        "machine_busy": busy,
        "cpu_bound": bool(busy and busy > meters.CPU_BOUND_SHARE),
    }


def measure_one(lab, cluster, case, alone_s, machine):
    """Measures a case. Returns the fields of its entry. `alone_s` has the times of lone jobs that
    are known already, by bytes."""
    for job in range(len(case["shares"])):
        size = bytes_of(case, job)
        if size not in alone_s:
            alone_s[size] = cluster.communication_alone(size, bound_s(case, job))
    each_s = [alone_s[bytes_of(case, job)] for job in range(len(case["shares"]))]
    plans = make_plans(case, each_s)
    lab.reset()
    trained = cluster.train(plans)
    return result(plans, each_s, trained, lab.stats(), machine)


def measure(lab, contestant, wanted, options, machine):
    """The entries of one contestant in all its cases."""
    alone_s, entries = {}, []
    for name in lab.hosts:
        for direction in ("up", "down"):
            lab.set(name, direction, {"ecn_threshold": f"{contestant.ecn_bytes} B"})
    rate = wanted[0]["rate_bits_per_second"]
    with interleave_run.Cluster(lab, contestant, rate, options.logs / contestant.name) as cluster:
        for case in wanted:
            entry = {"contestant": contestant.name, "case": case, "bound_s": bound_s(case)}
            try:
                entry |= measure_one(lab, cluster, case, alone_s, machine)
            except interleave_run.FAILURES as problem:
                entry |= {"runs": 0, "correct": False, "failure": str(problem)}
            say(f"{label(case)}: {contestant.name}: {outcome(entry)}")
            entries.append(entry)
    return entries


def outcome(entry):
    return entry.get("failure") or f"{entry['mean_over']:.3f} / {entry['p99_over']:.3f}"


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(options):
    """The entries of all chosen cases and contestants."""
    wanted = [c for c in make_cases(options.quick) if options.case.search(label(c))]
    chosen = [c for c in make_contestants(options.quick) if options.contestant.search(c.name)]
    entries = []
    if not wanted:
        return entries
    names = [ROOT, *(f"h{index + 1}" for index in range(WORKERS))]
    lab_name = f"inter{os.getpid() % 100000}"
    with (
        meters.Machine() as machine,
        emulated_lab.EmulatedLab(lab_name, cases.network(wanted[0], names)) as lab,
    ):
        for contestant in chosen:
            asked = [one for one in wanted if is_asked(contestant.name, one)]
            if not asked:
                continue
            try:
                entries += measure(lab, contestant, asked, options, machine)
            except interleave_run.FAILURES as problem:  # it could not be started
                say(f"{contestant.name}: {problem}")
                entries += [
                    {"contestant": contestant.name, "case": one, "bound_s": bound_s(one),
                     "runs": 0, "correct": False, "failure": str(problem)} for one in asked
                ]  # fmt: skip
            if options.json:  # results are kept even if a later case fails
                settings = {"quick": options.quick, "ecn_bytes": ECN_BYTES, "offset": OFFSET}
                report.write_json(options.json, report.document("interleave", entries, settings))
    return entries


def over(key):
    return lambda entry: f"{entry[key]:.3f}"


def converged_text(entry):
    return "never" if entry["converged_at"] is None else str(entry["converged_at"])


COLUMNS = (
    ("contestant", lambda e: e["contestant"]),
    ("iterations", lambda e: str(e["runs"])),
    ("alone ms", lambda e: report.milliseconds(e["isolated_s"][0])),
    ("mean over alone", over("mean_over")),
    ("p99", over("p99_over")),
    ("last half", over("settled_over")),
    ("as alone from", converged_text),
    ("drops", lambda e: str(e["drops"])),
    ("deepest queue", lambda e: f"{e['deepest_queue_bytes'] / 1024:.0f} KiB"),
    ("CPU", report.machine_text),
)


def tables(entries):
    return report.table(entries, COLUMNS, label)


def draw(entries, folder):
    import interleave_plots  # only here, so that tables need no matplotlib

    return interleave_plots.draw_all("interleave", entries, folder, label)
