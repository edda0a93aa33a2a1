# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Contestants that are up at the same time in one lab."""

import harness
import netlab


class Contestants:
    """Those of one lab. One that fails in a case is started anew for the next."""

    def __init__(self, lab, chosen, case, logs):
        self._lab, self._rate_bits, self._logs = lab, case["rate_bits_per_second"], logs
        self._chosen = chosen
        self._up = {}
        self.failures = {}  # name: why it could not be started
        self.troubles = {}  # name: what makes all its results void

    def start_missing(self):
        """Those that are up."""
        self.failures = {}
        for contestant in self._chosen:
            if contestant.name in self._up:
                continue
            self._up[contestant.name] = contestant
            try:
                contestant.start(self._lab, self._rate_bits, self._logs / contestant.name)
                contestant.ready(harness.START_SECONDS_PER_HOST * len(self._lab.hosts))
            except (OSError, RuntimeError, netlab.LabError) as problem:
                self.failures[contestant.name] = str(problem)
                self.give_up(contestant.name)
        for contestant in self._up.values():
            contestant.lead_factor = 1
        return list(self._up.values())

    def give_up(self, name):
        """Ends one whose failure is known: how it leaves says nothing of the cases before."""
        self.end(name)
        self.troubles.pop(name, None)

    def end(self, name):
        """Ends one; what it says then makes all of its results void."""
        try:
            troubles = self._up.pop(name).end()
        except (OSError, RuntimeError) as problem:
            troubles = [str(problem)]
        if troubles:
            self.troubles[name] = "; ".join(troubles)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in list(self._up):
            self.end(name)
