#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""`gradplane rounds --follow` at a daemon that closes more rounds than it keeps. The command prints
on stderr how many it has missed. The daemon is a stand-in."""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

from cluster import CLI, expect, run

SECONDS = 20
MAX_MESSAGE_BYTES = 65536
JOB = 0x3FA81C02
# The round numbers in each answer. Then the daemon ends.
ANSWERS = ([1, 2], [3], [140, 141], [])
MISSED = 140 - 3 - 1


def page(numbers, after):
    rounds = [{"number": n, "round": n, "reason": "full"} for n in numbers]
    return {"type": "rounds", "version": 1, "node": "agg", "jobs": [JOB], "job": JOB, "epoch": 1,
            "buckets": 1, "gathers": True, "closed": 200, "rounds": rounds,
            "next_after": numbers[-1] if numbers else after}  # fmt: skip


def play(listener, asked):
    """Answers one request on each connection, as the command line sends them."""
    for numbers in ANSWERS:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(SECONDS)
            connection.recv(MAX_MESSAGE_BYTES)
            hello = {"type": "hello", "version": 1, "node": "agg", "software": "played"}
            connection.send(json.dumps(hello).encode())
            question = json.loads(connection.recv(MAX_MESSAGE_BYTES))
            asked.append(question["after"])
            connection.send(json.dumps(page(numbers, question["after"])).encode())
            connection.recv(MAX_MESSAGE_BYTES)  # waits until the client closes the connection
    listener.close()


def rounds_that_nobody_saw_are_told():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "s"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.settimeout(SECONDS)
        listener.bind(str(path))
        listener.listen()
        asked = []
        daemon = threading.Thread(target=play, args=(listener, asked))
        daemon.start()
        command = [CLI, "rounds", "--follow", "--job", f"{JOB:08x}", "--socket", path]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS
        )
        daemon.join()
    expect(asked == [0, 2, 3, 141], f"it asks for what came later: {asked}")
    told = [line for line in done.stderr.splitlines() if "missed" in line]
    expect(len(told) == 1, f"once: {done.stderr}")
    expect(f"job {JOB:08x}: {MISSED} rounds were missed" in told[0], f"how many: {told}")
    expect("missed" not in done.stdout and " 141 " in done.stdout, f"and goes on: {done.stdout}")


if __name__ == "__main__":
    sys.exit(run([rounds_that_nobody_saw_are_told]))
