#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""A second daemon for the same end of a memif does not start, and does not harm the first."""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile

from cluster import CLI, DAEMON, expect, run, terminate, wait_until

SECONDS = 30
# A race once ended the first daemon. One attempt might not hit it.
ATTEMPTS = 10
CONFIG = """node: {{name: local}}
control: {{socket: {folder}/{name}.sock}}
port: {{kind: memif, huge_pages: never, memif: {{socket: {folder}/m, role: {role}, id: {id}}}}}
cluster: {{nodes: [{{name: local, address: 10.77.0.1/24, aggregate: true}}]}}
"""


class Host:
    """Daemons whose memifs have their sockets in one folder."""

    def __enter__(self):
        self._kept = tempfile.TemporaryDirectory(prefix="gradplane-smoke-")
        self.folder = pathlib.Path(self._kept.name)
        self._daemons = []
        return self

    def __exit__(self, *_):
        for daemon in self._daemons:
            if daemon.poll() is None:
                daemon.kill()
            daemon.wait()
        self._kept.cleanup()

    def start(self, name, role, memif_id=0):
        config = self.folder / f"{name}.yaml"
        config.write_text(
            CONFIG.format(folder=self.folder, name=name, role=role, id=memif_id)
        )
        with open(self.folder / f"{name}.log", "wb") as log:
            daemon = subprocess.Popen(
                [DAEMON, "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._daemons.append(daemon)
        return daemon

    def started(self, name, role, memif_id=0):
        daemon = self.start(name, role, memif_id)
        wait_until(lambda: self.answers(daemon, name), f"the daemon {name} to answer")
        return daemon

    def answers(self, daemon, name):
        expect(daemon.poll() is None, f"daemon {name} runs:\n{self.log(name)}")
        answer = subprocess.run(
            [CLI, "status", "--json", "--socket", self.folder / f"{name}.sock"],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return answer.returncode == 0 and json.loads(answer.stdout)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")


def refused_beside(role, first_id=0, second_id=0):
    """Starts a second daemon beside a first one. Returns the second one's error."""
    with Host() as host:
        first = host.started("first", role, first_id)
        for _ in range(ATTEMPTS):
            second = host.start("second", role, second_id)
            code = second.wait(timeout=SECONDS)
            expect(code == 1, f"the second does not start: exit code {code}\n{host.log('second')}")
            expect(host.answers(first, "first"), "the first daemon serves on")
        return host.log("second")


def a_second_server_is_refused_and_the_first_lives():
    said = refused_beside("server", second_id=1)
    expect("/m.lock" in said and "is the server of" in said, said)


def a_second_client_of_one_id_is_refused():
    said = refused_beside("client")
    expect("id 0" in said and "is the client of" in said, said)


def clients_of_two_ids_live_side_by_side():
    with Host() as host:
        first = host.started("first", "client", 1)
        second = host.started("second", "client", 2)
        expect(host.answers(first, "first") and host.answers(second, "second"), "both live")


def a_server_that_is_no_daemon_of_ours_is_not_disturbed():
    with Host() as host, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(str(host.folder / "m"))
        other.listen()
        code = host.start("first", "server").wait(timeout=SECONDS)
        said = host.log("first")
        expect(code == 1 and "somebody else listens" in said, said)
        other.setblocking(False)
        try:
            other.accept()
        except BlockingIOError:
            return
        expect(False, "nobody has connected to it")


def a_socket_that_was_left_behind_is_replaced():
    with Host() as host:
        first = host.started("first", "server")
        first.kill()
        first.wait()  # the process has its lock until it has ended
        expect((host.folder / "m").is_socket(), "the socket is left behind")
        again = host.started("second", "server")
        expect(terminate(again) == 0, "it ends in order")


if __name__ == "__main__":
    sys.exit(run([
        a_second_server_is_refused_and_the_first_lives,
        a_second_client_of_one_id_is_refused,
        clients_of_two_ids_live_side_by_side,
        a_server_that_is_no_daemon_of_ours_is_not_disturbed,
        a_socket_that_was_left_behind_is_replaced,
    ]))  # fmt: skip
