# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The contestants of benchmarks, behind one interface: Gloo, Open MPI, a parameter server and
gradplane.

Several may be up in one lab at a time, as long as only one has a round. Each sets the lab's
congestion control for its own connections, so call start() and ready() of one before those of the
next.
"""

import contextlib
import itertools
import json
import os
import pathlib
import secrets
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts/lib"), str(ROOT / "tests/peers")]
import gradplane_nodes  # noqa: E402
import mpi  # noqa: E402
import processes  # noqa: E402
from ranks import Ranks  # noqa: E402

# Its message has the failure, the last lines of the log, and the path of the log.
ContestantError = processes.ProcessError

PYTHON = "/usr/bin/python3"
TORCH_RANKS = ROOT / "tests/peers/torch_ranks.py"
PEERS = "tests/peers"  # in the build folder
FIRST_PORT = 29500  # each contestant has one of its own
MAX_CONTESTANTS = 100  # at a time
ROUND_SECONDS = 120
LEAVE_SECONDS = 60
# Between the turns of a contestant its daemons are stopped, so they are silent for a while.
PATIENCE = "liveness:\n  suspect_after: 10 min\n"
EXACT = "preset: exact"


class Contestant:
    """Call start(), ready(), round() any number of times, and end() in any case. After a round with
    an error the contestant is broken, and only end() may be called. start() and ready() raise
    OSError, ContestantError or netlab.LabError."""

    dataplane = "dp0"
    management = "mg0"
    first_host_is_server = False
    _numbers = itertools.count()

    def __init__(self, name, cc=None):
        """`cc` is the congestion control of the kernel's TCP; None: it is not changed."""
        self.name = name
        self.cc = cc
        self.build = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
        self.number = next(self._numbers) % MAX_CONTESTANTS
        self.port = FIRST_PORT + self.number
        self.server = self.logs = None
        self.workers = []  # the host of each rank
        self.processes = []
        self.is_broken = False
        self._lab = self._ranks = None

    def start(self, lab, rate_bits, logs):
        """Starts all ranks. It may be called again after end(). `rate_bits` is the rate per second
        of every link of the lab, and `logs` a folder only for this contestant."""
        self._lab = lab
        self.processes = []
        self.is_broken = False
        self.logs = pathlib.Path(logs)
        self.logs.mkdir(parents=True, exist_ok=True)
        hosts = list(lab.hosts.values())
        self.server = hosts[0]
        self.workers = hosts[1:] if self.first_host_is_server else hosts
        if self.cc:
            lab.set_tcp(self.cc)
        self._ranks = Ranks(self.logs, self.rank_names())
        self._start(rate_bits)

    def rank_names(self):
        return list(range(len(self.workers)))

    def ready(self, timeout):
        """Waits until every rank is connected with every other. Raises ContestantError."""
        answers = self._ranks.collect(timeout, self.why_dead)
        bad = [answer for answer in answers if not answer.get("ready")]
        if bad:
            self.is_broken = True
            raise ContestantError(f"{self.name}: rank {bad[0].get('rank')} is not ready: "
                                  f"{bad[0].get('error', bad[0])}; logs: {self.logs}")  # fmt: skip

    def round(self, seed, bytes_, at_ns, timeout=ROUND_SECONDS, spoil=None, **options):
        """Makes a round. Returns the answers of all ranks, in their order. The answer of a rank
        that has failed has "error". `spoil` names a rank that breaks its own result, for tests."""
        if self.is_broken:
            raise ContestantError(f"{self.name} is broken by an earlier round; end it")
        self.ask({"do": "round", "seed": seed, "bytes": bytes_, "at_ns": at_ns, **options}, spoil)
        return self.answers(timeout)

    def ask(self, command, spoil=None):
        """Sends a command (ranks.py) to all ranks; answers() must follow."""
        for name in self._ranks.names:
            self._ranks.send({**command, "spoil": True} if name == spoil else command, [name])

    def answers(self, timeout):
        """The answers to the last command, as round() returns them."""
        answers = self._ranks.collect(timeout, self.why_dead)
        hosts = [*self.workers, self.server]  # in the order of the ranks
        for answer, host in zip(answers, hosts):
            answer["namespace"] = host.namespace
        self.is_broken = any("error" in answer for answer in answers)
        return answers

    def why_dead(self):
        """Empty while every process runs; else which has ended, how, and its last lines."""
        try:
            for process in self.processes:
                process.check_alive()
        except ContestantError as error:
            return str(error)
        return ""

    def counters(self):
        """None, because the kernel's TCP counts in the namespaces."""
        return None

    def end(self):
        """Ends all processes. Returns a list of texts that say what was wrong with the rounds."""
        if self._ranks and not self.is_broken:
            self._ranks.send({"do": "end"})
            processes.wait_until(
                lambda: all(p.exit_code() is not None for p in self.processes), LEAVE_SECONDS
            )
        for process in self.processes:
            process.end()
        if self._ranks:
            self._ranks.close()
            self._ranks = None
        return self._troubles()

    def _start(self, rate_bits):
        raise NotImplementedError

    def _troubles(self):
        codes = {process.name: process.exit_code() for process in self.processes}
        bad = {name: code for name, code in codes.items() if code != 0}
        return [f"{name} left with exit code {code}" for name, code in bad.items()]

    def _add(self, label, host, command, environment=None):
        log = self.logs / f"{label}.log"
        self.processes.append(processes.Process(label, host, command, log, environment))

    def _add_rank_programs(self, nodes, *options):
        """tests/peers/gradplane_ranks for every worker, as one job."""
        program = self.build / PEERS / "gradplane_ranks"
        if not os.access(program, os.X_OK):
            raise ContestantError(f"{program} is missing; run scripts/build")
        key = secrets.token_hex(16)
        for rank, host in enumerate(self.workers):
            command = [program, "--socket", nodes.socket(host.name), "--key", key,
                       "--rank", rank, "--world", len(self.workers), *options,
                       "--commands", self._ranks.commands_path(rank),
                       "--answers", self._ranks.answers_path(rank)]  # fmt: skip
            self._add(f"rank-{rank}", host, command)

    def _torch_command(self, interface):
        master = self.workers[0].management_address
        return [PYTHON, TORCH_RANKS, "--namespaces", ",".join(h.namespace for h in self.workers),
                "--master", f"{master}:{self.port}", "--interface", interface,
                "--fifos", self.logs, "--timeout-s", ROUND_SECONDS]  # fmt: skip


