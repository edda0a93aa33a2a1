#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Runs in the guest of pci_test.py: `pci_guest.py BUILD TASK:MODEL...`

suite:MODEL   the port suite between the two NICs of a model
queues:MODEL  its tests of several queues, between NICs that steer datagrams to queues
sums:MODEL    two daemons, each with a NIC, and two ranks whose sums must all be right
jumbo:MODEL   the same with long frames, whose payloads the NICs read where they lie if they can
torch:MODEL   the same with two ranks of PyTorch, whose replicas must have the same bits
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import nics

HERE = pathlib.Path(__file__).resolve().parent
WORK = pathlib.Path("/run/tmp")
OUT = pathlib.Path("/run/out")
PYTHON = "/usr/bin/python3"
SUITE_SECONDS = 150
START_SECONDS = 60
RANKS_SECONDS = 120
TORCH_SECONDS = 600
END_SECONDS = 20
LOOK_SECONDS = 0.2
KEY = "00112233445566778899aabbccddeeff"
CONFIG = """control: {{socket: {work}/{node}.sock}}
port: {{kind: pci, pci: "{address}", huge_pages: require, mtu: {mtu}, zero_copy: {zero_copy}}}
# Four poll cores share two processors whose instructions QEMU translates.
liveness: {{heartbeat: 1 s, suspect_after: 15 s}}
cluster:
  key: "{key}"
  nodes:
    - {{name: a, address: 10.77.0.1/24}}
    - {{name: b, address: 10.77.0.2/24}}
plan: {{kind: sharded, roots: training}}
{poll}"""
# One poll core for each queue.
POLL = "poll: {{cores: {cores}}}\n"
ROUNDS = 10
ELEMENTS = 40000
# In a sharded plan, half of each round's blocks go to the other host, and as many sums come back.
# Rounds of rank_client have up to 40000 elements, so more blocks than this must have been sent.
MIN_BLOCKS = 100
MTU = 1500
# The driver of e1000e takes frames of at most 8192 bytes into one buffer.
JUMBO_MTU = 8000
# Sums are mapped in huge pages, and numa_maps counts small ones.
PAGE_BYTES = 4096
LARGE_BYTES = 2 << 20
# Two poll cores have parts of the same size, and the node of the first one has other memory, too.
MIN_NODE_SHARE = 0.2
# A round has fewer blocks if they are long.
MIN_JUMBO_BLOCKS = 20


