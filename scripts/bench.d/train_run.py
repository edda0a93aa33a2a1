# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""One training of one contestant in a lab: starts train_job.py on every host, follows the ranks,
and returns their results and those of the meters."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import shlex
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts/lib"), str(ROOT / "tests/peers")]
import gradplane_nodes  # noqa: E402
import meters  # noqa: E402
import mpi  # noqa: E402
import netlab  # noqa: E402
import processes  # noqa: E402

JOB = pathlib.Path(__file__).resolve().parent / "train_job.py"
REACH_JOB = JOB.with_name("reach_job.py")
PYTHON = "/usr/bin/python3"
FIRST_PORT = 29700  # each training has another, because the kernel may remember old connections
PORTS = 100
POLL_SECONDS = 0.05
# The first steps make connections, buckets and caches.
WARM_UP_STEPS = 3
# Exceptions that end a training without a result. Their messages say why.
FAILURES = (OSError, processes.ProcessError, netlab.LabError)
_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class Contestant:
    """What sums the gradients: gradplane with a plan, or Gloo over the kernel's TCP. `gather` is
    the section of the YAML file; if it is empty, sums are exact. `extra` is added to the YAML file,
    `tells_links` says whether nodes know each other's links, and `job_options` are for
    train_job.py."""

    name: str
    cc: str | None = None
    plan: str | None = None
    gather: str = ""
    extra: str = ""
    tells_links: bool = True
    job_options: tuple = ()


@dataclasses.dataclass
class Run:
    """The results of one training. Times are in seconds, and rank 0's unless said otherwise."""

    seed: int
    about: dict  # the description that the job printed when it began
    curve: list  # [seconds since the first step, accuracy or loss] after every epoch
    steps: list  # seconds of every iteration, without the first ones
    first_step_s: float
    seconds: float  # from the first step to the end
    sync_s: float
    identical: bool  # every replica has the same bits after every epoch
    cpu_seconds: dict  # per host, trainer and daemon; and the network's switch
    busy_core_seconds: float
    busy_of_seconds: float
    wire_bytes: int
    needed: int  # blocks or segments with data, each counted once
    retransmitted: int
    deepest_queue_bytes: int
    queue_drops: int
    late_frames: int
    latest_frame_us: float
    delivered_frames: int
    lost_by_switch: int
    uplink_bytes: dict = dataclasses.field(default_factory=dict)  # by host
    carried: int | None = None  # all-reduces and exchanges, over all ranks
    exchanged: int | None = None  # exchanges among them
    fallen_back: int | None = None
    passed_through: int | None = None
    carried_ops: int | None = None  # of all kinds
    rounds: int | None = None
    partial_rounds: int | None = None  # rounds with partial blocks
    partial_blocks: int | None = None

    @property
    def iterations(self):
        return len(self.steps) + WARM_UP_STEPS


