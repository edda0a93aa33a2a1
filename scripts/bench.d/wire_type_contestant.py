# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""gradplane with sums in a wire type."""

from contestants import Contestant, GradplaneContestant


class WireTypeContestant(GradplaneContestant):
    """Messages are gradient buckets that go in a wire type. All ranks are in their sums, which may
    have rounding errors. Replicas have the same bits."""

    OFF_AT_MOST = 0.02  # of the largest sum: the error of int8 on eight hosts, with residuals

    def __init__(self, plan, wire, compensation="rescale", root_is_first_host=False):
        gather = f'gather: {{compensation: {compensation}, wire_types: {{"*": {wire}}}}}\n'
        super().__init__(plan, root_is_first_host, gather)
        self.name = f"gradplane-{plan}-{wire}" + ("-carry" if compensation == "carry" else "")

    def _start_ranks(self):
        self._add_rank_programs(self.nodes, "--rounded", self.OFF_AT_MOST)

    def _troubles(self):
        return Contestant._troubles(self)
