# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Hosts as network namespaces, joined by shaped and lossy links.

A lab is one switch namespace `gp-RUN-net` and one namespace `gp-RUN-HOST` per host:

    host: mg0 ------------------------ m-HOST [bridge mg]               unshaped, 10.99.0.i/24
    host: dp0 -- d-HOST [bridge e-HOST] u-HOST -- t-HOST [bridge dp]    shaped, 10.77.0.i/24

The uplink is shaped where it leaves u-HOST and the downlink where it leaves d-HOST, each by a token
bucket with a drop-tail queue: inside the switch, because a DPDK port bypasses the host's own queue.
dp0 has a token bucket, too, so that the host's TCP sees its own line rate as on a NIC.
Frames are lost at random in bridge e-HOST, in both directions, whatever their sender and receiver.
Rates count Ethernet frames without preamble, gap and checksum. A lab chooses how bridge dp treats
frames to groups.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import lab_multicast

STATE_DIR = pathlib.Path("/run/gradplane-netlab")
MAX_HOSTS = 64
COMMAND_SECONDS = 20
LOSS_SCALE = 1_000_000
MTU_BYTES = 1500
OFFLOADS = ("tso", "gso", "gro", "sg", "tx", "rx")


class LabError(Exception):
    """The message says what has failed and what to do."""


def parse_rate(text):
    """Bits per second from `200mbit`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}': a number with kbit, mbit or gbit")
    return round(float(match[1]) * {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}[match[2]])


def parse_size(text):
    """Bytes from `256k`."""
    match = re.fullmatch(r"(\d+)([km]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}': bytes, or a number with k or m (1024)")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2]]


def parse_share(text):
    """A probability from `1%`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not match or not 0 <= float(match[1]) < 100:
        raise argparse.ArgumentTypeError(f"'{text}': a percentage such as 1%, below 100%")
    return float(match[1]) / 100