class Training:
    """The processes of one run, as a context."""

    def __init__(self, lab, contestant, case, seed, logs, on_begin=None):
        self._on_begin = on_begin
        self._lab, self._contestant, self._case, self._seed = lab, contestant, case, seed
        self._logs = logs
        # A case may have a host that only coordinates and has no rank.
        self._coordinator = case.get("coordinator", next(iter(lab.hosts)))
        self._hosts = [h for h in lab.hosts.values() if h.name != case.get("coordinator")]
        self._ranks, self._nodes = [], None
        self._said = [[] for _ in self._hosts]
        self._gauges = Gauges(lab, [host.name for host in self._hosts])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._ranks:
            process.end()
        if self._nodes:
            self._nodes.end()

    def start(self):
        self._logs.mkdir(parents=True, exist_ok=True)
        for old in self._logs.glob("report-*.json"):
            old.unlink()
        if self._contestant.cc:
            self._lab.set_tcp(self._contestant.cc)
        if self._contestant.plan:
            build = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
            self._nodes = self._gauges.nodes = gradplane_nodes.GradplaneNodes(
                build, self._lab, self._coordinator, self._contestant.plan,
                self._case["rate_bits_per_second"], self._logs, number=0,
                extra=self._contestant.gather + self._contestant.extra,
                tells_links=self._contestant.tells_links,
            )  # fmt: skip
            self._nodes.wait_until_up()
        start = self._start_by_mpirun if self._case.get("mpi") else self._start_each
        start()

    def _command(self, host):
        command = self._nodes.run_command(host.name, "--require") if self._nodes else []
        program = self._case.get("program")  # only in cases of `reach`
        command += [PYTHON, *([REACH_JOB, "--program", program] if program else [JOB])]
        command += ["--model", self._case["model"], "--seed", self._seed]
        return [*command, "--epochs", self._case["epochs"], *self._contestant.job_options]

    def _environment(self):
        return {"OMP_NUM_THREADS": "1", "USE_LIBUV": "0",
                "GRADPLANE_REPORT": str(self._logs / "report-%r.json")}  # fmt: skip

    def _start_each(self):
        port = FIRST_PORT + next(_numbers) % PORTS
        for rank, host in enumerate(self._hosts):
            environment = {
                **self._environment(),
                "RANK": str(rank),
                "WORLD_SIZE": str(len(self._hosts)),
                "MASTER_ADDR": self._hosts[0].management_address,
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": self._interface(),
            }
            if self._contestant.gather:  # bounds may use names, which DDP gives only with this
                environment["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
            self._ranks.append(processes.Process(
                f"rank {rank} on {host.name}", host, self._command(host), self._log(rank),
                environment,
            ))  # fmt: skip

    def _start_by_mpirun(self):
        """Starts one mpirun. It runs a shell script on every host, which becomes the rank."""
        lines = ["#!/bin/sh", 'case "$OMPI_COMM_WORLD_RANK" in']
        for rank, host in enumerate(self._hosts):
            settings = [f"{name}={value}" for name, value in self._environment().items()]
            command = shlex.join(map(str, ["env", *settings, *self._command(host)]))
            lines.append(f"{rank}) exec {command} >{shlex.quote(str(self._log(rank)))} 2>&1 ;;")
            self._log(rank).write_bytes(b"")
        script = self._logs / "rank.sh"
        script.write_text("\n".join([*lines, "esac", ""]))
        script.chmod(0o755)
        command, environment = mpi.mpi_command(
            [host.namespace for host in self._hosts],
            [host.management_address for host in self._hosts],
            script.resolve(), interface=self._interface(),
        )  # fmt: skip
        first = self._hosts[0]
        launcher = processes.Process("mpirun", first, command, self._logs / "mpirun.log",
                                     environment)  # fmt: skip
        self._ranks = [
            processes.Started(f"rank {rank} on {host.name}", launcher, self._log(rank))
            for rank, host in enumerate(self._hosts)
        ]

    def _interface(self):
        """The interface over which ranks talk to each other without gradplane."""
        return "mg0" if self._nodes else "dp0"

    def _log(self, rank):
        return self._logs / f"rank{rank}.log"

    def follow(self, seconds):
        """Follows the ranks until all have ended well. Raises ProcessError if one fails or takes
        longer than `seconds`."""
        begun = time.monotonic()
        running = self._ranks
        while running:
            # Ranks that have ended before the logs are read will print no more.
            running = [rank for rank in self._ranks if rank.exit_code() is None]
            failed = [rank for rank in self._ranks if rank.exit_code() not in (None, 0)]
            if failed:
                failed[0].check_alive()
            if self._nodes:
                self._nodes.check_alive()
            self._read()
            # A silent rank has not failed: TCP may wait for minutes after losses.
            if running and time.monotonic() - begun > seconds:
                running[0].fail(f"did not end within {seconds} s")
            if running:
                time.sleep(POLL_SECONDS)

    def _read(self):
        for number, (rank, said) in enumerate(zip(self._ranks, self._said)):
            for message in rank.messages():
                said.append(message)
                if number == 0:
                    self._gauges.hear(message, self._case["epochs"])
                    if "begin_ns" in message and self._on_begin:
                        self._on_begin(message["begin_ns"])

    def _ask_rank(self, number, key):
        for message in self._said[number]:
            if key in message:
                return message
        return self._ranks[number].fail(f"never said {key}")

    def result(self, machine):
        begin, end = self._ask_rank(0, "begin_ns"), self._ask_rank(0, "end_ns")
        if begin["gradient_bytes"] != self._case["bytes"]:
            self._ranks[0].fail(f"has {begin['gradient_bytes']} bytes of gradients, and the case "
                                f"says {self._case['bytes']}")  # fmt: skip
        epochs = [[m for m in said if "epoch" in m] for said in self._said]
        for number, mine in enumerate(epochs):
            if len(mine) != self._case["epochs"]:
                self._ranks[number].fail(f"told of {len(mine)} of {self._case['epochs']} epochs")
        steps = [seconds for epoch in epochs[0] for seconds in epoch["step_seconds"]]
        busy, of_seconds = machine.busy_core_seconds(begin["begin_ns"], end["end_ns"])
        cpu = [self._ask_rank(number, "cpu_s")["cpu_s"] for number in range(len(self._ranks))]
        return Run(
            seed=self._seed,
            about=begin,
            curve=[[e["seconds"], e.get("accuracy", e.get("loss"))] for e in epochs[0]],
            steps=steps[WARM_UP_STEPS:],
            first_step_s=steps[0],
            seconds=epochs[0][-1]["seconds"],
            sync_s=sum(epoch["sync_s"] for epoch in epochs[0]),
            identical=all(len({e["digest"] for e in same}) == 1 for same in zip(*epochs)),
            busy_core_seconds=busy or 0.0,
            busy_of_seconds=of_seconds,
            **self._gauges.read(cpu),
            **self._fallbacks(),
        )

    def _fallbacks(self):
        """Counts of collectives, from the reports that the shim writes when a rank ends. Gloo has
        none."""
        if not self._nodes:
            return {}
        reports = [json.loads(path.read_text()) for path in self._logs.glob("report-*.json")]
        if len(reports) != len(self._ranks):
            self._ranks[0].fail(f"and the others: {len(reports)} of {len(self._ranks)} had "
                                "gradplane's shim in them")  # fmt: skip
        exchanged = sum(report["carried"].get("exchange", 0) for report in reports)
        summed = sum(report["carried"].get("all_reduce", 0) for report in reports)
        return {
            "carried": summed + exchanged,
            "exchanged": exchanged,
            "fallen_back": sum(r["fallbacks"] + r["fallen_back_ops"] for r in reports),
            "carried_ops": sum(report["carried_ops"] for report in reports),
            "passed_through": sum(sum(r["passed_through"].values()) for r in reports),
            "rounds": sum(report["carried_rounds"] for report in reports),
            "partial_rounds": sum(report["partial_rounds"] for report in reports),
            "partial_blocks": sum(report["partial_blocks"] for report in reports),
        }


class Gauges:
    """Readings between the first step and the end of a run."""

    def __init__(self, lab, ranks):
        """`ranks` has the name of the host of each rank."""
        self._lab, self._ranks = lab, ranks
        self.nodes = None
        self._namespaces = [host.namespace for host in lab.hosts.values()]
        self._tcp = meters.tcp_segments(self._namespaces)
        self._begin = self._end = None
        self._blocks = {"blocks_sent": 0, "blocks_retransmitted": 0}

    def hear(self, message, epochs):
        if "begin_ns" in message:
            self._lab.reset()
            self._begin = self._cpu()
        elif message.get("epoch") == max(1, epochs - 1) and self.nodes:
            # The counters of a job end with it. Before the last epoch the job still exists.
            self._blocks = self.nodes.counters()
        elif "end_ns" in message:
            self._end = self._cpu()

    def _cpu(self):
        """CPU seconds of the daemons and the switch. Ranks count their own."""
        found = dict.fromkeys(self._lab.hosts, 0.0)
        if self.nodes:
            found |= {name: p.cpu_seconds() for name, p in self.nodes.processes.items()}
        return {**found, meters.SWITCH: self._lab.stats()["switch"].get("cpu_seconds", 0.0)}

    def read(self, rank_cpu_s):
        stats = self._lab.stats()
        cpu = {name: self._end[name] - self._begin[name] for name in self._end}
        for name, seconds in zip(self._ranks, rank_cpu_s):
            cpu[name] += seconds
        now = meters.tcp_segments(self._namespaces)
        needed, again = (after - before for after, before in zip(now, self._tcp))
        if self.nodes:
            again = self._blocks["blocks_retransmitted"]
            needed = self._blocks["blocks_sent"] - again
        return {
            "cpu_seconds": cpu,
            "needed": needed,
            "retransmitted": again,
            **meters.network_use(stats),
        }


def train(lab, contestant, case, seed, logs, machine, seconds, on_begin=None):
    """Makes one run. Raises one of FAILURES if it fails. `on_begin` is called with the time of the
    first step."""
    with contextlib.ExitStack() as stack:
        training = stack.enter_context(Training(lab, contestant, case, seed, logs, on_begin))
        training.start()
        training.follow(seconds)
        return training.result(machine)
