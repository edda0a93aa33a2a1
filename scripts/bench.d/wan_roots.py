#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Computes how many times as long as fapt's trees a single root takes over the network of `wan`, by
the rates of their links: from the best root to the worst, over many draws. It needs build/, and no
lab."""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import wan_cases as cases  # noqa: E402
import wan_network as network  # noqa: E402

GRADPLANE = HERE.parents[1] / "build/control/cli/gradplane"
TARGET = 6.5  # NetStorm's speed-up over its own server
SECONDS = {"ms": 1e-3, "s": 1.0}
FILE = """\
port: {{kind: af_packet, interface: dp0}}
plan: {{kind: packed}}
cluster:
  key: 00112233445566778899aabbccddeeff
  nodes:
{nodes}{section}"""


def transfers_s(rates, message_bytes):
    """{planner: seconds that the busiest link takes}, from `gradplane plan`."""
    nodes = "".join(f"    - {{name: {name}, address: 10.0.0.{number}/24}}\n"
                    for number, name in enumerate(network.NAMES, 1))  # fmt: skip
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        section = network.yaml_section(rates, None, message_bytes)
        file.write(FILE.format(nodes=nodes, section=section))
        file.flush()
        command = [GRADPLANE, "plan", "--network", file.name, "--brief"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = {}
    for line in shown.stdout.splitlines():
        words = line.split()
        if len(words) > 4 and words[4] in SECONDS:
            found[words[0]] = float(words[3]) * SECONDS[words[4]]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    draws = range(parser.parse_args().draws)
    message_bytes = network.volume_bytes(cases.VOLUMES_MB[0])
    rows = []
    for number in draws:
        rates = network.draw(number)
        fapt_s = transfers_s(rates, message_bytes)["fapt"]
        rows.append([network.star_seconds(rates, root, message_bytes) / fapt_s
                     for root in network.roots_by_time(rates)])  # fmt: skip
    for name, place in (("best", 0), ("median", network.SITES // 2), ("worst", -1)):
        ratios = [row[place] for row in rows]
        good = [number for number, ratio in zip(draws, ratios) if ratio >= TARGET]
        print(f"{name} root: draw 0 {ratios[0]:.2f}, median {statistics.median(ratios):.2f}, "
              f"most {max(ratios):.2f}; at least {TARGET} in {len(good)} of {len(rows)} draws, "
              f"{', '.join(map(str, good[:5])) or 'none'}")  # fmt: skip


if __name__ == "__main__":
    main()