class GlooContestant(Contestant):
    """torch.distributed's own all_reduce, over the kernel's TCP on the dataplane."""

    def __init__(self, cc=None):
        super().__init__(f"gloo-{cc}" if cc else "gloo", cc)

    def _start(self, rate_bits):
        command = self._torch_command(self.dataplane)
        self._add("torch_ranks", self.workers[0], command, {"OMP_NUM_THREADS": "1"})


class OpenMpiContestant(Contestant):
    """MPI_Allreduce of Open MPI, over the kernel's TCP on the dataplane."""

    def __init__(self, cc=None):
        super().__init__(f"openmpi-{cc}" if cc else "openmpi", cc)

    def _start(self, rate_bits):
        program = self.build / PEERS / "mpi_ranks"
        if not os.access(program, os.X_OK):
            raise ContestantError(f"{program} is missing; run scripts/setup and scripts/build")
        command, environment = mpi.mpi_command(
            [host.namespace for host in self.workers],
            [host.management_address for host in self.workers],
            program,
            "--fifos",
            self.logs,
        )
        self._add("mpirun", self.workers[0], command, environment)


class ParameterServerContestant(Contestant):
    """A server on the first host that sums the pushes of workers on all others, and sends the sum.

    With `server_has_rank` the first host has a worker, too, whose bytes cross no link. With
    `op="push"` a round is only the incast. The last answer is the server's, with the rank "server".
    For an incast it has "end_ns", the time at which all had arrived; for an all-reduce it has
    "pushed_ns" instead.
    """

    def __init__(self, cc="cubic", server_has_rank=False):
        super().__init__(f"parameter-server-{cc}", cc)
        self.first_host_is_server = not server_has_rank

    def rank_names(self):
        return [*range(len(self.workers)), "server"]

    def _start(self, rate_bits):
        program = self.build / PEERS / "tcp_parameter_server"
        if not os.access(program, os.X_OK):
            raise ContestantError(f"{program} is missing; run scripts/build")
        common = [program, "--address", self.server.kernel_address, "--port", self.port,
                  "--world", len(self.workers),
                  "--congestion-control", self.cc]  # fmt: skip
        places = [("server", self.server, ["--role", "server"])]
        for rank, host in enumerate(self.workers):
            places.append((rank, host, ["--role", "worker", "--rank", rank]))
        for rank, host, options in places:
            paths = ["--commands", self._ranks.commands_path(rank),
                     "--answers", self._ranks.answers_path(rank)]  # fmt: skip
            self._add(f"rank-{rank}", host, [*common, *options, *paths])


