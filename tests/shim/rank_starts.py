# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Starts processes for ranks: new ones, or children of a rank_server.py, which start
sooner."""

import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess

# Tests of a PyTorch that is not Debian's set another interpreter.
PYTHON = os.environ.get("GP_TEST_PYTHON", "/usr/bin/python3")
HERE = os.path.dirname(os.path.abspath(__file__))
PR_SET_CHILD_SUBREAPER = 36
# The shim and its fake client read these variables when a group is made, or later. A rank with
# other variables of gradplane needs a new process, because they may be read when torch is loaded.
READ_LATE = {"GRADPLANE_" + name for name in ("HEED_REDUCE_OP", "REPORT", "REQUIRE", "SOCKET")}


class Child:
    """A rank that rank_server.py has made a child of this process. Used as subprocess.Popen."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    def wait(self, timeout=None):
        if self.returncode is None:
            ended = os.pidfd_open(self.pid)
            try:
                if not select.select([ended], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout)
            finally:
                os.close(ended)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


@functools.cache
def server_of(preload, adapter_dir):
    """The socket of a rank_server.py with this preload object and these adapters."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed: ranks would be orphans")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADPLANE_")}
    environment["OMP_NUM_THREADS"] = "1"
    if preload:
        environment["LD_PRELOAD"] = preload
    if adapter_dir:
        environment["GRADPLANE_ADAPTER_DIR"] = adapter_dir
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        subprocess.Popen([PYTHON, os.path.join(HERE, "rank_server.py"), str(its.fileno())],
                         env=environment, pass_fds=[its.fileno()])
    return own


def may_be_forked(environment, adapter_dir):
    """Whether only the arguments of server_of() matter in `environment` when torch is loaded."""
    if environment.get("GRADPLANE_ADAPTER_DIR", adapter_dir) != adapter_dir:
        return False
    late = READ_LATE | {"GRADPLANE_ADAPTER_DIR"}
    return "TORCH_DISTRIBUTED_DEBUG" not in environment and not any(
        name not in late and not name.startswith("GRADPLANE_TEST_")
        for name in environment if name.startswith("GRADPLANE_"))


def fork(command, environment, out, err):
    preload = environment.get("LD_PRELOAD")
    server = server_of(preload, preload and environment.get("GRADPLANE_ADAPTER_DIR"))
    rank = json.dumps({"command": command, "environment": environment}).encode()
    socket.send_fds(server, [rank], [out.fileno(), err.fileno()])
    pid = server.recv(64)
    if not pid:
        raise OSError("rank_server.py has ended and can start no ranks; its stderr says why")
    return Child(int(pid))
