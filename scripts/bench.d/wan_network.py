# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""NetStorm's network of nine sites, and one of three sites with several hosts each: as a
description for the lab, as YAML for gradplaned, and as numbers for bounds. Pure.

Sites and links are those of NetStorm's evaluation. Each direction of each link has a rate that is
drawn uniformly from 20 to 155 Mbit/s. Rates and volumes are scaled down, because two cores cannot
carry them: RATE_SCALE scales the rates and the queues, VOLUME_SCALE most volumes. A time is the one
at full size, multiplied by the scale of the volume and divided by that of the rates.

Rates are {(from, to): bit/s}, so they say which sites and links there are.
"""

import dataclasses
import functools
import random
from fractions import Fraction

import bounds

SITES = 9
LINKS = ((1, 2), (1, 3), (2, 3), (2, 5), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7), (6, 8), (6, 9),
         (7, 8), (8, 9))  # fmt: skip
RATE_MBIT = (20, 155)
RTT_MS = (10, 150)  # of a link, with `delays`
LOSS_PERCENT = (0.1, 2.0)  # of each direction of a link, with `delays`
SEED = 1
RATE_SCALE = Fraction(1, 4)
VOLUME_SCALE = Fraction(1, 16)
# The rate of a host's access, which is more than all links of a site together.
ACCESS_MBIT = 1000
ACCESS_RATE_BITS = int(ACCESS_MBIT * RATE_SCALE * 10**6)
QUEUE_BYTES = int(256 * 1024 * RATE_SCALE)
ELEMENT_BYTES = 4
LINK_PREFIX = "l"
HOST_LETTERS = "abc"


def site_name(site):
    return f"s{site}"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The links between the sites, and the number of hosts of each site."""

    links: tuple
    hosts_at_site: int = 1

    @property
    def sites(self):
        return sites_of(self.links)

    @property
    def hosts(self):
        return len(self.sites) * self.hosts_at_site

    def hosts_of(self, site):
        """The names of a site's hosts. A single host has the name of its site."""
        if self.hosts_at_site == 1:
            return [site_name(site)]
        return [site_name(site) + letter for letter in HOST_LETTERS[: self.hosts_at_site]]

    def site_of_host(self):
        """{host: site}, by their names, site by site."""
        return {host: site_name(site) for site in self.sites for host in self.hosts_of(site)}


def sites_of(links):
    return sorted({site for link in links for site in link})


def links_of(rates):
    return tuple(ends for ends in rates if ends[0] < ends[1])


NETSTORM = Layout(LINKS)
SEVERAL_HOSTS = Layout(((1, 2), (1, 3), (2, 3)), hosts_at_site=3)
NAMES = list(NETSTORM.site_of_host())


def draw(number, links=LINKS):
    """The scaled rates of draw `number`. They do not depend on earlier calls."""
    rng = random.Random(1000 * SEED + number)
    rates = {}
    for a, b in links:
        for ends in ((a, b), (b, a)):
            rates[ends] = int(rng.randint(*RATE_MBIT) * RATE_SCALE * 10**6)
    return rates


def draw_paths():
    """{(a, b): (round trip in ms, loss in percent)} of every link, for cases with `delays`."""
    rng = random.Random(500 + SEED)
    return {
        link: (round(rng.uniform(*RTT_MS), 1), round(rng.uniform(*LOSS_PERCENT), 2))
        for link in LINKS
    }


def volume_bytes(megabytes, scale=VOLUME_SCALE):
    """A volume at full size in 10^6 bytes, scaled to whole elements."""
    return int(megabytes * 10**6 * scale) // ELEMENT_BYTES * ELEMENT_BYTES


def link_name(a, b):
    return f"{LINK_PREFIX}{a}-{b}"


def directions(rates, paths, a, b):
    """The settings of a link from a to b and back, as the lab has them."""
    rtt_ms, loss = paths.get((a, b), (0, 0)) if paths else (0, 0)
    found = []
    for ends in ((a, b), (b, a)):
        rate = rates[ends]
        queue = max(QUEUE_BYTES, int(rate / 8 * rtt_ms / 1000))
        settings = {"rate": f"{rate} bit/s", "delay": f"{rtt_ms * 500:.0f} us",
                    "queue": f"{queue} B", "loss": f"{loss:g} %"}  # fmt: skip
        found.append(settings)
    return found


def description(rates, paths, layout=NETSTORM):
    """The lab: the hosts of each site, and the links between the sites."""
    access = {"rate": f"{ACCESS_RATE_BITS} bit/s", "delay": "50 us"}
    links = []
    for a, b in links_of(rates):
        forward, backward = directions(rates, paths, a, b)
        links.append({"name": link_name(a, b), "between": [site_name(a), site_name(b)],
                      "forward": forward, "backward": backward})  # fmt: skip
    hosts = [{"name": name, "site": site, "up": access, "down": access}
             for name, site in layout.site_of_host().items()]  # fmt: skip
    sites = [site_name(site) for site in layout.sites]
    return {"sites": sites, "hosts": hosts, "site_links": links, "seed": SEED}


