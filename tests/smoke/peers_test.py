#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The programs with which gradplane is compared. Their sums are right over lossy links, and a wrong
sum, a lost rank and a silent rank are noticed."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from cluster import BUILD, ROOT, Failure, expect, netlab, run

sys.path.insert(0, str(ROOT / "scripts/bench.d"))
import contestants  # noqa: E402
import gradplane_nodes  # noqa: E402
import light_contestant  # noqa: E402
import multicast_contestants  # noqa: E402
import victim  # noqa: E402
import wan_contestants  # noqa: E402
from ranks import Ranks  # noqa: E402

RUN = f"gp{os.getpid() % 100000}"
LINK = netlab.Link(rate_bits=200_000_000, loss=0.01)
HOSTS = ["agg", "w1", "w2"]
ROUND_BYTES = 1_000_004  # neither the last packet nor the last chunk is full
START_NS = 5_000_000
READY_SECONDS = 60
VICTIM_SECONDS = 0.2


@dataclasses.dataclass
class Host:
    """A host with two addresses on its link: the kernel's, and gradplaned's."""

    name: str
    namespace: str
    management_address: str
    kernel_address: str
    dataplane_address: str


class Lab:
    def __init__(self, made):
        self.set_tcp = made.set_tcp
        self.hosts = {
            host.name: Host(host.name, host.namespace, host.management_address,
                            host.dataplane_address, f"10.77.1.{host.index}")
            for host in made.hosts.values()
        }  # fmt: skip


@contextlib.contextmanager
def started(contestant, lab, logs):
    """Yields the contestant when it is ready. Unless it is broken, it must end without errors."""
    try:
        contestant.start(lab, LINK.rate_bits, logs / contestant.name)
        contestant.ready(READY_SECONDS)
        yield contestant
    except BaseException as error:
        contestant.end()
        if isinstance(error, contestants.ContestantError):
            raise Failure(str(error)) from error
        raise
    broken = contestant.is_broken
    troubles = contestant.end()
    expect(broken or not troubles, f"{contestant.name} ends well: {troubles}")


def one_round(contestant, seed, **options):
    at_ns = time.monotonic_ns() + START_NS
    return contestant.round(seed, ROUND_BYTES, at_ns, timeout=40, **options)


def sum_is_right(contestant, seed):
    answers = one_round(contestant, seed)
    what = f"{contestant.name}: {answers}"
    expect(all(answer.get("correct") is True for answer in answers), what)
    expect(len({answer["crc"] for answer in answers}) == 1, f"all hold the same: {what}")
    ends = [answer.get("end_ns", answer.get("pushed_ns", 0)) for answer in answers]
    starts = [answer["start_ns"] for answer in answers]
    expect(max(starts) < min(ends), f"time passes: {what}")


def spoiled_sum_is_seen(contestant, seed, spoiled):
    answers = one_round(contestant, seed, spoil=spoiled)
    wrong = [answer["rank"] for answer in answers if answer.get("correct") is False]
    expect(wrong == [spoiled], f"{contestant.name}: the spoiled sum is seen: {answers}")


def sums_are_right(contestant, *place, spoiled=1):
    with started(contestant, *place):
        sum_is_right(contestant, seed=7)
        spoiled_sum_is_seen(contestant, 8, spoiled)


def two_plans_take_turns(*place):
    """Both have the same interfaces. The one that waits is stopped, and must not count as dead."""
    star = contestants.GradplaneContestant("star", root_is_first_host=True)
    sharded = contestants.GradplaneContestant("sharded")
    with started(star, *place), started(sharded, *place):
        for seed, contestant in enumerate((star, sharded, star, sharded)):
            sum_is_right(contestant, seed)
        spoiled_sum_is_seen(star, 9, 1)
        for contestant, ranks in ((star, 2), (sharded, 3)):
            counted = contestant.counters()
            blocks = 2 * ranks * ROUND_BYTES / 1500  # pushes and results of at least one round
            expect(counted["blocks_sent"] > blocks, f"{contestant.name} sent blocks: {counted}")