@dataclasses.dataclass(frozen=True)
class Link:
    """The settings of a host's dataplane link, in each direction."""

    rate_bits: int = 0  # per second; 0: unshaped
    queue_bytes: int = 256 * 1024
    loss: float = 0.0  # probability per frame

    def __post_init__(self):
        if not 0 <= self.loss < 1:
            raise LabError(f"loss {self.loss}: a probability from 0 to below 1")

    def burst_bytes(self):
        """Half a millisecond of the rate, and never less than two frames."""
        return max(2 * (MTU_BYTES + 18), self.rate_bits // 8 // 2000)


@dataclasses.dataclass(frozen=True)
class Host:
    name: str
    index: int  # from 1
    namespace: str

    @property
    def management_address(self):
        return f"10.99.0.{self.index}"

    @property
    def dataplane_address(self):
        return f"10.77.0.{self.index}"

    def mac(self, kind):
        return f"02:67:70:{kind:02x}:00:{self.index:02x}"


class Lab:
    """Makes and removes one lab. Its functions block for a bounded time."""

    def __init__(
        self, run, host_names, link=Link(), *,
        links=None, kernel_address=False, tcp=None, owner=None, multicast="flood", igmp_version=3,
    ):  # fmt: skip
        """`links` has the links of hosts for which `link` does not hold, by name."""
        if multicast not in lab_multicast.KINDS or igmp_version not in lab_multicast.IGMP_VERSIONS:
            raise LabError(f"multicast '{multicast}' with IGMP version {igmp_version}: see --help")
        if not re.fullmatch(r"[a-z0-9]{1,16}", run):
            raise LabError(f"run name '{run}': 1 to 16 lower-case letters and digits")
        if not 1 <= len(host_names) <= MAX_HOSTS or len(set(host_names)) != len(host_names):
            raise LabError(f"1 to {MAX_HOSTS} different host names are needed")
        for name in host_names:
            if not re.fullmatch(r"[a-z0-9]{1,11}", name) or name == "net":
                raise LabError(f"host '{name}': 1 to 11 lower-case letters and digits, not net")
        self.run = run
        self._link = link
        self._links = dict(links or {})
        self.kernel_address = kernel_address
        self.tcp = tcp
        self.multicast = multicast
        self.igmp_version = igmp_version
        self.owner = owner or os.getpid()
        self.switch_socket = None  # the socket for requests, if the switch is a process
        self.switch = f"gp-{run}-net"
        self.hosts = {
            name: Host(name, index, f"gp-{run}-{name}")
            for index, name in enumerate(host_names, start=1)
        }

    def link_of(self, host_name):
        return self._links.get(host_name, self._link)

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        down(self.run)

    def up(self):
        """Makes the lab. A lab of the same name is removed first. Nothing is left if it fails."""
        if os.geteuid() != 0:
            raise LabError("network namespaces need root")
        down(self.run)
        try:
            self._save_state()
            with congestion_control_allowed(self.tcp):
                for namespace in self._namespaces():
                    run_command(["ip", "netns", "add", namespace])
                    self._configure_kernel(namespace)
            self._make_switch()
            for host in self.hosts.values():
                self._connect(host)
            self._lose_frames()
        except BaseException:
            down(self.run)
            raise

    def set_tcp(self, congestion_control):
        """Sets the congestion control of new connections."""
        with congestion_control_allowed(congestion_control):
            for host in self.hosts.values():
                setting = f"net.ipv4.tcp_congestion_control={congestion_control}"
                in_namespace(host.namespace, ["sysctl", "-qw", setting])

    def groups(self):
        """{address of a group: hosts in it}, as far as a switch that snoops knows."""
        listing = run_command(["bridge", "-n", self.switch, "-j", "mdb", "show"])
        return lab_multicast.members(json.loads(listing), "dp")

    def _namespaces(self):
        return [self.switch] + [host.namespace for host in self.hosts.values()]

    def _save_state(self):
        STATE_DIR.mkdir(parents=True, exist_ok=True)
        state = {
            "run": self.run,
            "owner_pid": self.owner,
            "owner_start": process_start(self.owner),
            "namespaces": self._namespaces(),
            "switch_socket": str(self.switch_socket) if self.switch_socket else None,
        }
        state_path(self.run).write_text(json.dumps(state))

    def _configure_kernel(self, namespace):
        settings = ["net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"]
        if self.tcp:
            settings.append(f"net.ipv4.tcp_congestion_control={self.tcp}")
        for setting in settings:
            path, value = setting.split("=")
            exists = f"/proc/sys/{path.replace('.', '/')}"
            if os.path.exists(exists):
                in_namespace(namespace, ["sysctl", "-qw", f"{path}={value}"])

    def _make_switch(self):
        bridges = ["mg", "dp"] + [f"e-{name}" for name in self.hosts]
        lines = ["link set lo up"]
        for bridge in bridges:
            kind = self.multicast if bridge == "dp" else "flood"
            multicast = lab_multicast.bridge_options(kind, self.igmp_version)
            lines.append(f"link add {bridge} type bridge stp_state 0 forward_delay 0 {multicast}")
            lines.append(f"link set {bridge} mtu {MTU_BYTES} up")
        ip_batch(self.switch, lines)

    def _connect(self, host):
        name, mtu, link = host.name, MTU_BYTES, self.link_of(host.name)
        switch = [
            f"link add m-{name} type veth peer name mg0 netns {host.namespace}",
            f"link add d-{name} mtu {mtu} type veth peer name dp0 mtu {mtu} netns {host.namespace}",
            f"link add u-{name} mtu {mtu} type veth peer name t-{name} mtu {mtu}",
            f"link set m-{name} master mg",
            f"link set d-{name} master e-{name}",
            f"link set u-{name} master e-{name}",
            f"link set t-{name} master dp",
        ]
        if self.multicast == "drop":
            switch.append(f"link set t-{name} type bridge_slave mcast_flood off")
        switch += [f"link set {port}-{name} up" for port in "mdut"]
        ip_batch(self.switch, switch)
        inside = [
            "link set lo up",
            f"link set mg0 address {host.mac(1)} up",
            f"address add {host.management_address}/24 dev mg0",
            f"link set dp0 address {host.mac(2)} up",
        ]
        if self.kernel_address:
            inside.append(f"address add {host.dataplane_address}/24 dev dp0")
        ip_batch(host.namespace, inside)
        for namespace, device in ((host.namespace, "dp0"),) + tuple(
            (self.switch, f"{port}-{name}") for port in "dut"
        ):
            offloads = [word for offload in OFFLOADS for word in (offload, "off")]
            in_namespace(namespace, ["ethtool", "-K", device, *offloads])
        if link.rate_bits:
            self._shape_link(host, link)

    def _shape_link(self, host, link):
        shape(host.namespace, "dp0", link)
        for port in "du":
            shape(self.switch, f"{port}-{host.name}", link)

    def set_link(self, host_name, link):
        """Sets the rate and the queue of a host's link."""
        self._links[host_name] = link
        self._shape_link(self.hosts[host_name], link)

    def _lose_frames(self):
        lines = ["table bridge netlab {", "chain forward {"]
        lines.append("type filter hook forward priority 0; policy accept;")
        for name in self.hosts:
            share = round(self.link_of(name).loss * LOSS_SCALE)
            for direction, test in (("up", "iifname"), ("down", "oifname")):
                lines.append(f'{test} "d-{name}" counter comment "{direction} {name} seen"')
                if share:
                    lines.append(
                        f'{test} "d-{name}" numgen random mod {LOSS_SCALE} < {share} '
                        f'counter drop comment "{direction} {name} lost"'
                    )
        in_namespace(self.switch, ["nft", "-f", "-"], stdin="\n".join(lines + ["}", "}", ""]))


@contextlib.contextmanager
def congestion_control_allowed(name):
    """Adds a congestion control for a while to the machine's list, which limits namespaces."""
    path = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    before = path.read_text() if path.exists() else None
    if not name or before is None or name in before.split():
        yield
        return
    try:
        path.write_text(f"{before.strip()} {name}")
    except OSError as error:
        raise LabError(f"TCP congestion control {name}: this kernel has it not") from error
    try:
        yield
    finally:
        path.write_text(before)


def shape(namespace, device, link):
    run_command(
        ["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf"]
        + ["rate", f"{link.rate_bits}bit", "burst", str(link.burst_bytes())]
        + ["limit", str(link.queue_bytes)]
    )


def in_namespace(namespace, command, stdin=None):
    return run_command(["ip", "netns", "exec", namespace, *command], stdin)


def ip_batch(namespace, lines):
    run_command(["ip", "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")


def run_command(command, stdin=None):
    """Runs a short command and returns its output. Raises LabError with its last lines."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False,
            timeout=COMMAND_SECONDS,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise LabError(f"{command[0]} is not installed; run scripts/setup") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(command)}: no end within {COMMAND_SECONDS} s") from error
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def state_path(run):
    return STATE_DIR / f"{run}.json"


def load_state(run):
    """The state of a lab, as up() has written it."""
    try:
        return json.loads(state_path(run).read_text())
    except (OSError, ValueError) as error:
        raise LabError(f"there is no lab {run}; see `scripts/netlab list`") from error


def process_start(pid):
    """When a process started, in clock ticks since boot; None if it does not exist."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return None


def labs():
    """The state of every lab that up() began and down() has not removed."""
    found = []
    for path in sorted(STATE_DIR.glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            found.append(json.loads(path.read_text()))
    return found


def is_stale(state):
    return process_start(state["owner_pid"]) != state["owner_start"]


def down(run):
    """Removes a lab and ends the processes in it. Does nothing if there is no such lab."""
    try:
        state = json.loads(state_path(run).read_text())
    except (OSError, ValueError):
        return
    listed = run_command(["ip", "netns", "list"]).splitlines()
    present = {line.split()[0] for line in listed if line}
    namespaces = [name for name in state["namespaces"] if name in present]
    end_processes(namespaces)
    for namespace in namespaces:
        run_command(["ip", "netns", "del", namespace])
    state_path(run).unlink(missing_ok=True)


def end_processes(namespaces, patience_s=3):
    """Ends the processes in the namespaces, first by SIGTERM, and after `patience_s` by SIGKILL."""

    def inside():
        pids = [run_command(["ip", "netns", "pids", name]).split() for name in namespaces]
        return {int(pid) for some in pids for pid in some} - {os.getpid()}

    for sent in (signal.SIGTERM, signal.SIGKILL):
        pids = inside()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
        deadline = time.monotonic() + patience_s
        while pids and time.monotonic() < deadline:
            time.sleep(0.05)
            pids = inside()


def stats(run):
    """For each host and direction: frames seen, lost at random, and dropped by a full queue."""
    switch = f"gp-{run}-net"
    result = {}
    listing = json.loads(in_namespace(switch, ["nft", "-j", "list", "table", "bridge", "netlab"]))
    for entry in listing["nftables"]:
        rule = entry.get("rule")
        if not rule or "comment" not in rule:
            continue
        direction, host, what = rule["comment"].split()
        packets = next(part["counter"]["packets"] for part in rule["expr"] if "counter" in part)
        result.setdefault(host, {}).setdefault(direction, {"lost": 0})[what] = packets
    qdiscs = json.loads(run_command(["tc", "-n", switch, "-s", "-j", "qdisc", "show"]))
    for qdisc in qdiscs:
        port, _, host = qdisc.get("dev", "").partition("-")
        direction = {"u": "up", "d": "down"}.get(port)
        if qdisc["kind"] == "tbf" and direction and host in result:
            result[host][direction]["queue_dropped"] = qdisc["drops"]
    return result
