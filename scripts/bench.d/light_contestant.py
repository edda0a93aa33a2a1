# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""gradplane with ranks that use no framework, so that many hosts start quickly."""

import contestants


class LightContestant(contestants.GradplaneContestant):
    """A star whose root is the first host, with exact sums and ranks of
    tests/peers/gradplane_ranks.cc.

    Without `tells_links` no node knows the others' links, so it sends as its congestion controller
    allows, and not its share. With `tells_buffer` the nodes know how much the lab's switch can
    queue.
    """

    def __init__(self, name, extra="", tells_links=True, tells_buffer=False):
        super().__init__("star", root_is_first_host=True, extra=extra)
        self.name = f"gradplane-{name}"
        self._settings["tells_links"] = tells_links
        self._tells_buffer = tells_buffer

    def _start(self, rate_bits):
        if self._tells_buffer:
            down = self._lab.stats()["links"][self.server.name]["down"]["settings"]
            self._settings["port"] = f"  buffer: {down['queue_bytes']} B\n"
        super()._start(rate_bits)

    def _start_ranks(self):
        self._add_rank_programs(self.nodes, "--exact")

    def _troubles(self):
        return contestants.Contestant._troubles(self)
