#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Hosts as network namespaces, joined by links with a rate, a delay, losses and more.

Unlike netlab's, these links are emulated by a process, `tests/lab/lab_switch`, which kernel TCP and
DPDK ports both cross:

    host: mg0 ------------------ m-HOST [bridge mg]     unshaped, 10.99.0.i/24
    host: dp0 (tbf) ------------ p-HOST [lab_switch]    as described; kernel 10.77.0.i/16,
                                                        gradplaned 10.77.1.i/16

The token bucket on dp0 has the rate of the host's uplink and counts the same bytes. So TCP sees its
own line rate as on a NIC. A DPDK port bypasses the bucket and sends to the switch's own uplink. As
both have one rate, packets that have passed the bucket queue in the switch for a burst at most.

By hand: `emulated_lab.py NAME NETWORK.yaml` makes a lab, answers requests from its input, one a
line, and removes the lab at the end of the input.
"""

import dataclasses
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading

import netlab
from netlab import LabError, in_namespace, ip_batch, run_command

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 20
ANSWER_SECONDS = 10
MAX_ANSWER_BYTES = 1 << 20
# Bytes that Ethernet adds to a frame, as in tests/lab/link.h.
FRAME_OVERHEAD_BYTES = 24
# How late a scheduled change may reach a host's own queue.
FOLLOW_SECONDS = 0.1


@dataclasses.dataclass(frozen=True)
class EmulatedHost(netlab.Host):
    @property
    def kernel_address(self):
        return f"10.77.0.{self.index}"

    @property
    def dataplane_address(self):
        return f"10.77.1.{self.index}"


class EmulatedLab(netlab.Lab):
    """Makes and removes one lab. `network` is a dict, as docs/testing.md describes it."""

    def __init__(self, run, network, tcp="cubic", owner=None):
        names = [host if isinstance(host, str) else host["name"] for host in network["hosts"]]
        super().__init__(run, names, kernel_address=True, tcp=tcp, owner=owner)
        self.hosts = {
            name: EmulatedHost(host.name, host.index, host.namespace)
            for name, host in self.hosts.items()
        }
        self._network = network
        self._process = None
        self._socket = None
        self.switch_socket = netlab.STATE_DIR / f"{run}.sock"
        self._asking = threading.Lock()
        # Held from the switch's answer about a link until the queue of its host is set.
        self._shaping = threading.Lock()
        self._shaped = {}  # host: the settings of the uplink that its dp0 has now
        self._going_down = threading.Event()
        self._follower = None

    def __exit__(self, *_):
        self.down()

    def up(self):
        try:
            super().up()
            self._start_switch()
            for name, link in self.stats()["links"].items():
                if name in self.hosts:
                    self._shape(name, link["up"]["settings"])
        except BaseException:
            self.down()
            raise

    def down(self):
        self._going_down.set()
        if self._follower is not None:
            self._follower.join()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        netlab.down(self.run)
        if self._process is not None:
            self._process.wait(START_SECONDS)
            self._process.stdout.close()
            self._process = None
        self.switch_socket.unlink(missing_ok=True)

    def stats(self):
        """The counters of every link and of the switch, and the present settings of the links."""
        return self.ask({"do": "stats"})

    def reset(self):
        """Sets all counters and the largest queue lengths to zero."""
        self.ask({"do": "reset"})

    def set(self, link, direction, settings):
        """Changes a link for future frames. Returns its settings. Keys are as in the description.
        """
        request = {"do": "set", "link": link, "direction": direction, "settings": settings}
        return self.ask(request)["link"]

    def start_schedule(self):
        """Starts the schedule of the description now. Hosts' own queues follow within
        FOLLOW_SECONDS."""
        self.ask({"do": "start_schedule"})

    def _start_follower(self):
        if self._follower is None:
            self._follower = threading.Thread(target=self._follow, daemon=True)
            self._follower.start()

    def _follow(self):
        while not self._going_down.wait(FOLLOW_SECONDS):
            try:
                with self._shaping:
                    for name, link in self.stats()["links"].items():
                        if name in self.hosts and link["up"]["settings"] != self._shaped.get(name):
                            self._shape(name, link["up"]["settings"])
            except LabError as error:
                print(f"emulated_lab: {error}", file=sys.stderr)
                return

    def switch_cpu_seconds(self):
        """CPU seconds of the switch since it began, user and system."""
        return self.stats()["switch"]["cpu_seconds"]

    def ask(self, request):
        """Sends a request of tests/lab/requests.h. Returns the answer, or raises a LabError. Hosts'
        own queues change with their links."""
        if not isinstance(request, dict) or request.get("do") != "set":
            answer = self._exchange(request)
            if request["do"] == "start_schedule":
                self._start_follower()
            return answer
        with self._shaping:
            answer = self._exchange(request)
            if request["link"] in self.hosts:
                self._shape(request["link"], answer["link"]["up"]["settings"])
        return answer

    def _exchange(self, request):
        with self._asking:
            return exchange(self._socket, self.run, request)

    def _make_switch(self):
        lines = ["link set lo up", "link add mg type bridge stp_state 0 forward_delay 0"]
        ip_batch(self.switch, lines + ["link set mg up"])

    def _lose_frames(self):
        """Does nothing, because the switch loses frames."""

    def _configure_kernel(self, namespace):
        super()._configure_kernel(namespace)
        # A connection must not learn from earlier ones. Otherwise measurements would depend on
        # their order.
        in_namespace(namespace, ["sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"])

    def _connect(self, host):
        name, mtu, namespace = host.name, netlab.MTU_BYTES, host.namespace
        ip_batch(self.switch, [
            f"link add m-{name} type veth peer name mg0 netns {namespace}",
            f"link add p-{name} mtu {mtu} type veth peer name dp0 mtu {mtu} netns {namespace}",
            f"link set m-{name} master mg",
            f"link set m-{name} up",
            f"link set p-{name} up",
        ])  # fmt: skip
        inside = [
            "link set lo up",
            f"link set mg0 address {host.mac(1)} up",
            f"address add {host.management_address}/24 dev mg0",
            f"link set dp0 address {host.mac(2)} up",
            f"address add {host.kernel_address}/16 dev dp0",
        ]
        # Permanent entries, because ARP packets could be lost, and connections would wait. Other
        # entries are limited to 1024 in all namespaces together, which is 32 hosts.
        for other in self.hosts.values():
            if other.name != name:
                for address, mac, device in (
                    (other.kernel_address, other.mac(2), "dp0"),
                    (other.management_address, other.mac(1), "mg0"),
                ):
                    inside.append(
                        f"neighbour add {address} lladdr {mac} dev {device} nud permanent"
                    )
        ip_batch(namespace, inside)
        offloads = [word for offload in netlab.OFFLOADS for word in (offload, "off")]
        in_namespace(namespace, ["ethtool", "-K", "dp0", *offloads])
        in_namespace(self.switch, ["ethtool", "-K", f"p-{name}", *offloads])

    def _start_switch(self):
        build = pathlib.Path(os.environ.get("GRADPLANE_BUILD", ROOT / "build"))
        program = build / "tests/lab/lab_switch"
        if not os.access(program, os.X_OK):
            raise LabError(f"{program} is not built; run scripts/build")
        # The switch has priority over the hosts, because a wire does not wait for a CPU. It is not
        # bound to a CPU: with two CPUs, daemons that are bound to one could share it with the
        # switch while the other is idle.
        command = ["ip", "netns", "exec", self.switch, "chrt", "--rr", "1"]
        command += [program, "--network", "/dev/stdin"]
        command += ["--socket", self.switch_socket]
        for name in self.hosts:
            command += ["--port", f"{name}=p-{name}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with self._process.stdin as description:
            description.write(json.dumps(self._network, indent=1).encode())
        if not select.select([self._process.stdout], [], [], START_SECONDS)[0]:
            raise LabError(f"the switch of {self.run} did not start within {START_SECONDS} s")
        said = self._process.stdout.readline().decode()
        if said != "ready\n":
            said += self._process.stdout.read().decode()
            raise LabError(f"the switch of {self.run} did not start: {said.strip()}")
        self._socket = connect(self.run, self.switch_socket)

    def _shape(self, name, uplink):
        """Sets dp0's own queue, which stands for that of a NIC. A link without a rate has none."""
        self._shaped[name] = uplink
        namespace = self.hosts[name].namespace
        if not uplink["rate_bits_per_second"]:
            shown = run_command(["tc", "-n", namespace, "qdisc", "show", "dev", "dp0", "root"])
            if "tbf" in shown:
                run_command(["tc", "-n", namespace, "qdisc", "del", "dev", "dp0", "root"])
            return
        link = netlab.Link(uplink["rate_bits_per_second"], uplink["queue_bytes"])
        run_command(
            ["tc", "-n", namespace, "qdisc", "replace", "dev", "dp0", "root", "tbf"]
            + ["rate", f"{link.rate_bits}bit", "burst", str(link.burst_bytes())]
            + ["limit", str(link.queue_bytes), "overhead", str(FRAME_OVERHEAD_BYTES)]
        )


