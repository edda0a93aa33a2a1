# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Forks ranks from a process that has imported torch, because most ranks run for less time
than the import takes. Each message on the socket starts a rank. The answer is its process id."""

import json
import os
import runpy
import socket
import sys

import torch  # noqa: F401
import torch.distributed  # noqa: F401
import torch.nn.parallel  # noqa: F401
import torch.utils.data  # noqa: F401

MOST_BYTES = 1 << 17


def serve(server):
    """Returns in each child, with the rank's request. Ends when the other side of the socket is
    closed everywhere."""
    while True:
        message, fds, _, _ = socket.recv_fds(server, MOST_BYTES, 2)
        if not message:
            sys.exit(0)
        middle = os.fork()
        if middle == 0:
            # The rank's parent ends. The test becomes its parent, because it is a subreaper.
            if os.fork() != 0:
                os._exit(0)
            server.send(str(os.getpid()).encode())
            return json.loads(message), fds
        os.waitpid(middle, 0)
        for fd in fds:
            os.close(fd)


def main():
    server = socket.socket(fileno=int(sys.argv[1]))
    rank, fds = serve(server)
    server.close()
    for fd, number in zip(fds, (1, 2)):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(rank["environment"])
    sys.argv = rank["command"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
