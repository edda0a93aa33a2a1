# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Shows the progress of the demo, and the table at its end."""

import sys

BAR_COLUMNS = 30
LABEL_COLUMNS = 38
VALUE_COLUMNS = 22


class Progress:
    """Shows progress: on a terminal in one line that is rewritten, else in one line per epoch."""

    def __init__(self, label, epochs):
        self._label = label
        self._epochs = epochs
        self._accuracy = None
        self._terminal = sys.stdout.isatty()
        self._drawn = 0

    def note(self, text):
        self._clear()
        print(f"{self._label}: {text}", flush=True)

    def iteration(self, epoch, number, of, seconds):
        if not self._terminal:
            return
        done = (epoch - 1 + number / of) / self._epochs
        filled = round(done * BAR_COLUMNS)
        bar = "#" * filled + "." * (BAR_COLUMNS - filled)
        accuracy = "" if self._accuracy is None else f"  accuracy {self._accuracy:.1%}"
        line = f"{self._label:<10} [{bar}] epoch {epoch}/{self._epochs}"
        line += f" iteration {number}/{of}{accuracy}  {seconds:.2f} s/iteration"
        sys.stdout.write("\r" + line + " " * max(0, self._drawn - len(line)))
        sys.stdout.flush()
        self._drawn = len(line)

    def epoch(self, number, accuracy):
        self._accuracy = accuracy
        if not self._terminal:
            print(f"{self._label}: epoch {number}/{self._epochs}, accuracy {accuracy:.1%}",
                  flush=True)  # fmt: skip

    def close(self):
        self._clear()

    def _clear(self):
        if self._drawn:
            sys.stdout.write("\r" + " " * self._drawn + "\r")
            self._drawn = 0


def table(columns, rows):
    """A table. `columns` are headings, and each of `rows` is (label, a text for each column)."""
    lines = [f"{'':<{LABEL_COLUMNS}}" + "".join(f"{name:>{VALUE_COLUMNS}}" for name in columns)]
    for label, values in rows:
        lines.append(
            f"{label:<{LABEL_COLUMNS}}" + "".join(f"{value:>{VALUE_COLUMNS}}" for value in values)
        )
    return "\n".join(lines)
