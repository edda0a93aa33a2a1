#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""docs/two-hosts.md leads from a build to a training: its key, its file and its program, as they
stand on the page. Only the interfaces, the folder and the socket are those of the lab. Its daemons
also say when packets could be longer."""

import os
import re
import signal
import subprocess
import sys

import cluster
import torch_training
from cluster import CLI, ROOT, Cluster, expect, netlab
from torch_training import Program

PAGE = (ROOT / "docs/two-hosts.md").read_text()
RUN = f"gp{os.getpid() % 100000}"
HOSTS = ["a", "b"]


def block(language):
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    expect(len(found) == 1, f"the page has one block in {language}: {len(found)}")
    return found[0]


def commands(first_word):
    found = re.findall(rf"^    ({re.escape(first_word)}.*)$", PAGE, re.MULTILINE)
    expect(found, f"the page has a command that begins with {first_word}")
    return found


class PageCluster(Cluster):
    """The daemons with the file and the key of the page."""

    def config(self, name, **_):
        self.in_folder(commands("(umask")[0])
        text = block("yaml").replace("eth1", "dp0").replace("/etc/gradplane", str(self.folder))
        path = self.folder / f"{name}.yaml"
        path.write_text(f"control: {{socket: {self.socket(name)}}}\n{text}")
        return path

    def in_folder(self, command):
        if not (self.folder / "cluster.key").exists():
            here = command.replace("/etc/gradplane", str(self.folder))
            subprocess.run(["bash", "-ec", here], check=True, timeout=20)


def a_daemon_says_that_packets_could_be_longer():
    with netlab.Lab(RUN, HOSTS) as made:
        device = ["ip", "-n", made.hosts["a"].namespace, "link", "set", "dp0"]
        netlab.run_command([*device, "mtu", "3000"])
        with PageCluster(made) as c:
            note = "packets have at most 1500 bytes, but dp0 takes 3000"
            expect(note in c.log("a"), f"the daemon of a tells it: {c.log('a')}")
            expect("port.mtu" not in c.log("b"), f"that of b has nothing to tell: {c.log('b')}")


def the_page_leads_to_a_training():
    link = netlab.Link(rate_bits=400_000_000, loss=0.0)
    with netlab.Lab(RUN, HOSTS, link) as made, PageCluster(made) as c:
        for name in HOSTS:
            checked = subprocess.run(
                [CLI, "check-config", "--node", name, c.config(name)],
                capture_output=True, text=True, timeout=20, check=False,
            )  # fmt: skip
            expect(checked.returncode == 0, f"the file is right: {checked.stderr}")
            expect("warn" not in c.log(name), f"no daemon has anything to warn of: {c.log(name)}")
        train = c.folder / "train.py"
        train.write_text(block("python"))
        program = Program(c, HOSTS, [train], "--verify")
        program.finish()
        for rank in range(len(HOSTS)):
            verdict = "attached: 1 of 1 reporting processes went through gradplane"
            expect(verdict in program.errors(rank) and verdict in PAGE, program.errors(rank))
            report = program.report(rank)
            expect(report["carried"]["all_reduce"] >= 50, f"each step is carried: {report}")
            expect(report["fallen_back_ops"] == 0, f"nothing falls back: {report}")


def its_commands_are_those_of_the_program():
    subcommands = set(re.findall(r"`gradplane ([a-z-]+)", PAGE))
    for line in commands("gradplane ") + commands("RANK=0 gradplane "):
        subcommands.add(re.search(r"gradplane ([a-z-]+)", line)[1])
    expect({"check-config", "run", "status", "flows", "topology"} <= subcommands, str(subcommands))
    for name in subcommands:
        answer = subprocess.run([CLI, name, "--help"], capture_output=True, timeout=20, check=False)
        expect(answer.returncode == 0, f"gradplane {name} is a command")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torch_training.skip_unless_possible()
    sys.exit(
        cluster.run(
            [
                the_page_leads_to_a_training,
                a_daemon_says_that_packets_could_be_longer,
                its_commands_are_those_of_the_program,
            ]
        )
    )
