# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Who takes part in `wan`: gradplane with each of its planners, and all-reduces over plain TCP as
others have built them for sites far apart."""

import os

import contestants as peers
import wan_network as network
from light_contestant import LightContestant

# A slice of NetStorm and TSEngine has 4 MB, scaled with the volumes. Trees go on with less, because
# a hop passes on whole chunks.
SLICE_BYTES = int(4 * 10**6 * network.VOLUME_SCALE) // 4 * 4
CHUNK_BYTES = 16 * 1024
ARITY = 2  # of the balanced tree
# Rounds of 4 MiB, as they are by default, scaled with the volumes.
ROUNDS = f"rounds: {{bytes: {int(4096 * network.VOLUME_SCALE)} KiB}}\n"


def parents_of_star(root):
    """The parent of every site, as ranks; the root's is itself."""
    return [root - 1] * network.SITES


def parents_of_balanced_tree(root, arity=ARITY):
    """A tree whose inner sites have `arity` children: sites in the order of their numbers, but the
    root first. It knows nothing of the network."""
    order = [root, *(s for s in range(1, network.SITES + 1) if s != root)]
    parents = [0] * network.SITES
    for place, site in enumerate(order):
        parents[site - 1] = order[max(0, (place - 1) // arity)] - 1
    return parents


class OverlayContestant(peers.Contestant):
    """tests/peers/tcp_overlay: a rank at every site."""

    def __init__(self, name, cc, kind, chunk_bytes, options=()):
        super().__init__(f"tcp-{name}-{cc}", cc)
        self._kind, self._chunk_bytes, self._options = kind, chunk_bytes, list(options)

    def _start(self, rate_bits):
        program = self.build / peers.PEERS / "tcp_overlay"
        if not os.access(program, os.X_OK):
            raise peers.ContestantError(f"{program} is missing; run scripts/build")
        addresses = ",".join(host.kernel_address for host in self.workers)
        for rank, host in enumerate(self.workers):
            command = [program, self._kind, "--addresses", addresses, "--port", self.port,
                       "--congestion-control", self.cc, "--rank", rank,
                       "--chunk-bytes", self._chunk_bytes, *self._options,
                       "--commands", self._ranks.commands_path(rank),
                       "--answers", self._ranks.answers_path(rank)]  # fmt: skip
            self._add(f"rank-{rank}", host, command)


def trees(name, cc, all_parents):
    options = [word for parents in all_parents
               for word in ("--tree", ",".join(map(str, parents)))]  # fmt: skip
    return OverlayContestant(name, cc, "trees", CHUNK_BYTES, options)


class ServerContestant(peers.ParameterServerContestant):
    """The parameter server, beside the rank of a site of our choice."""

    def __init__(self, cc, root, name="server"):
        super().__init__(cc, server_has_rank=True)
        self.name = f"tcp-{name}-{cc}"
        self._root = root

    def _start(self, rate_bits):
        self.server = self._lab.hosts[network.host_name(self._root)]
        super()._start(rate_bits)


class WanContestant(LightContestant):
    """gradplane with a planner that knows the network as its YAML has it, and no more."""

    def __init__(self, plan, section, root, controller):
        more = f"congestion: {{controller: {controller}}}\n" + ROUNDS
        super().__init__(plan, extra=section + more, tells_links=False)
        self.name = f"gradplane-{plan}-{controller}"
        self.first_host_is_server = False
        self._settings["plan"] = plan
        self._root = root

    def _start(self, rate_bits):
        self.server = self._lab.hosts[network.host_name(self._root)]
        super()._start(rate_bits)