def tolerant_sums_are_legible(*place):
    """Ranks can decode which ranks are in a sum. Exact rounds have all; others may lack some."""
    for name, gather in (("exact", contestants.EXACT), ("20pc", 'bounds: {"*": 20 %}')):
        tolerant = contestants.TolerantContestant("star", name, gather, root_is_first_host=True)
        with started(tolerant, *place):
            for seed in range(5):
                sum_is_right(tolerant, seed)
            spoiled_sum_is_seen(tolerant, 9, 1)


def two_jobs_train_at_a_time(jobs, lab, logs):
    """All sums of both jobs are right, also if some ranks begin an iteration before others."""
    with contextlib.ExitStack() as stack:
        for number, job in enumerate(jobs):
            stack.enter_context(started(job, lab, logs / f"job{number}"))
        at_ns = time.monotonic_ns() + START_NS
        for number, job in enumerate(jobs):
            job.ask({"do": "train", "seed": 100 * number, "bytes": ROUND_BYTES, "at_ns": at_ns,
                     "iterations": 4, "compute_ns": 0, "buckets": 3})  # fmt: skip
        for job in jobs:
            answers = job.answers(40)
            what = f"{job.name}: {answers}"
            expect(all(answer.get("correct") is True for answer in answers), what)
            ranks = [answer for answer in answers if "end_ns" in answer]
            expect(len(ranks) == len(job.workers), what)
            for rank in ranks:
                times = [t for pair in zip(rank["start_ns"], rank["end_ns"]) for t in pair]
                expect(len(times) == 8 and times == sorted(times), f"in order: {what}")


def trainings_share_daemons(lab, logs):
    nodes = gradplane_nodes.GradplaneNodes(
        BUILD, lab, HOSTS[0], "star", LINK.rate_bits, logs, number=0,
        extra=f"gather: {{compensation: rescale, {contestants.EXACT}}}\n", port="  mtu: 1500\n",
    )  # fmt: skip
    try:
        nodes.wait_until_up()
        jobs = [contestants.JobOfDaemons("gradplane", nodes, "rescale") for _ in range(2)]
        two_jobs_train_at_a_time(jobs, lab, logs)
    finally:
        nodes.end()


def light_ranks_are_exact(*place):
    """Ranks without a framework, with and without the rates of the others' links."""
    light = light_contestant.LightContestant
    sums_are_right(light("shares"), *place)
    cubic = "congestion: {controller: cubic}\n"
    blind = light("cubic", extra=cubic, tells_links=False)
    sums_are_right(blind, *place)
    text = (blind.logs / "w1.yaml").read_text()
    expect(text.count("link_rate") == 1, f"w1 knows no link but its own: {text}")


def broadcasts_are_right(*place):
    """Every rank gets the data of the first one."""
    for contestant in (light_contestant.LightContestant("shares"),
                       contestants.GlooContestant("cubic")):  # fmt: skip
        with started(contestant, *place):
            answers = one_round(contestant, 3, op="broadcast")
            expect(all(answer.get("correct") is True for answer in answers), f"{answers}")
            expect(len({answer["crc"] for answer in answers}) == 1, f"all the same: {answers}")
            answers = one_round(contestant, 4, op="broadcast", spoil=1)
            wrong = [answer["rank"] for answer in answers if answer.get("correct") is False]
            expect(wrong == [1], f"the spoiled one is seen: {answers}")


def exchanges_are_legible(lab, logs):
    """Ranks decode whose updates they have. No daemon knows the others' links."""
    exchange = multicast_contestants.ExchangeContestant(0.3, multicast=True, tells_links=False)
    with started(exchange, lab, logs):
        for exchange.step in range(5):
            answers = one_round(exchange, exchange.step)
            expect(all(answer.get("correct") is True for answer in answers), f"{answers}")
            expect(exchange.senders == [[1], [0]], f"each has the other's: {answers}")
        spoiled_sum_is_seen(exchange, 9, 1)
    for host, count in (("agg", 1), ("w1", 1)):
        text = (exchange.logs / f"{host}.yaml").read_text()
        expect(text.count("link_rate") == count, f"what {host} knows: {text}")


def overlays_sum_right(*place):
    """A chain and a star that share the chunks, and pairs whose sums end at the second rank."""
    overlay = wan_contestants.OverlayContestant
    trees = ("--tree", "0,0,1", "--tree", "2,2,2")
    sums_are_right(overlay("trees", "cubic", "trees", 65536, trees), *place)
    sums_are_right(overlay("pairs", "bbr", "pairs", 262144, ("--root", 1)), *place)


