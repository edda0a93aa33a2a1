# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Hosts whose links have different rates, behind a switch that treats groups as it is told.

The switch is Linux bridges, because these snoop IGMP. Each direction of a link is a token bucket
that counts all bytes of the wire, as gradplane does.
"""

import json

import emulated_lab
import netlab
from netlab import ip_batch, run_command

# Daemons of other contestants are stopped and do not answer the querier, so memberships last long.
# The bridge counts in hundredths of a second.
MEMBERSHIP_CENTISECONDS = 100 * 3600
DEVICES = {"up": "u", "down": "d"}  # which end of the switch carries a direction


def wire_bytes(counted):
    """The bytes on the wire of frames that a device has sent, with preamble, gap and checksum."""
    return counted["bytes"] + emulated_lab.FRAME_OVERHEAD_BYTES * counted["packets"]


def links_of(listing, drops, hosts):
    """The counters of the hosts' links, from `ip -s -j link` and the drops by device."""
    sent = {entry["ifname"]: entry["stats64"]["tx"] for entry in listing}
    return {
        host: {
            way: {
                "sent_wire_bytes": wire_bytes(sent[f"{device}-{host}"]),
                "queue_drops": drops.get(f"{device}-{host}", 0),
                # A token bucket counts neither.
                "deepest_queue_bytes": 0,
                "last_data_arrival_ns": 0,
            }
            for way, device in DEVICES.items()
        }
        for host in hosts
    }


def since(now, before):
    """A tree of numbers with the differences `now` - `before`."""
    if isinstance(now, dict):
        return {key: since(value, before[key]) for key, value in now.items()}
    return now - before


class MulticastLab(netlab.Lab):
    """A lab with the interface of EmulatedLab that the harness uses. `rates` are in bits per
    second, by host. Both directions of a link have the same rate, because a daemon knows one rate
    of a node."""

    def __init__(self, run, rates, multicast):
        links = {name: netlab.Link(rate) for name, rate in rates.items()}
        super().__init__(run, list(rates), links=links, tcp="cubic", multicast=multicast)
        self.hosts = {
            name: emulated_lab.EmulatedHost(host.name, host.index, host.namespace)
            for name, host in self.hosts.items()
        }
        self._before = None

    def stats(self):
        now = self._counted()
        return {"links": since(now, self._before) if self._before else now, "switch": {}}

    def reset(self):
        self._before = self._counted()

    def _counted(self):
        listing = json.loads(run_command(["ip", "-n", self.switch, "-s", "-j", "link", "show"]))
        qdiscs = json.loads(
            run_command(["tc", "-n", self.switch, "-s", "-j", "qdisc", "show"])
        )
        drops = {q["dev"]: q["drops"] for q in qdiscs if q["kind"] == "tbf"}
        return links_of(listing, drops, self.hosts)

    def _make_switch(self):
        super()._make_switch()
        if self.multicast == "snoop":
            setting = f"type bridge mcast_membership_interval {MEMBERSHIP_CENTISECONDS}"
            ip_batch(self.switch, [f"link set dp {setting}"])

    def _connect(self, host):
        super()._connect(host)
        link = self.link_of(host.name)
        places = [(host.namespace, "dp0")]
        places += [(self.switch, f"{device}-{host.name}") for device in DEVICES.values()]
        for namespace, device in places:
            run_command(
                ["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf"]
                + ["rate", f"{link.rate_bits}bit", "burst", str(link.burst_bytes())]
                + ["limit", str(link.queue_bytes)]
                + ["overhead", str(emulated_lab.FRAME_OVERHEAD_BYTES)]
            )
        lines = [f"address add {host.kernel_address}/16 dev dp0"]
        lines += [
            f"neighbour add {other.kernel_address} lladdr {other.mac(2)} dev dp0 nud permanent"
            for other in self.hosts.values()
            if other.name != host.name
        ]
        ip_batch(host.namespace, lines)
