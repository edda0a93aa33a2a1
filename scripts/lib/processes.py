# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Processes on the hosts of a lab: started, followed by their log, always ended."""

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
    """A process failed or is missing: says what went wrong, and shows where to look."""


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
        """None while it runs."""
        return self._process.poll()

    def messages(self):
        """The JSON objects that it has printed since the last call."""
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
        """User and system time so far, with ended children; 0 once it has ended."""
        try:
            fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1]
        except OSError:
            return 0.0
        return sum(int(field) for field in fields.split()[11:15]) / TICKS_PER_SECOND

    def fail(self, what):
        """Raises: what happened to it, its last words, and where the others are."""
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
        """Asks, then insists; its whole group."""
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
    """A process that another one has started, and with which it ends; its log is its own."""

    def __init__(self, name, starter, log):
        self.name = name
        self.log = pathlib.Path(log)
        self._offset = 0
        self._rest = b""
        self._process = starter._process


def gradplane_status(cli, socket):
    """A daemon's report, or None while there is none."""
    command = [str(cli), "status", "--json", "--socket", str(socket)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=STATUS_SECONDS
        )
        return json.loads(done.stdout) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        return None


def wait_until_daemons_up(daemons, status):
    """`daemons` are Processes by name; `status(name)` is a report when the daemon has one."""
    for name, process in daemons.items():
        def is_up(process=process, name=name):
            process.check_alive()
            return status(name) is not None

        if not wait_until(is_up, START_SECONDS):
            process.fail(f"does not answer `gradplane status` within {START_SECONDS} s")


def machine_cpu_seconds():
    """Seconds that all cores have spent on anything, interrupts included."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    user, nice, system, _, _, irq, soft_irq, _ = map(int, fields)
    return (user + nice + system + irq + soft_irq) / TICKS_PER_SECOND


def wait_until(condition, seconds, pause_s=0.1):
    """Whether `condition` came true within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
    return True
