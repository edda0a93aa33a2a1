#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Groups at switches that snoop IGMP, that flood groups, and that drop them. Hosts that have joined
a group hear it. With snooping, no other host's link carries it. Daemons are in the groups of their
parents and of the nodes whose updates they receive, and in no others."""

import contextlib
import os
import select
import socket
import subprocess
import sys
import time

from cluster import (
    BUILD, Cluster, all_are_right, expect, netlab, replan, run, run_until_open, skip, terminate,
    wait_until,
)  # fmt: skip

import lab_multicast  # the path to scripts/lib is cluster's

PROBE = BUILD / "tests/smoke/group_probe"
KINDS = ("af_packet", "af_xdp")
HOSTS = ("sender", "member", "other")
WORKERS = ["w1", "w2", "w3"]
SENDERS = ["w1", "w2", "w3", "w4"]
GROUP = "239.71.5.6"
# A different group with the same Ethernet address.
TWIN = "239.199.5.6"
COUNT = 50
ANSWER_SECONDS = 30
# The bridge forgets silent members only after an hour; the unit is hundredths of a second.
NEVER_FORGETS = f"mcast_membership_interval {100 * 3600}"
AF_XDP = 44


class Host:
    """A probe on a host of a lab. It runs on one processor only, so that the kernel keeps the order
    of its frames."""

    def __init__(self, lab, name, kind):
        host = lab.hosts[name]
        self.address = host.dataplane_address
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", host.namespace, "taskset", "-c", "0",
             PROBE, kind, "dp0", self.address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        expect(self._line() == "ready", f"the probe on {name} is ready")

    def _line(self):
        ready = select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0]
        expect(ready, "an answer of a probe")
        return self._process.stdout.readline().decode().strip()

    def ask(self, *words):
        self._process.stdin.write((" ".join(str(word) for word in words) + "\n").encode())
        self._process.stdin.flush()
        return self._line()

    def tell(self, *words):
        answer = self.ask(*words)
        expect(answer == "ok", f"{words}: {answer}")

    def seen(self):
        """The numbers of datagrams to its groups, to itself, and to groups that it is not in."""
        return tuple(int(count) for count in self.ask("seen").split())

    def end(self):
        self._process.stdin.close()
        self._process.wait(ANSWER_SECONDS)
        self._process.stdout.close()


def lab(hosts, **options):
    return netlab.Lab(f"gr{os.getpid() % 100000}", hosts, **options)


@contextlib.contextmanager
def probes(kind, **options):
    with lab(HOSTS, **options) as made:
        started = []
        try:
            started += [Host(made, name, kind) for name in HOSTS]
            yield made, *started
        finally:
            for probe in started:
                probe.end()


def sent(sender, receivers):
    """Sends COUNT datagrams to the group. Returns how many each receiver got as a member and how
    many not as a member.

    A datagram to each receiver follows. When it has arrived, all before it have."""
    before = [receiver.seen() for receiver in receivers]
    sender.tell("multicast", GROUP, COUNT)
    result = []
    for receiver, (groups, own, others) in zip(receivers, before):
        sender.tell("unicast", receiver.address)
        wait_until(lambda r=receiver, o=own: r.seen()[1] > o, "a datagram to the host")
        now = receiver.seen()
        result.append((now[0] - groups, now[2] - others))
    return result


def snooped(kind, igmp):
    with probes(kind, multicast="snoop", igmp_version=igmp) as (made, sender, member, other):

        def the_switch_knows(*hosts):
            wait_until(lambda: made.groups().get(GROUP, set()) == set(hosts),
                       f"the switch to know of {hosts}")  # fmt: skip

        member.tell("join", GROUP)
        the_switch_knows("member")
        # At first the switch floods, because hosts had no time to answer.
        wait_until(lambda: sent(sender, [member, other]) == [(COUNT, 0), (0, 0)],
                   "the member alone to get the group")  # fmt: skip
        # The switch forgets members that do not answer its queries.
        deadline = time.monotonic() + 2 * lab_multicast.MEMBERSHIP_SECONDS
        while time.monotonic() < deadline:
            expect(made.groups() == {GROUP: {"member"}}, "the member answers the switch")
            time.sleep(0.05)
        expect(sent(sender, [member, other]) == [(COUNT, 0), (0, 0)], "it still gets the group")
        other.tell("join", GROUP)
        the_switch_knows("member", "other")
        expect(sent(sender, [member, other]) == [(COUNT, 0), (COUNT, 0)], "both get the group")
        member.tell("leave", GROUP)
        the_switch_knows("other")
        expect(sent(sender, [member, other]) == [(0, 0), (COUNT, 0)], "who has left gets nothing")


def flooded(kind):
    with probes(kind) as (_, sender, member, other):
        member.tell("join", GROUP)
        other.tell("join", TWIN)
        expect(sent(sender, [member, other]) == [(COUNT, 0), (0, COUNT)], "all links carry it")


def dropped(kind):
    with probes(kind, multicast="drop") as (_, sender, member, other):
        member.tell("join", GROUP)
        expect(sent(sender, [member, other]) == [(0, 0), (0, 0)], "nobody gets the group")


def daemons_are_in_the_groups_of_their_parents():
    extra = "multicast: {enabled: true}\n"
    hosts = ["agg", *WORKERS]
    with lab(hosts, multicast="snoop") as made, Cluster(made, extra=extra) as c:

        def groups_are(*expected):
            wait_until(lambda: sorted(map(sorted, made.groups().values())) == list(expected),
                       f"the switch to know of {expected}")  # fmt: skip

        ranks = run_until_open(c, WORKERS, 12000)
        groups_are(WORKERS)
        expect(c.status("w1")["port"]["groups"] == 1, "the status tells the group")
        wait_until(lambda: c.status("w1")["port"]["igmp_version"] == 3, "the switch to ask")
        answer = replan(c, "agg", "--plan", "sharded", "--root", "agg", "w1")
        expect(answer.returncode == 0, f"there is another plan: {answer.stdout} {answer.stderr}")
        # agg has no ranks, so it is not in w1's tree.
        groups_are(WORKERS, ["w2", "w3"])
        all_are_right(ranks)
        groups_are()


def a_daemon_that_ends_leaves_its_groups():
    """The switch would not forget the daemon within the test."""
    hosts = ["agg", *WORKERS]
    with lab(hosts, multicast="snoop") as made:
        netlab.ip_batch(made.switch, [f"link set dp type bridge {NEVER_FORGETS}"])
        with Cluster(made, extra="multicast: {enabled: true}\n") as c:
            run_until_open(c, WORKERS)

            def has_joined(worker):
                return any(worker in members for members in made.groups().values())

            wait_until(lambda: all(map(has_joined, WORKERS)), "the switch to know all members")
            expect(terminate(c.daemons["w3"]) == 0, "the daemon of w3 ends in order")
            wait_until(lambda: not has_joined("w3"), "the switch to know that w3 has left")


def results_leave_the_aggregator_once_where_the_switch_copies():
    """Sums are right on every switch. The aggregator's counters show whether it sent results to the
    group of its children or to each child."""
    sent = {}
    for multicast in ("snoop", "flood", "drop"):
        with lab(["agg", *WORKERS], multicast=multicast) as made:
            with Cluster(made, extra="multicast: {enabled: true}\n") as c:
                c.run_ranks(WORKERS, "--rounds", 300, "--elements", 30000)
                job = c.status("agg")["jobs"][0]
        sent[multicast] = job["blocks_sent"]
        if multicast == "drop":
            expect(job["blocks_to_groups"] == 0, f"nobody hears the group: {job}")
            expect(0 < job["group_trials"] < 50, f"the group is tried: {job}")
        else:
            share = job["blocks_to_groups"] / job["blocks_sent"]
            expect(share > 0.7, f"results go to the group: {job}")
    for multicast in ("snoop", "flood"):
        expect(sent[multicast] * 2 < sent["drop"], f"once instead of to each of three: {sent}")


def updates_leave_their_sender_once_where_the_switch_copies():
    """Each rank sends its update to all others. Means are right on every switch, and with snooping
    updates leave their sender once. With few processors, a daemon sometimes does not run for so
    long that the others go on without it for some rounds. Updates of those go to it alone."""
    extra = "multicast: {enabled: true}\ntraining: {mode: selective-bsp, freshness: 0}\n"
    jobs = {}
    for multicast in ("snoop", "drop"):
        with lab(SENDERS, multicast=multicast) as made:
            with Cluster(made, plan="sharded\n  roots: training", extra=extra) as c:
                c.run_ranks(SENDERS, "--exchange", "--rounds", 300, "--elements", 30000)
                jobs[multicast] = [c.status(name)["jobs"][0] for name in SENDERS]
    for job in jobs["drop"]:
        expect(job["blocks_to_groups"] == 0, f"nobody hears the groups: {job}")
        expect(job["group_trials"] > 0, f"they are tried: {job}")
    for job in jobs["snoop"]:
        blocks = job["blocks_received"] / (len(SENDERS) - 1)  # as many as its sender had to send
        expect(job["blocks_to_groups"] * 5 > blocks, f"updates go to their receivers' group: {job}")
    sent = {name: sum(job["blocks_sent"] for job in those) for name, those in jobs.items()}
    expect(sent["snoop"] < sent["drop"], f"once and not thrice: {sent}")


def has_xdp():
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError:
        return False
    return True


def main():
    if not os.access(PROBE, os.X_OK):
        skip("group_probe is not built")
    tests = [
        daemons_are_in_the_groups_of_their_parents,
        a_daemon_that_ends_leaves_its_groups,
        results_leave_the_aggregator_once_where_the_switch_copies,
        updates_leave_their_sender_once_where_the_switch_copies,
    ]
    for kind in KINDS if has_xdp() else KINDS[:1]:
        for name, case in {
            "snooped_by_version_3": lambda k=kind: snooped(k, 3),
            "snooped_by_version_2": lambda k=kind: snooped(k, 2),
            "flooded": lambda k=kind: flooded(k),
            "dropped": lambda k=kind: dropped(k),
        }.items():
            case.__name__ = f"{name}_{kind}"
            tests.append(case)
    wanted = sys.argv[2:]
    return run([test for test in tests if not wanted or test.__name__ in wanted])


if __name__ == "__main__":
    sys.exit(main())