def connect(run, switch_socket):
    """Connects to the switch of a lab."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.settimeout(ANSWER_SECONDS)
    try:
        made.connect(str(switch_socket))
    except OSError as error:
        made.close()
        raise LabError(f"the switch of {run} is not there: {switch_socket}: {error}") from error
    return made


def exchange(connection, run, request):
    """Sends a request and returns the answer."""
    try:
        connection.send(json.dumps(request).encode())
        answer = json.loads(connection.recv(MAX_ANSWER_BYTES))
    except (OSError, ValueError) as error:
        raise LabError(f"the switch of {run} gives no answer: {error}") from error
    if not answer["ok"]:
        raise LabError(f"the switch of {run} refused {request}: {answer['error']}")
    return answer


def stats(run, switch_socket):
    """The same as EmulatedLab.stats(), for a lab of another process."""
    with connect(run, switch_socket) as connection:
        answer = exchange(connection, run, {"do": "stats"})
    return {what: answer[what] for what in ("links", "switch")}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    import yaml  # only here, so that labs that Python programs make need no package

    network = yaml.safe_load(pathlib.Path(sys.argv[2]).read_text())
    with EmulatedLab(sys.argv[1], network) as lab:
        for host in lab.hosts.values():
            print(host.namespace, host.kernel_address, host.dataplane_address, flush=True)
        for line in sys.stdin:
            try:
                print(json.dumps(lab.ask(json.loads(line)), indent=1), flush=True)
            except (LabError, ValueError) as error:
                print(f"emulated_lab: {error}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except (LabError, OSError, ValueError) as failure:
        sys.exit(f"emulated_lab: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
