# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Sends commands to the ranks of a contestant and takes their answers, as lines of JSON over FIFOs.

FOLDER/rank-R.in and FOLDER/rank-R.out belong to rank R. Times are CLOCK_MONOTONIC nanoseconds.

  at the start           <- {"ready": true, "rank": R}
  {"do": "round", "seed": S, "bytes": B, "at_ns": T}
                         <- {"rank": R, "start_ns": ., "end_ns": ., "correct": bool, "crc": hex,
                             "other_cpu_ns": before the start and after the end}
  {"do": "train", "seed": S, "bytes": B, "at_ns": T, "iterations": I, "compute_ns": C, "jitter": J,
   "buckets": N}          <- {"rank": R, "start_ns": [.], "end_ns": [.] of every iteration's
                             all-reduce, "late_ns": the worst start, "correct": bool}
  {"do": "end"}, or the end of the FIFO: the rank leaves
  what went wrong        <- {"rank": R, "error": text}, and the rank leaves

Options of a round: "buckets": n (torch); "op": "push" (parameter server), "broadcast" from rank 0
(torch, gradplane) or "exchange" with "selection": n (gradplane; the answer has "senders", the ranks
whose updates came); "spoil": true (breaks the result before the check, for tests of the check).
"""

import contextlib
import json
import os
import pathlib
import select
import time

MAX_ANSWER_BYTES = 65536
POLL_SECONDS = 0.5


class Ranks:
    """The FIFOs of all ranks. This process has each open for both directions. So open() does not
    block, and a rank sees the end of its commands when this process ends."""

    def __init__(self, folder, names):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.names = list(names)
        self._commands, self._answers, self._rests = {}, {}, {}
        for name in self.names:
            for path in (self.commands_path(name), self.answers_path(name)):
                path.unlink(missing_ok=True)
                os.mkfifo(path)
            flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
            self._commands[name] = os.open(self.commands_path(name), flags)
            self._answers[name] = os.open(self.answers_path(name), flags)
            self._rests[name] = b""

    def commands_path(self, name):
        return self.folder / f"rank-{name}.in"

    def answers_path(self, name):
        return self.folder / f"rank-{name}.out"

    def send(self, command, names=None):
        line = (json.dumps(command) + "\n").encode()
        for name in names or self.names:
            os.write(self._commands[name], line)

    def collect(self, seconds, why_dead=lambda: ""):
        """One answer of every rank, in their order. It is an error if none came in time, or if
        `why_dead` says that none can come any more."""
        deadline = time.monotonic() + seconds
        found = {}
        trouble = ""
        for name in self.names:
            self._take_line(name, found)
        while len(found) < len(self.names) and not trouble:
            left = deadline - time.monotonic()
            trouble = why_dead() if left > 0 else f"no answer within {seconds:g} s"
            # The last answer of a process is read even if the process has ended since.
            self._read(0 if trouble else min(left, POLL_SECONDS), found)
        missing = trouble or "no answer"
        return [found.get(name, {"rank": name, "error": missing}) for name in self.names]

    def _read(self, seconds, found):
        waiting = {fd: name for name, fd in self._answers.items() if name not in found}
        for fd in select.select(list(waiting), [], [], seconds)[0]:
            name = waiting[fd]
            self._rests[name] += os.read(fd, MAX_ANSWER_BYTES)
            self._take_line(name, found)

    def _take_line(self, name, found):
        line, newline, rest = self._rests[name].partition(b"\n")
        if newline:
            self._rests[name] = rest
            found[name] = self._parse(name, line)
        elif len(line) > MAX_ANSWER_BYTES:
            found[name] = {"rank": name, "error": "an answer without an end"}

    @staticmethod
    def _parse(name, line):
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, dict):
                return answer
        return {"rank": name, "error": f"no JSON: {line[:200]!r}"}

    def close(self):
        for name in self.names:
            for fds in (self._commands, self._answers):
                if name in fds:
                    os.close(fds.pop(name))
            self.commands_path(name).unlink(missing_ok=True)
            self.answers_path(name).unlink(missing_ok=True)
