# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Cases: the parameters of a run's network, and their description for the lab."""

KIB = 1024
MIB = 1024 * KIB
MBIT = 10**6
# The queue of a port of a switch with little memory. A long link has a queue of rate x delay.
LEAST_QUEUE_BYTES = 256 * KIB
# Bursts last for ten frames on average, of which every second one is lost. The length of a burst is
# counted in frames, not in time: if nearly all frames were lost, a sender that waits longer after
# each loss could wait for minutes until the burst ends.
BURST_LOSS = 0.5
BURST_FRAMES = 10
SEED = 1  # of the network's random numbers, whose sequence goes on from round to round


def case(hosts, message_bytes, rate_mbit=200, rtt_ms=0.2, loss=0.0, loss_model="none",
         queue_bytes=None, mark_bytes=0):  # fmt: skip
    """`loss` is per frame and path, in the direction to a host. `queue_bytes` is the queue of every
    port, if it is not as above. A frame that finds more than `mark_bytes` in it is marked."""
    rate_bits = rate_mbit * MBIT
    queue = queue_bytes or max(LEAST_QUEUE_BYTES, round(rate_bits / 8 * rtt_ms / 1000))
    # These keys are left out unless they are set, so that cases of older files stay equal to these.
    queues = {"own_queue": True} if queue_bytes else {}
    if mark_bytes:
        queues["mark_bytes"] = mark_bytes
    return {
        **queues,
        "hosts": hosts,
        "bytes": message_bytes,
        "rate_bits_per_second": rate_bits,
        "rtt_ms": rtt_ms,
        "queue_bytes": queue,
        "loss": loss,
        "loss_model": loss_model if loss else "none",
        "burst": {"loss": BURST_LOSS, "frames": BURST_FRAMES} if loss_model == "burst" else None,
        "jitter_ms": 0,
        "network_seed": SEED,
    }


def percent(share):
    return f"{share * 100:.6g} %"


def loss_settings(case):
    """The lab's `loss` for every host's down link, and for that of the last host."""
    loss, model = case["loss"], case["loss_model"]
    if model == "none":
        return None, None
    if model == "random":
        return percent(loss), percent(loss)
    if model == "grey":  # all loss is at one host
        return None, percent(loss)
    # The share of frames in bursts, so that share * BURST_LOSS is the loss.
    share = loss / BURST_LOSS
    leave = 1 / BURST_FRAMES
    burst = {
        "gilbert_elliott": {
            "enter": percent(leave * share / (1 - share)),
            "leave": percent(leave),
            "bad": percent(BURST_LOSS),
            "good": "0 %",
        }
    }
    return burst, burst


def network(case, names):
    """The description of the emulated network. The delay of each link is a quarter of the round
    trip."""
    direction = {
        "rate": f"{case['rate_bits_per_second'] // 1000} kbit/s",
        "delay": f"{case['rtt_ms'] * 1000 / 4:.0f} us",
        "queue": f"{case['queue_bytes']} B",
        "ecn_threshold": f"{case.get('mark_bytes', 0)} B",
    }
    everywhere, last = loss_settings(case)
    hosts = []
    for index, name in enumerate(names):
        loss = last if index == len(names) - 1 else everywhere
        down = {**direction, **({"loss": loss} if loss else {})}
        hosts.append({"name": name, "up": direction, "down": down})
    return {"hosts": hosts, "seed": SEED}


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def label(case, without=""):
    """A case in a few words, without one of its parameters."""
    words = {
        "bytes": size_text(case["bytes"]),
        "hosts": f"{case['hosts']} hosts",
        "rate": f"{case['rate_bits_per_second'] // MBIT} Mbit/s",
        "rtt_ms": f"RTT {case['rtt_ms']:g} ms",
    }
    if case["loss"]:
        words["loss"] = f"{case['loss'] * 100:g} % {case['loss_model']} loss"
    if case.get("own_queue"):
        words["queue"] = f"queues of {size_text(case['queue_bytes'])}"
    if case.get("mark_bytes"):
        words["marks"] = f"marks from {size_text(case['mark_bytes'])} on"
    return ", ".join(text for key, text in words.items() if key != without)
