# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Starts processes on the hosts of a lab, follows their logs, and always ends them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

LAST_LINES = 15
END_SECONDS = 10
START_SECONDS = 60
STATUS_SECONDS = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ProcessError(RuntimeError):
    """A process has failed or is missing. The message says what is wrong and where to look."""


class Process:
    """A command on a host, with its output in a log that can be followed."""

    def __init__(self, name, host, command, log, environment=None):
        self.name = name
        self.log = pathlib.Path(log)
        self._offset = 0
        self._rest = b""
        with open(self.log, "wb") as output:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", host.namespace, *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})}, start_new_session=True,
            )  # fmt: skip

    def exit_code(self):
        """The exit code; None while the process runs."""
        return self._process.poll()

    def messages(self):
        """The JSON objects that the process has printed since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self._offset)
            new = log.read()
        self._offset += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        found = []
        for line in lines:
            if line.startswith(b"{"):
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def cpu_seconds(self):
        """User and system time so far, with ended children; 0 when the process has ended."""
        try:
            fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1]
        except OSError:
            return 0.0
        return sum(int(field) for field in fields.split()[11:15]) / TICKS_PER_SECOND

    def fail(self, what):
        """Raises a ProcessError that has `what`, the last lines of the log, and its path."""
        lines = self.log.read_text(errors="replace").splitlines()
        last = "\n".join(f"    {line[:200]}" for line in lines[-LAST_LINES:]) or "    (nothing)"
        raise ProcessError(f"{self.name} {what}\n  its last lines:\n{last}\n  the log: {self.log}")

    def check_alive(self):
        code = self.exit_code()
        if code is not None:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self.fail(how)

    def signal_group(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self):
        """Ends the whole process group by SIGTERM, then by SIGKILL."""
        for sent in (signal.SIGTERM, signal.SIGKILL):
            if self.exit_code() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Started(Process):
    """A process that another one has started, and that ends with it. It has its own log."""

    def __init__(self, name, starter, log):
        self.name = name
        self.log = pathlib.Path(log)
        self._offset = 0
        self._rest = b""
        self._process = starter._process


def gradplane_status(cli, socket):
    """A daemon's status report, or None if it gives none."""
    command = [str(cli), "status", "--json", "--socket", str(socket)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=STATUS_SECONDS
        )
        return json.loads(done.stdout) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        return None


def wait_until_daemons_up(daemons, status):
    """Waits until all daemons give a status. `daemons` are Processes by name; `status(name)`
    returns a report or None."""
    for name, process in daemons.items():
        def is_up(process=process, name=name):
            process.check_alive()
            return status(name) is not None

        if not wait_until(is_up, START_SECONDS):
            process.fail(f"does not answer `gradplane status` within {START_SECONDS} s")


def machine_cpu_seconds():
    """The busy time of all cores in seconds, interrupts included."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    user, nice, system, _, _, irq, soft_irq, _ = map(int, fields)
    return (user + nice + system + irq + soft_irq) / TICKS_PER_SECOND


def wait_until(condition, seconds, pause_s=0.1):
    """Waits until `condition` is true. Returns False when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
    return True