def a_victim_is_timed(made):
    """Every datagram has a delay or is lost. On a link that is down, all are lost."""
    sender, receiver = made.hosts["w1"], made.hosts["agg"]
    flow = victim.VictimFlow(sender.namespace, receiver.namespace, receiver.dataplane_address)
    with flow:
        came = flow.idle(VICTIM_SECONDS)
        expect(len(came.delays_s) > came.lost, f"most come: {came}")
        expect(min(came.delays_s) > 0, f"each takes a while: {came}")
        netlab.ip_batch(receiver.namespace, ["link set dp0 down"])
        lost = flow.idle(VICTIM_SECONDS)
        expect(lost.lost > 0 and not lost.delays_s, f"none comes: {lost}")
    expect(victim.summary(came.delays_s)["victim_p99_s"] <= max(came.delays_s), "one of them")
    expect(victim.summary(lost.delays_s)["victim_p99_s"] is None, "there is none")


def a_lost_rank_ends_the_round(contestant, *place):
    with started(contestant, *place):
        victim = next(p for p in contestant.processes if p.name == "rank-1")
        victim.end()
        answers = one_round(contestant, seed=9)
        expect(all("error" in answer for answer in answers), f"errors, no hang: {answers}")
        expect(any("rank-1" in a["error"] for a in answers), f"it says who: {answers}")


def incast_is_timed(contestant, *place):
    with started(contestant, *place):
        *workers, server = one_round(contestant, seed=10, op="push")
        expect(server["correct"] is True, f"the server has the sum: {server}")
        expect(max(server["first_end_ns"]) == server["end_ns"], f"it ends with the last: {server}")
        expect(server["start_ns"] < min(server["first_end_ns"]), f"all took a while: {server}")
        for worker, arrived_ns in zip(workers, server["first_end_ns"]):
            expect(worker["end_ns"] > arrived_ns, f"an ack follows the arrival: {worker}")
            expect(worker["segments"] > ROUND_BYTES / 1500, f"segments were counted: {worker}")


def the_network_is_lossy(made):
    stats = netlab.stats(made.run)
    lost = sum(direction["lost"] for host in stats.values() for direction in host.values())
    expect(lost > 0, f"frames were lost: {stats}")


def silence_and_nonsense_are_errors():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gradplane-peers-"))
    ranks = Ranks(folder, [0, 1, 2])
    try:
        for name, line in ((1, b"nonsense\n"), (2, b'{"rank": 2, "correct": true}\n')):
            with open(ranks.answers_path(name), "wb") as fifo:
                fifo.write(line)
        silent, nonsense, good = ranks.collect(0.2)
        expect("no answer" in silent["error"], f"silence: {silent}")
        expect("no JSON" in nonsense["error"], f"nonsense: {nonsense}")
        expect(good == {"rank": 2, "correct": True}, f"an answer: {good}")
    finally:
        ranks.close()
        shutil.rmtree(folder)


def every_contestant():
    logs = pathlib.Path(tempfile.mkdtemp(prefix="gradplane-peers-"))
    with netlab.Lab(RUN, HOSTS, LINK, kernel_address=True) as made:
        place = (Lab(made), logs)
        server = contestants.ParameterServerContestant
        sums_are_right(server("bbr"), *place, spoiled="server")
        incast_is_timed(server("cubic"), *place)
        a_lost_rank_ends_the_round(server("reno"), *place)
        two_jobs_train_at_a_time([server("cubic"), server("reno")], *place)
        trainings_share_daemons(*place)
        sums_are_right(contestants.GlooContestant("cubic"), *place)
        two_plans_take_turns(*place)
        tolerant_sums_are_legible(*place)
        light_ranks_are_exact(*place)
        broadcasts_are_right(*place)
        exchanges_are_legible(*place)
        overlays_sum_right(*place)
        if os.access(BUILD / contestants.PEERS / "mpi_ranks", os.X_OK):
            sums_are_right(contestants.OpenMpiContestant("cubic"), *place)
        else:
            print("not built, so not tested: mpi_ranks")
        the_network_is_lossy(made)
        a_victim_is_timed(made)
    shutil.rmtree(logs)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(run([silence_and_nonsense_are_errors, every_contestant]))
