# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The contestants of `multicast`: gradplane with and without groups, and Gloo. The case decides
what a round does, so set `op` before a round."""

import contestants
import multicast_bounds
from light_contestant import LightContestant

MULTICAST = "multicast: {enabled: true}\n"
SUFFIX = "-multicast"
MEASURED = "-measured"
# A message has several rounds of gradplane, as gradients have several buckets.
ROUNDS = "rounds: {bytes: 256 KiB}\n"
FRESHNESS = 4
EXCHANGE = "exchange"
COLLECTIVES = ("all_reduce", "broadcast")


class WrongSelection(contestants.ContestantError):
    """The updates that came are not those of the selections."""


class GroupsContestant(LightContestant):
    """gradplane with a rank on each host but the first, which coordinates. If the name has
    `-measured`, nodes know the links of others only by measuring them."""

    def __init__(self, name, plan, multicast, extra="", tells_links=True):
        super().__init__(name, ROUNDS + extra + (MULTICAST if multicast else ""), tells_links)
        self.name += ("" if tells_links else MEASURED) + (SUFFIX if multicast else "")
        self.multicast = multicast
        self._settings["plan"] = plan
        self.op = "all_reduce"

    def _start(self, rate_bits):
        if self._settings["plan"] == "star":
            # The root is the only node that may sum.
            self.server = max(self.workers, key=lambda host: rate_bits[host.name])
        super()._start(rate_bits)

    def round(self, seed, bytes_, at_ns, *arguments, **options):
        return super().round(seed, bytes_, at_ns, *arguments, op=self.op, **options)


class ExchangeContestant(GroupsContestant):
    """Ranks that exchange updates. `step` counts the steps of the program and chooses the
    selection. `senders` has the ranks that sent to each rank in the last round."""

    def __init__(self, share, multicast, selection="links", freshness=FRESHNESS, tells_links=True):
        words = "all" if freshness == 0 else f"p{share:.0%}".rstrip("%")
        name = words + ("-random" if selection == "random" else "")
        section = training_section(share, selection, freshness)
        super().__init__(name, "sharded", multicast, section, tells_links)
        self.op = EXCHANGE
        self.share, self.freshness, self.selection = share, freshness, selection
        self.step = 0
        self.senders = []

    def _start_ranks(self):
        self._add_rank_programs(self.nodes, "--compensation", "rescale")

    def round(self, *arguments, **options):
        selection = self.step % (self.freshness + 1)
        answers = super().round(*arguments, selection=selection, **options)
        self.senders = [answer.get("senders", []) for answer in answers]
        return answers

    def least_receivers(self):
        return multicast_bounds.least_receivers(self.share, len(self.workers))

    def check(self, cycle):
        """Raises WrongSelection if the senders in the rounds of a cycle are not as they must be."""
        why = why_wrong(cycle, self.least_receivers())
        if why:
            raise WrongSelection(f"{self.name}: {why}")


def training_section(share, selection="links", freshness=FRESHNESS, average_every="never",
                     mode="selective-bsp"):  # fmt: skip
    return (
        f"training: {{mode: {mode}, receivers: {share:.0%}, selection: {selection}, "
        f"freshness: {freshness}, average_every: {average_every}}}\n"
    )


def why_wrong(cycle, least):
    """Why the senders of a cycle are wrong; empty when each update had its receivers in each round,
    and each pair met in the cycle. `cycle` has the senders by round and receiver."""
    ranks = len(cycle[0])
    for number, senders in enumerate(cycle):
        for rank, copies in enumerate(multicast_bounds.sent_copies(senders, False)):
            if copies < least:
                return f"selection {number}: the update of rank {rank} came to {copies} others"
    for receiver in range(ranks):
        met = {rank for senders in cycle for rank in senders[receiver]}
        if len(met - {receiver}) != ranks - 1:
            return f"rank {receiver} never had the updates of some others"
    return ""


class GlooContestant(contestants.GlooContestant):
    """Gloo, also without a rank on the first host."""

    first_host_is_server = True
    op = "all_reduce"

    def round(self, seed, bytes_, at_ns, *arguments, **options):
        return super().round(seed, bytes_, at_ns, *arguments, op=self.op, **options)


def exchanging():
    """The contestants of exchanges. Each is there without groups and with groups, so that the two
    are neighbours in a table."""
    everything = (1.0, "links", 0)
    wanted = [(share, selection, FRESHNESS)
              for share in (0.3, 0.5) for selection in ("links", "random")]  # fmt: skip
    told = [ExchangeContestant(share, multicast, selection, freshness)
            for share, selection, freshness in (*wanted, everything)
            for multicast in (False, True)]  # fmt: skip
    return [*told, ExchangeContestant(0.3, False, tells_links=False)]


def summing():
    found = [GroupsContestant(plan, plan, multicast)
             for plan in ("star", "sharded") for multicast in (False, True)]  # fmt: skip
    return [*found, GlooContestant("cubic")]
