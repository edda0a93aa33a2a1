# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Contestants that are up at the same time in one lab."""

import harness
import netlab


class Contestants:
    """The contestants of one lab. One that fails in a case is started anew for the next."""

    def __init__(self, lab, chosen, case, logs):
        self._lab, self._rate_bits, self._logs = lab, case["rate_bits_per_second"], logs
        self._chosen = chosen
        self._up = {}
        self.failures = {}  # name: why it could not be started
        self.troubles = {}  # name: what makes all its results void

    def start_missing(self):
        """Starts contestants that are not up. Returns those that are."""
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
        """Ends a contestant that has failed. How it ends does not make earlier cases void."""
        self.end(name)
        self.troubles.pop(name, None)

    def end(self, name):
        """Ends a contestant. If it reports trouble, all of its results are void."""
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