class Failure(Exception):
    """A result that differs from the expected one."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


class Hosts:
    """A daemon on each of the two NICs of a model. Ends all processes that it started."""

    def __init__(self, build, model, mtu=MTU):
        self.build = build
        self.model = model
        self.mtu = mtu
        self._processes = []
        self._held = {}

    def __enter__(self):
        try:
            self.start_daemons()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_daemons(self):
        for node, address in zip("ab", nics.addresses(self.model)):
            config = WORK / f"{node}.yaml"
            config.write_text(CONFIG.format(work=WORK, node=node, address=address, key=KEY,
                                            mtu=self.mtu, poll=self.poll(),
                                            zero_copy=str(self.lends()).lower()))
            config.chmod(0o600)
            self.start(f"daemon-{node}", [self.build / "control/daemon/gradplaned",
                                          "--config", config, "--node", node])  # fmt: skip
        for node, daemon in zip("ab", self._processes):
            deadline = time.monotonic() + START_SECONDS
            while not self.status(node):
                log = self.log(f"daemon-{node}")
                expect(daemon.poll() is None, f"the daemon of {node} runs:\n{log}")
                expect(time.monotonic() < deadline, f"the daemon of {node} answers:\n{log}")
                time.sleep(0.2)

    def lends(self):
        return self.model in nics.CROSS_PAGES

    def poll(self):
        queue_count = nics.QUEUES.get(self.model, 1)
        return POLL.format(cores=list(range(queue_count))) if queue_count > 1 else ""

    def __exit__(self, *_):
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)
            process.kill()
            process.wait()

    def start(self, name, command, environment=None):
        """Starts a process. Its output goes to a log that the host keeps."""
        with open(OUT / f"{self.model}-{name}.log", "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, **(environment or {})})  # fmt: skip
        self._processes.append(process)
        return process

    def log(self, name):
        return (OUT / f"{self.model}-{name}.log").read_text(errors="replace")[-2000:]

    def status(self, node):
        """The daemon's status, or None if it does not answer."""
        answer = subprocess.run(
            [self.build / "control/cli/gradplane", "status", "--json", "--socket",
             WORK / f"{node}.sock"],
            capture_output=True, text=True, timeout=START_SECONDS, check=False,
        )  # fmt: skip
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def finish(self, names, ranks, seconds):
        """Waits for the ranks, which must all succeed."""
        deadline = time.monotonic() + seconds
        for name, rank in zip(names, ranks):
            code = None
            while code is None and time.monotonic() < deadline:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = rank.wait(LOOK_SECONDS)
                if self.model in nics.QUEUES:
                    self.look_at_memory()
            code = f"none within {seconds} s" if code is None else code
            expect(code == 0, f"{name}: exit code {code}:\n{self.log(name)}\n{self.state()}")

    def state(self):
        """Logs and status of both daemons, for the message of a failure."""
        said = []
        for node in "ab":
            report = self.status(node) or {}
            (OUT / f"{self.model}-failed-{node}.json").write_text(json.dumps(report, indent=1))
            said.append(f"the daemon of {node}:\n{self.log(f'daemon-{node}')}\n"
                        f"port {report.get('port')}\npoll {report.get('poll')}")  # fmt: skip
        return "\n".join(said)

    def check_counters(self):
        """Checks that blocks went over the NICs in both directions."""
        fewest = MIN_JUMBO_BLOCKS if self.mtu == JUMBO_MTU else MIN_BLOCKS
        for node in "ab":
            report = self.status(node)
            port, jobs = report["port"], report["jobs"]
            (OUT / f"{self.model}-status-{node}.json").write_text(json.dumps(report, indent=1))
            expect(port["kind"] == "pci", f"{node} has a port of kind pci: {port}")
            sent = sum(job["blocks_sent"] for job in jobs)
            expect(sent >= fewest, f"{node} has sent {sent} blocks, of {fewest} or more")
            for counter in ("rx_datagrams", "tx_datagrams"):
                expect(port[counter] >= fewest, f"{counter} of {node}: {port}")
            if self.mtu == JUMBO_MTU:
                lent = port["tx_lent"]
                expect((lent >= fewest) == self.lends(), f"{node} has lent {lent} frames")
                print(f"  {node}: {lent} frames were not copied", flush=True)
            elif self.model in nics.QUEUES:
                self.check_cores(node, report)
            print(f"  {node}: {sent} blocks sent; over {port['interface']} "
                  f"{port['tx_datagrams']} datagrams sent, {port['rx_datagrams']} received",
                  flush=True)  # fmt: skip

    def look_at_memory(self):
        """Keeps how much memory on each NUMA node the daemons have, when it is most."""
        for node, daemon in zip("ab", self._processes):
            held = [0] * nics.QUEUES[self.model]
            for line in pathlib.Path(f"/proc/{daemon.pid}/numa_maps").read_text().splitlines():
                words = dict(word.partition("=")[::2] for word in line.split())
                pages = [int(words.get(f"N{n}", 0)) for n in range(len(held))]
                # Memory of DPDK and of ranks is in files.
                if "file" not in words and sum(pages) * PAGE_BYTES >= LARGE_BYTES:
                    held = [had + PAGE_BYTES * more for had, more in zip(held, pages)]
            self._held[node] = max(self._held.get(node, held), held, key=sum)

    def check_memory(self, node):
        """Checks that each poll core had its sums on the NUMA node of its own CPU."""
        held = self._held[node]
        said = f"memory of {node} by NUMA node: {[count >> 20 for count in held]} MiB"
        expect(min(held) > MIN_NODE_SHARE * sum(held), said)
        print(f"  {said}", flush=True)

    def check_cores(self, node, report):
        """Checks that each poll core had work, and that the NIC gave it its own frames."""
        cores, handed_over = report["poll"]["cores"], report["port"]["handed_over"]
        expect(len(cores) == nics.QUEUES[self.model], f"poll cores of {node}: {cores}")
        for core in cores:
            expect(core["rx_datagrams"] >= MIN_BLOCKS // 2, f"each core of {node} works: {cores}")
        self.check_memory(node)
        # Only ARP arrives at any queue, and is handed over to each of the others.
        expect(handed_over < MIN_BLOCKS // 2, f"frames that {node} handed over: {handed_over}")
        print(f"  {node}: {[core['rx_datagrams'] for core in cores]} datagrams for its poll cores, "
              f"{handed_over} frames handed over", flush=True)  # fmt: skip


def run_suite(build, model, environment, tests):
    command = [build / "tests/conformance/conformance_pci", *tests]
    done = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=SUITE_SECONDS)  # fmt: skip
    (OUT / f"{model}-suite.log").write_text(done.stdout)
    expect(done.returncode == 0, f"exit code {done.returncode}:\n{done.stdout[-4000:]}")
    print("  " + done.stdout.strip().splitlines()[-1], flush=True)
    return done.stdout


def suite(build, model):
    left, right = nics.addresses(model)
    crosses = {"GP_PCI_CROSSES_PAGES": "1"} if model in nics.CROSS_PAGES else {}
    run_suite(build, model, {"GP_PCI_LEFT": left, "GP_PCI_RIGHT": right, **crosses}, [])


def queues(build, model):
    first, second = nics.addresses(nics.BESIDE_QUEUES)
    left, right = nics.addresses(model)
    said = run_suite(build, model, {
        "GP_PCI_LEFT": first, "GP_PCI_RIGHT": second, "GP_PCI_QUEUES_LEFT": left,
        "GP_PCI_QUEUES_RIGHT": right, "GP_PCI_QUEUES_STEER": "1"}, ["queues:*"])  # fmt: skip
    expect("skipped" not in said, f"the NICs have several queues:\n{said[-4000:]}")


def jumbo(build, model):
    sums(build, model, JUMBO_MTU)


def sums(build, model, mtu=MTU):
    names = ["rank-0", "rank-1"]
    with Hosts(build, model, mtu) as hosts:
        ranks = [
            hosts.start(name, [build / "tests/smoke/rank_client", "--socket", WORK / f"{node}.sock",
                               "--rank", str(r), "--world", "2", "--rounds", str(ROUNDS),
                               "--elements", str(ELEMENTS), "--round-timeout-ms", "60000"])
            for r, (name, node) in enumerate(zip(names, "ab"))
        ]  # fmt: skip
        hosts.finish(names, ranks, RANKS_SECONDS)
        bits = {hosts.log(name).split("bits ")[-1].strip() for name in names}
        expect(len(bits) == 1, f"the ranks hold the same bits: {bits}")
        hosts.check_counters()


def torch(build, model):
    names = ["torch-0", "torch-1"]
    with Hosts(build, model) as hosts:
        ranks = []
        for r, (name, node) in enumerate(zip(names, "ab")):
            command = [build / "control/cli/gradplane", "run", "--require",
                       "--socket", WORK / f"{node}.sock", "--", PYTHON, HERE / "train.py"]
            ranks.append(hosts.start(name, command, {
                "RANK": str(r), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29400", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                "USE_LIBUV": "0",
                "GRADPLANE_REPORT": str(OUT / f"{model}-report-{r}.json")}))  # fmt: skip
        hosts.finish(names, ranks, TORCH_SECONDS)
        digests = {hosts.log(name).split("parameters ")[-1].split()[0] for name in names}
        expect(len(digests) == 1, f"the replicas hold the same bits: {digests}")
        for r in range(2):
            report = json.loads((OUT / f"{model}-report-{r}.json").read_text())
            expect(report["carried_buckets"] > 0 and report["fallen_back_ops"] == 0,
                   f"every bucket of rank {r} was carried: {report}")  # fmt: skip
        hosts.check_counters()


TASKS = {"suite": suite, "queues": queues, "sums": sums, "jumbo": jumbo, "torch": torch}


def main():
    build = pathlib.Path(sys.argv[1])
    tasks = [word.split(":") for word in sys.argv[2:]]
    for model in nics.models_of(sys.argv[2:]):
        nics.bind(model)
    failed = 0
    for kind, model in tasks:
        begun = time.monotonic()
        try:
            TASKS[kind](build, model)
            verdict = "ok  "
        except (Failure, subprocess.TimeoutExpired) as problem:
            failed += 1
            verdict = "FAIL"
            print(problem)
        print(f"{verdict} {kind} {model}: {time.monotonic() - begun:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