class GradplaneContestant(Contestant):
    """The same torch.distributed program over gradplane. Gloo only makes the group, on mg0.

    With `star` the first host is the root. It has a rank, too, unless `root_is_first_host` is set.
    With `sharded` all hosts are roots. Nothing may fall back to Gloo: GRADPLANE_REQUIRE makes that
    an error of the round, and end() checks the shim's reports.

    While other contestants have a round, the daemons of this one are stopped, because each would
    get a copy of every frame. The ranks are stopped, too, because they would take a stopped daemon
    for a dead one.
    """

    def __init__(self, plan="star", root_is_first_host=False, extra="", name=""):
        """`extra` is added to the YAML file, and `name` to the contestant's name."""
        super().__init__(f"gradplane-{plan}{name}")
        self.first_host_is_server = root_is_first_host
        self._settings = {"plan": plan, "extra": PATIENCE + extra}
        self.nodes = None
        self.reports = []

    def _start(self, rate_bits):
        self.nodes = gradplane_nodes.GradplaneNodes(
            self.build, self._lab, self.server.name, rate_bits=rate_bits, logs=self.logs,
            number=self.number, **self._settings,
        )  # fmt: skip
        self.nodes.wait_until_up()
        self._start_ranks()

    def _start_ranks(self):
        for report in self.logs.glob("report-*.json"):
            report.unlink()
        sockets = ",".join(self.nodes.socket(host.name) for host in self.workers)
        launcher = self.nodes.run_command(self.workers[0].name, "--require")
        command = [*launcher, *self._torch_command(self.management)]
        command += ["--gradplane-sockets", sockets]
        environment = {
            "OMP_NUM_THREADS": "1",
            "GRADPLANE_REPORT": str(self.logs / "report-%r.json"),
        }
        self._add("torch_ranks", self.workers[0], command, environment)

    def ready(self, timeout):
        super().ready(timeout)
        self._stop()

    def _stop(self):
        for process in [*self.processes, *self.nodes.processes.values()]:
            process.signal_group(signal.SIGSTOP)

    @contextlib.contextmanager
    def _awake(self):
        for process in [*self.nodes.processes.values(), *self.processes]:
            process.signal_group(signal.SIGCONT)
        try:
            yield
        finally:
            self._stop()

    def round(self, *arguments, **options):
        with self._awake():
            return super().round(*arguments, **options)

    def why_dead(self):
        try:
            self.nodes.check_alive()
        except ContestantError as error:
            return str(error)
        return super().why_dead()

    def counters(self):
        """The counters of blocks, summed over all nodes."""
        with self._awake():
            return self.nodes.counters()

    def end(self):
        with self._awake() if self.nodes else contextlib.nullcontext():
            troubles = super().end()
        if self.nodes:
            self.nodes.end()
            self.nodes = None
        return troubles

    def _troubles(self):
        troubles = super()._troubles()
        if self.is_broken or not self.processes:
            return troubles
        self.reports = [json.loads(p.read_text()) for p in self.logs.glob("report-*.json")]
        if len(self.reports) != len(self.workers):
            troubles.append(f"{len(self.reports)} of {len(self.workers)} ranks had the shim in it")
        for report in self.reports:
            passed = sum(report["passed_through"].values())
            if report["fallbacks"] or report["fallen_back_ops"] or passed:
                troubles.append(f"rank {report['rank']} fell back to Gloo: {report}")
            if not report["carried_ops"]:
                troubles.append(f"rank {report['rank']}: gradplane carried nothing: {report}")
        return troubles


class JobOfDaemons(Contestant):
    """One job of tests/peers/gradplane_ranks on daemons that others have started, and that may have
    other jobs. The first host has no rank. `nodes` is a GradplaneNodes."""

    first_host_is_server = True

    def __init__(self, name, nodes, compensation):
        super().__init__(name)
        self._nodes, self._compensation = nodes, compensation

    def _start(self, rate_bits):
        self._add_rank_programs(self._nodes, "--compensation", self._compensation)

    def why_dead(self):
        try:
            self._nodes.check_alive()
        except ContestantError as error:
            return str(error)
        return super().why_dead()


class TolerantContestant(GradplaneContestant):
    """Ranks over gradplane whose messages are gradient buckets, under a `gather` section.

    Each rank finds out for every block which ranks are in it (tests/peers/gradplane_ranks.cc). A
    round is correct when every block is a sum of some ranks, when as many blocks are partial as the
    daemon says, and when all replicas have the same bits. The answers tell what was missing. With
    the preset `exact` nothing may be missing.
    """

    def __init__(self, plan, name, gather, compensation="rescale", root_is_first_host=False):
        """`gather` is the rest of the section `gather`, as YAML in braces has it."""
        self._compensation = compensation
        self._is_exact = gather == EXACT
        # strict_rounds is 0, because a benchmark has too few rounds for exact ones at first.
        gather = f"gather: {{compensation: {compensation}, strict_rounds: 0, {gather}}}\n"
        super().__init__(plan, root_is_first_host, gather)
        self.name = f"gradplane-{plan}-{name}"

    def _start_ranks(self):
        self._add_rank_programs(self.nodes, "--compensation", self._compensation)

    def round(self, *arguments, **options):
        answers = super().round(*arguments, **options)
        for answer in answers:
            if self._is_exact and answer.get("missing_share"):
                answer["correct"] = False
        return answers

    def _troubles(self):
        return Contestant._troubles(self)
