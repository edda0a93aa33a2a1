# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The demo: the same training over gradplane and over Gloo, and a table. See scripts/demo."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import netlab  # noqa: E402
from daemons import Daemons  # noqa: E402
from processes import ProcessError, machine_cpu_seconds  # noqa: E402
from progress import Progress, table  # noqa: E402
from training import Outcome, Training  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ("gradplane", "gloo")


class DemoError(RuntimeError):
    """The trainings ran, but their results are not as they should be."""


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/demo")
    parser.add_argument("--only", choices=RUNS)
    parser.add_argument("--rate", type=netlab.parse_rate, default=200_000_000)
    # A server that sums for four workers needs a faster port than they; 200mbit shows why.
    parser.add_argument("--aggregator-rate", type=netlab.parse_rate, default=800_000_000)
    parser.add_argument("--loss", type=netlab.parse_share, default=0.01)
    parser.add_argument("--tcp", choices=("reno", "cubic", "bbr"), default="cubic")
    parser.add_argument("--port", choices=("af_packet", "af_xdp"), default="af_packet")
    parser.add_argument("--plan", choices=("star", "sharded"), default="star")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / ".cache/demo")
    return parser.parse_args()


def make_lab(run, arguments):
    """Makes the lab. Both runs have the aggregator's host, so that their networks are the same."""
    names = ["agg"] + [f"w{number}" for number in range(arguments.workers)]
    link = netlab.Link(arguments.rate, loss=arguments.loss)
    special = {}
    if arguments.aggregator_rate:
        special["agg"] = netlab.Link(arguments.aggregator_rate, loss=arguments.loss)
    return netlab.Lab(
        f"demo{run[:5]}", names, link, links=special, kernel_address=run == "gloo",
        tcp=arguments.tcp,
    )  # fmt: skip


def run_once(run, arguments):
    """Runs one training in its own lab. Returns its Outcome."""
    logs = arguments.logs / run
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    progress = Progress(run, arguments.epochs)
    daemons = training = None
    with make_lab(run, arguments) as lab:
        workers = [host for name, host in lab.hosts.items() if name != "agg"]
        try:
            if run == "gradplane":
                rates = {name: lab.link_of(name).rate_bits for name in lab.hosts}
                build = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
                daemons = Daemons(build, lab, rates, arguments.port, arguments.plan, logs)
                progress.note(f"starting {len(lab.hosts)} daemons")
                daemons.wait_until_up()
            training = Training(
                workers, "mg0" if daemons else "dp0", arguments.epochs, logs,
                daemons.run_command if daemons else lambda _, command: command,
                lambda host: {"GRADPLANE_REPORT": str(logs / f"shim-{host.name}.jsonl")},
                progress,
            )  # fmt: skip
            outcome = measure(training, daemons, arguments.seconds)
            count_frames(outcome, netlab.stats(lab.run))
            if daemons:
                count_collectives(outcome, training.ranks, logs)
            return outcome
        finally:
            progress.close()
            for group in (training, daemons):
                if group:
                    group.end()


def measure(training, daemons, seconds):
    begun, machine_before = time.monotonic(), machine_cpu_seconds()
    daemons_before = daemons.cpu_seconds() if daemons else 0
    training.follow(
        seconds,
        daemons.check_alive if daemons else lambda: None,
        daemons.note_status if daemons else lambda: None,
    )
    elapsed = time.monotonic() - begun
    outcome = Outcome()
    training.sum_up(outcome)
    outcome.trainer_cores = training.cpu_seconds() / elapsed
    outcome.machine_cores = (machine_cpu_seconds() - machine_before) / elapsed
    if daemons:
        daemons.note_status()
        outcome.daemon_cores = (daemons.cpu_seconds() - daemons_before) / elapsed
        outcome.blocks_lost = daemons.total("blocks_lost")
        outcome.blocks_repaired = daemons.total("blocks_retransmitted")
    return outcome


def count_frames(outcome, stats):
    for host in stats.values():
        for direction in host.values():
            outcome.frames_seen += direction["seen"]
            outcome.frames_lost += direction["lost"]
            outcome.frames_dropped_by_queues += direction.get("queue_dropped", 0)


def count_collectives(outcome, ranks, logs):
    """Counts the collectives from the reports that the shim of every process writes at its end."""
    reports = sorted(logs.glob("shim-*.jsonl"))
    if len(reports) != len(ranks):
        raise DemoError(
            f"{len(reports)} of {len(ranks)} ranks had the shim in them and told so; see {logs}"
        )
    outcome.carried = outcome.passed_through = outcome.fell_back = 0
    for line in "".join(report.read_text() for report in reports).splitlines():
        entry = json.loads(line)
        outcome.carried += entry.get("carried_ops", 0)
        outcome.passed_through += sum(entry.get("passed_through", {}).values())
        outcome.fell_back += entry.get("fallbacks", 0)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds):
    return f"{seconds * 1000:.0f} ms"


def optional(number):
    return "-" if number is None else str(number)


ROWS = (
    ("accuracy", lambda o: f"{o.accuracy:.1%}"),
    ("replicas bit-identical, every epoch", lambda o: "yes" if o.identical else "NO"),
    ("time per iteration, p50", lambda o: milliseconds(percentile(o.step_seconds, 0.5))),
    ("time per iteration, p99", lambda o: milliseconds(percentile(o.step_seconds, 0.99))),
    ("of it synchronisation, p50", lambda o: milliseconds(percentile(o.sync_seconds, 0.5))),
    ("of it synchronisation, p99", lambda o: milliseconds(percentile(o.sync_seconds, 0.99))),
    ("collectives carried", lambda o: optional(o.carried)),
    ("collectives passed through", lambda o: optional(o.passed_through)),
    ("fallbacks to Gloo", lambda o: optional(o.fell_back)),
    ("frames on the links", lambda o: str(o.frames_seen)),
    ("frames lost at random", lambda o: str(o.frames_lost)),
    ("frames dropped by full queues", lambda o: str(o.frames_dropped_by_queues)),
    ("blocks found lost", lambda o: optional(o.blocks_lost)),
    ("blocks sent again", lambda o: optional(o.blocks_repaired)),
    ("CPU of the daemons, cores", lambda o: f"{o.daemon_cores:.2f}"),
    ("CPU of the trainers, cores", lambda o: f"{o.trainer_cores:.2f}"),
    ("CPU of the machine, cores", lambda o: f"{o.machine_cores:.2f}"),
)


def main():
    arguments = parse_arguments()
    runs = [arguments.only] if arguments.only else RUNS
    outcomes = {run: run_once(run, arguments) for run in runs}
    rate = f"{arguments.rate / 1e6:g} Mbit/s"
    if arguments.aggregator_rate:
        rate += f" (aggregator {arguments.aggregator_rate / 1e6:g})"
    conditions = f"{arguments.workers} workers, links of {rate}, {arguments.loss:.1%} random loss"
    print(f"\n{conditions} on each link and direction, TCP {arguments.tcp}\n")
    rows = [(label, [show(outcome) for outcome in outcomes.values()]) for label, show in ROWS]
    print(table(outcomes, rows))
    if not all(outcome.identical for outcome in outcomes.values()):
        raise DemoError("replicas have diverged")
    if "gradplane" in outcomes and not outcomes["gradplane"].carried:
        raise DemoError("gradplane carried nothing: everything went over Gloo")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except (DemoError, ProcessError, netlab.LabError) as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