def changes(rates, paths):
    """The changes that set the links of a lab to these rates: (link, direction, settings)."""
    for a, b in links_of(rates):
        for name, settings in zip(("forward", "backward"), directions(rates, paths, a, b)):
            yield link_name(a, b), name, {"rate": settings["rate"]}


def yaml_section(rates, paths, message_bytes):
    """The section `network` of gradplaned's file."""
    lines = ["network:", f"  bytes: {message_bytes} B", "  links:"]
    for a, b in links_of(rates):
        words = [f"from: {site_name(a)}", f"to: {site_name(b)}", f"rate: {rates[a, b]} bit/s",
                 f"rate_back: {rates[b, a]} bit/s"]  # fmt: skip
        if paths:
            rtt_ms, loss = paths[a, b]
            words += [f"rtt: {rtt_ms * 1000:.0f} us", f"loss: {loss:g} %"]
        lines.append("    - {" + ", ".join(words) + "}")
    return "\n".join(lines) + "\n"


@functools.cache
def routes(links=LINKS):
    """{(from, to): [sites on the way, both ends included]}, over the fewest links, as
    tests/lab/routes.cc finds them."""
    found = {}
    sites = sites_of(links)
    for to in sites:
        next_site, reached = {}, [to]
        for at in reached:
            for link in links:
                for start, end in (link, link[::-1]):
                    if end == at and start != to and start not in next_site:
                        next_site[start] = at
                        reached.append(start)
        for start in sites:
            way = [start]
            while way[-1] != to:
                way.append(next_site[way[-1]])
            found[start, to] = way
    return found


def seconds_over_routes(rates, transfers, message_bytes):
    """How long the busiest link takes if all transfers of {(from, to): share of the volume} go over
    their routes at the same time, and nothing else limits."""
    loads, ways = {}, routes(links_of(rates))
    for ends, share in transfers.items():
        way = ways[ends]
        for hop in zip(way, way[1:]):
            loads[hop] = loads.get(hop, 0) + share
    bits = 8 * bounds.wire_bytes(message_bytes)
    return max(load * bits / rates[hop] for hop, load in loads.items())


def star_seconds(rates, root, message_bytes):
    """How long a star takes, with one host at each site."""
    others = [site for site in sites_of(rates) if site != root]
    transfers = {ends: 1 for other in others for ends in ((other, root), (root, other))}
    return seconds_over_routes(rates, transfers, message_bytes)


def roots_by_time(rates):
    """The sites, beginning with the one whose star takes the least time. The order is the same with
    any number of hosts, if each site has equally many."""
    return sorted(sites_of(rates), key=lambda root: star_seconds(rates, root, 1 << 20))


def partitions(items):
    """All ways to split items into groups."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for index, group in enumerate(smaller):
            yield [*smaller[:index], [first, *group], *smaller[index + 1 :]]


@functools.cache
def groupings(links=LINKS):
    """(number of groups, links between groups) of each partition with more than one group."""
    found = []
    for groups in partitions(sites_of(links)):
        of = {site: number for number, group in enumerate(groups) for site in group}
        crossing = [link for link in links if of[link[0]] != of[link[1]]]
        if len(groups) > 1:
            found.append((len(groups), crossing))
    return found


def packing_bound_s(rates, message_bytes):
    """The packing bound: no trees whose edges are links take less, if each tree carries sums up and
    results down (Tutte, Nash-Williams). The slower direction of a link counts. The bound also holds
    for several hosts at a site: inside sites a tree may be of any form, but it has at least one
    edge less between the groups of a partition of the sites than there are groups."""
    links = links_of(rates)
    capacity = {(a, b): min(rates[a, b], rates[b, a]) for a, b in links}
    best = min(
        sum(capacity[link] for link in crossing) / (groups - 1)
        for groups, crossing in groupings(links)
    )
    return 8 * bounds.wire_bytes(message_bytes) / best


def bound_over_draws(draws, period_s, message_bytes):
    """The bound of a planner that always has the best trees for the present draw, while the network
    goes on to the next draw every `period_s`. The last draw stays."""
    done, seconds = 0.0, 0.0
    for number, rates in enumerate(draws):
        whole_s = packing_bound_s(rates, message_bytes)
        left_s = (1 - done) * whole_s
        if left_s <= period_s or number == len(draws) - 1:
            return seconds + left_s
        done += period_s / whole_s
        seconds += period_s
    raise ValueError("there is no draw")
