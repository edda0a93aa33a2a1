# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""One training in a lab: starts the ranks, follows them, and summarises their reports."""

import dataclasses
import pathlib
import time

import processes

TRAIN = pathlib.Path(__file__).resolve().parent / "train.py"
PYTHON = "/usr/bin/python3"
MASTER_PORT = 29500
# If no rank reports for so long, the training hangs.
SILENCE_SECONDS = 60
LEAVE_SECONDS = 30
# The first steps build buckets, connections and caches.
WARM_UP_STEPS = 3


@dataclasses.dataclass
class Outcome:
    """The results of one run. Times are in seconds."""

    accuracy: float = 0.0
    identical: bool = True  # every replica has the same bits after every epoch
    step_seconds: list = dataclasses.field(default_factory=list)
    sync_seconds: list = dataclasses.field(default_factory=list)
    trainer_cores: float = 0.0
    daemon_cores: float = 0.0
    machine_cores: float = 0.0
    frames_seen: int = 0
    frames_lost: int = 0
    frames_dropped_by_queues: int = 0
    carried: int | None = None
    passed_through: int | None = None
    fell_back: int | None = None
    blocks_lost: int | None = None
    blocks_repaired: int | None = None


class Training:
    """The ranks of one run. `wrap(host, command)` may put a launcher in front of the command."""

    def __init__(self, hosts, interface, epochs, logs, wrap, environment, progress):
        self._progress = progress
        self._epochs = epochs
        self._reports = [{} for _ in hosts]  # per rank: {epoch: report}
        self._cpu = [0.0] * len(hosts)
        self.ranks = []
        for rank, host in enumerate(hosts):
            rank_environment = {
                "RANK": str(rank),
                "WORLD_SIZE": str(len(hosts)),
                "MASTER_ADDR": hosts[0].management_address,
                "MASTER_PORT": str(MASTER_PORT),
                "GLOO_SOCKET_IFNAME": interface,
                "OMP_NUM_THREADS": "1",
                "USE_LIBUV": "0",
                **environment(host),
            }
            command = wrap(host, [PYTHON, str(TRAIN), "--epochs", str(epochs)])
            name = f"rank {rank} on {host.name}"
            log = logs / f"rank{rank}.log"
            process = processes.Process(name, host, command, log, rank_environment)
            self.ranks.append(process)

    def follow(self, seconds, check_others, on_epoch):
        """Follows the ranks until all have ended well. Raises ProcessError if one fails, or if they
        take longer than `seconds`."""
        begun = heard = time.monotonic()
        while True:
            check_others()
            now = time.monotonic()
            if self._read(on_epoch):
                heard = now
            running = [rank for rank in self.ranks if rank.exit_code() is None]
            failed = [rank for rank in self.ranks if rank.exit_code() not in (None, 0)]
            if failed:
                # A rank that was killed is reported before ranks that have only lost their peer.
                min(failed, key=lambda rank: rank.exit_code()).check_alive()
            if not running:
                break
            if now - heard > SILENCE_SECONDS:
                others = len(running) - 1
                running[0].fail(f"and {others} other ranks: silent for {now - heard:.0f} s")
            if now - begun > seconds:
                running[0].fail(f"did not end within {seconds} s")
            time.sleep(0.1)
        self._read(on_epoch)
        for rank, reports in zip(self.ranks, self._reports):
            if len(reports) != self._epochs:
                rank.fail(f"reported {len(reports)} of {self._epochs} epochs")

    def _read(self, on_epoch):
        """Takes the messages of the ranks. Returns whether there were any."""
        heard = False
        for number, rank in enumerate(self.ranks):
            self._cpu[number] = max(self._cpu[number], rank.cpu_seconds())
            for message in rank.messages():
                heard = True
                if "iteration" in message and number == 0:
                    self._progress.iteration(
                        message["epoch"], message["iteration"], message["of"], message["seconds"]
                    )
                elif "accuracy" in message:
                    self._reports[number][message["epoch"]] = message
                    if number == 0:
                        self._progress.epoch(message["epoch"], message["accuracy"])
                        on_epoch()
        return heard

    def sum_up(self, outcome):
        for epoch in range(1, self._epochs + 1):
            reports = [reports[epoch] for reports in self._reports]
            hashes = {report["parameters_sha256"] for report in reports}
            outcome.identical = outcome.identical and len(hashes) == 1
            skipped = WARM_UP_STEPS if epoch == 1 else 0
            for report in reports:
                outcome.step_seconds += report["step_seconds"][skipped:]
                outcome.sync_seconds += report["sync_seconds"][skipped:]
            outcome.accuracy = reports[0]["accuracy"]

    def cpu_seconds(self):
        return sum(self._cpu)

    def end(self):
        for rank in self.ranks:
            rank.end()
