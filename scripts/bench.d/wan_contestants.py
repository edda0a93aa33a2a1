# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The contestants of `wan`: gradplane with each of its planners, and all-reduces over plain TCP as
others have built them for distant sites."""

import dataclasses
import os
import threading
import time

import contestants as peers
import wan_network as network
from light_contestant import LightContestant

# A slice of NetStorm and TSEngine has 4 MB, scaled with the volumes. Chunks of trees are smaller,
# because a hop forwards only whole chunks.
SLICE_BYTES = int(4 * 10**6 * network.VOLUME_SCALE) // 4 * 4
CHUNK_BYTES = 16 * 1024
PROGRESS_SECONDS = 0.5
ARITY = 2  # of the balanced tree
# What each mode adds to the section `plan`.
MODES = {
    "": "",
    "fixed": "\n  redraw: {enabled: false}",  # the first plan stays
    "routes": "\n  auxiliary: true",
}


@dataclasses.dataclass(frozen=True)
class Known:
    """What is the same for all planners: the section `network`, the host that coordinates, and the
    sites of hosts if sites have several."""

    section: str
    root: str
    sites: dict | None = None


def parents_of_star(root):
    """The parent of every site, as ranks. The root is its own parent."""
    return [root - 1] * network.SITES


def parents_of_balanced_tree(root, arity=ARITY):
    """The parents of a tree whose inner sites have `arity` children. The root comes first, then the
    sites in the order of their numbers, whatever the network is."""
    order = [root, *(s for s in range(1, network.SITES + 1) if s != root)]
    parents = [0] * network.SITES
    for place, site in enumerate(order):
        parents[site - 1] = order[max(0, (place - 1) // arity)] - 1
    return parents


class OverlayContestant(peers.Contestant):
    """tests/peers/tcp_overlay, with a rank at every site."""

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
    """The parameter server on a chosen host, which has a rank, too."""

    def __init__(self, cc, root, name="server"):
        super().__init__(cc, server_has_rank=True)
        self.name = f"tcp-{name}-{cc}"
        self._root = root

    def _start(self, rate_bits):
        self.server = self._lab.hosts[self._root]
        super()._start(rate_bits)


class Progress:
    """A context in which a daemon is asked repeatedly how many rounds of its job are complete. It
    returns the list to which [seconds since `at_ns`, rounds] are appended."""

    def __init__(self, nodes, name, at_ns, pause_s=PROGRESS_SECONDS):
        self._nodes, self._name, self._at_ns = nodes, name, at_ns
        self._pause_s = pause_s
        self._found, self._over = [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.wait(self._pause_s):
            for job in (self._nodes.status(self._name) or {}).get("jobs", [])[:1]:
                seconds = (time.monotonic_ns() - self._at_ns) / 1e9
                self._found.append([round(seconds, 2), job["rounds_completed"]])

    def __enter__(self):
        self._thread.start()
        return self._found

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


class WanContestant(LightContestant):
    """gradplane with a planner that knows the network from the YAML file. It may make further plans
    while the job runs, unless the mode is `fixed`. With `follows`, `progress` is that of the last
    round."""

    def __init__(self, plan, known, controller, round_kib, mode="", follows=False):
        more = f"congestion: {{controller: {controller}}}\nrounds: {{bytes: {round_kib} KiB}}\n"
        super().__init__(plan, extra=known.section + more, tells_links=False)
        self.name = "-".join(filter(None, ("gradplane", plan, controller, mode)))
        self.first_host_is_server = False
        self._settings["plan"] = plan + MODES[mode]
        self._settings["sites"] = known.sites
        self._root = known.root
        self._follows = follows
        self.progress = []

    def _start(self, rate_bits):
        self.server = self._lab.hosts[self._root]
        super()._start(rate_bits)

    def round(self, seed, bytes_, at_ns, *arguments, **options):
        if not self._follows:
            return super().round(seed, bytes_, at_ns, *arguments, **options)
        with Progress(self.nodes, self.server.name, at_ns) as self.progress:
            return super().round(seed, bytes_, at_ns, *arguments, **options)
