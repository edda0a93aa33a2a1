# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A Slurm cluster of one node for a test: munged, slurmctld and slurmd, in their own folder."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time

from harness import expect, free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
START_SECONDS = 30
# Every host must be able to resolve the node's name, because rank 0 listens there.
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES State=UP
"""


def is_here():
    return os.geteuid() == 0 and all(shutil.which(name) for name in PROGRAMS)


class Slurm:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="gp-slurm-")
        os.chmod(self.folder, 0o755)  # all users must reach munged's socket
        for name in ("state", "spool"):
            os.mkdir(os.path.join(self.folder, name))
        config = self._write("slurm.conf", CONFIG.format(
            host=socket.gethostname().split(".")[0], folder=self.folder,
            ports=(free_port(), free_port())).encode(), 0o644)
        key = self._write("munge.key", secrets.token_bytes(1024), 0o400)
        self.env = {"SLURM_CONF": config}
        self._processes = []
        self._start("munged", "--foreground", "--force", "--key-file", key,
                    *(word for name in ("socket", "pid-file", "log-file", "seed-file")
                      for word in (f"--{name}", f"{self.folder}/munge.{name}")))  # fmt: skip
        self._start("slurmctld", "-D", "-f", config)
        self._start("slurmd", "-D", "-f", config, "-N", "localhost")
        self._wait_for_node()
        return self

    def __exit__(self, *_):
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, name, content, mode):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content)
        os.chmod(path, mode)
        return path

    def _start(self, name, *arguments):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self._processes.append(subprocess.Popen([shutil.which(name), *arguments], stdout=log,
                                                    stderr=log, env={**os.environ, **self.env}))

    def _wait_for_node(self):
        deadline = time.monotonic() + START_SECONDS
        state = ""
        while state != "idle" and time.monotonic() < deadline:
            time.sleep(0.1)
            state = subprocess.run(["sinfo", "--noheader", "--format", "%t"], text=True,
                                   env={**os.environ, **self.env}, capture_output=True,
                                   check=False).stdout.strip()  # fmt: skip
        if state == "idle":
            return
        with open(os.path.join(self.folder, "log"), encoding="utf8", errors="replace") as f:
            said = f.read()
        self.__exit__()
        expect(False, f"Slurm's node is {state or 'not there'} after {START_SECONDS} s: {said}")
