# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The table of docs/architecture.md, which says what each folder may include, and its check."""

import re

from sources import Finding, is_cpp, read, without_comments

DATAPLANE = ("base", "model", "wire", "reduce", "congestion", "awareness", "hop", "grants")
DATAPLANE += ("aggregate", "job", "ipc", "port", "port/loopback", "port/dpdk", "api", "engine")
CONTROL = ("protocol", "bounds", "plan", "config", "session", "server", "telemetry", "cli")
CONTROL += ("daemon",)
EVERYTHING = tuple(f"dataplane/{name}" for name in DATAPLANE)
EVERYTHING += tuple(f"control/{name}" for name in CONTROL)

BASE, MODEL, WIRE, REDUCE = (f"dataplane/{name}" for name in ("base", "model", "wire", "reduce"))
CONGESTION, HOP, GRANTS = (f"dataplane/{name}" for name in ("congestion", "hop", "grants"))
AWARENESS = "dataplane/awareness"
AGGREGATE, JOB, IPC = (f"dataplane/{name}" for name in ("aggregate", "job", "ipc"))
PORT, API = "dataplane/port", "dataplane/api"
PROTOCOL, TELEMETRY = "control/protocol", "control/telemetry"
BOUNDS, PLAN = "control/bounds", "control/plan"
CLIENT, GROUP = "trainer-shim/client", "trainer-shim/group"
PROTOCOL_CORE = (MODEL, WIRE, REDUCE, CONGESTION, AWARENESS, HOP, GRANTS, AGGREGATE, JOB)

# folder: (folders that it may include beside itself, third parties)
TABLE = {
    BASE: ((), ()),
    MODEL: ((BASE,), ()),
    WIRE: ((BASE, MODEL), ("crypto",)),
    REDUCE: ((BASE, MODEL), ()),
    CONGESTION: ((BASE, MODEL), ()),
    AWARENESS: ((BASE,), ()),
    HOP: ((BASE, MODEL, WIRE, CONGESTION, AWARENESS), ("isa-l",)),
    GRANTS: ((BASE, MODEL), ()),
    AGGREGATE: ((BASE, MODEL, WIRE, REDUCE, HOP), ()),
    JOB: ((BASE, MODEL, WIRE, REDUCE, CONGESTION, AWARENESS, HOP, GRANTS, AGGREGATE), ()),
    IPC: ((BASE, MODEL), ()),
    PORT: ((BASE, MODEL), ()),
    "dataplane/port/loopback": ((BASE, MODEL, PORT), ()),
    "dataplane/port/dpdk": ((BASE, MODEL, IPC, PORT), ("dpdk",)),
    API: ((BASE, MODEL), ()),
    "dataplane/engine": ((BASE, *PROTOCOL_CORE, IPC, PORT, API), ()),
    PROTOCOL: ((BASE, MODEL, IPC), ("json",)),
    BOUNDS: ((BASE, MODEL, API), ()),
    "control/config": ((BASE, MODEL, API, PROTOCOL, BOUNDS, PLAN), ("yaml-cpp", "fmt")),
    "control/session": ((BASE, MODEL, API, PROTOCOL), ()),
    "control/plan": ((BASE, MODEL, API, PROTOCOL), ()),
    "control/server": (
        (BASE, MODEL, API, IPC) + tuple(f"control/{name}" for name in CONTROL if name != "daemon"),
        ("fmt",),
    ),
    TELEMETRY: ((BASE, MODEL, API), ("fmt", "metrics", "json")),
    "control/cli": (
        (BASE, MODEL, API, PROTOCOL, TELEMETRY, PLAN, "control/config"),
        ("fmt", "cli"),
    ),
    "control/daemon": (EVERYTHING, ("dpdk", "fmt", "cli")),
    CLIENT: ((BASE, MODEL, IPC, REDUCE, PROTOCOL), ()),
    "trainer-shim/preload": ((CLIENT,), ()),
    GROUP: ((BASE, MODEL, REDUCE, CLIENT), ()),
    "trainer-shim/torch": ((BASE, MODEL, GROUP, "trainer-shim/preload"), ("torch",)),
    "trainer-shim/backend": ((GROUP, "trainer-shim/torch"), ("torch",)),
    "trainer-shim/mpi": ((BASE, MODEL, GROUP, "trainer-shim/preload"), ("mpi",)),
    "tests/ns3": (EVERYTHING + ("tests",), ("catch2", "cli", "ns3")),
    "tests": (
        EVERYTHING + (CLIENT, GROUP, "trainer-shim/preload", "trainer-shim/torch"),
        ("catch2", "torch", "mpi", "fmt", "json", "yaml-cpp", "metrics", "cli", "dpdk", "crypto"),
    ),
}

# Folders whose code gets time, packets and randomness only as arguments.
PURE = (BASE, *PROTOCOL_CORE, "control/session", "control/plan", BOUNDS, API)
IMPURE_STANDARD = {
    "chrono", "thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore",
    "barrier", "latch", "stop_token", "fstream", "iostream", "filesystem", "syncstream", "ctime",
    "csignal", "random",
}  # fmt: skip
# preload is loaded into processes that know nothing of it, so it must not need the C++ library.
LIBC_ONLY = ("trainer-shim/preload",)
CPP_IN_LIBC_ONLY = {"atomic", "cstddef", "cstdint", "type_traits"}

THIRD_PARTIES = (
    (r"rte_|generic/rte_", "dpdk"),
    (r"yaml-cpp/", "yaml-cpp"),
    (r"fmt/", "fmt"),
    (r"intel-ipsec-mb|openssl/", "crypto"),
    (r"isa-l/", "isa-l"),
    (r"nlohmann/", "json"),
    (r"CLI/", "cli"),
    (r"prometheus/", "metrics"),
    (r"(torch|ATen|c10|c10d|caffe2|gloo|pybind11)/", "torch"),
    (r"mpi\.h$", "mpi"),
    (r"catch2/", "catch2"),
    (r"spdlog/", "log"),
    (r"ns3/", "ns3"),
)
# Headers of the system, libc and the kernel, which the pure folders must not include.
SYSTEM = re.compile(
    r"(sys|linux|net|netinet|netpacket|arpa|asm|bits)/[\w./-]+\.h$|[a-z_0-9]+\.h$"
)
# Headers of instruction sets do not count as headers of the system.
INTRINSICS = re.compile(r"([a-z]mm|imm|x86|cpuid)\w*\.h$|arm_neon\.h$")
STANDARD = re.compile(r"[a-z_0-9]+$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path):
    """The longest row of the table that contains a path; None if there is none."""
    fits = [folder for folder in TABLE if path.startswith(folder + "/")]
    return max(fits, key=len, default=None)


def third_party_of(target):
    for pattern, party in THIRD_PARTIES:
        if re.match(pattern, target):
            return party
    return None


def judge(folder, quote, target):
    """Why `folder` may not include `target`; None when it may."""
    folders, parties = TABLE[folder]
    owner = folder_of(target)
    if owner is not None:
        if owner == folder or owner in folders:
            return None
        return f"{folder} may not include {owner}"
    party = third_party_of(target)
    if party is not None:
        return None if party in parties else f"{folder} may not include {party}"
    if quote == '"':
        return f'"{target}": neither a path from the root nor a known third party'
    if INTRINSICS.match(target):
        return None
    if SYSTEM.match(target):
        return f"{folder} is pure: no <{target}>" if folder in PURE else None
    if not STANDARD.match(target):
        return f"<{target}>: unknown; if it is a third party, add it to lib/layers.py"
    if folder in PURE and target in IMPURE_STANDARD:
        return f"{folder} is pure: no <{target}>"
    if folder in LIBC_ONLY and target not in CPP_IN_LIBC_ONLY:
        return f"{folder} is for libc only: no <{target}>"
    return None


def check(root, names):
    findings = []
    for name in filter(is_cpp, names):
        folder = folder_of(name)
        if folder is None:
            findings.append(Finding(name, 0, "its folder is not in the table of lib/layers.py"))
            continue
        text = without_comments(read(root, name), keep_strings=True)
        for match in INCLUDE.finditer(text):
            reason = judge(folder, match[1], match[2])
            if reason:
                line = text.count("\n", 0, match.start(2)) + 1
                findings.append(Finding(name, line, reason))
    return findings


# Planted violations, one of each kind, which must be found: (file, include, word of the finding)
PLANTED = (
    ("dataplane/job/planted.h", '"dataplane/port/port.h"', "may not include dataplane/port"),
    ("dataplane/base/planted.h", '"dataplane/wire/block.h"', "may not include dataplane/wire"),
    ("dataplane/engine/planted.cc", '"dataplane/port/dpdk/eal.h"', "not include dataplane/port/"),
    ("dataplane/engine/planted.cc", "<rte_mbuf.h>", "may not include dpdk"),
    ("dataplane/congestion/planted.h", '"dataplane/hop/flow.h"', "may not include dataplane/hop"),
    ("dataplane/job/planted.cc", "<chrono>", "pure"),
    ("dataplane/awareness/planted.h", '"dataplane/wire/block.h"', "may not include dataplane/wire"),
    ("dataplane/wire/planted.cc", "<sys/socket.h>", "pure"),
    ("dataplane/wire/planted.cc", "<unistd.h>", "pure"),
    ("control/session/planted.cc", "<thread>", "pure"),
    ("control/session/planted.cc", "<nlohmann/json.hpp>", "may not include json"),
    ("control/server/planted.cc", "<yaml-cpp/yaml.h>", "may not include yaml-cpp"),
    ("control/plan/planted.cc", "<fmt/format.h>", "may not include fmt"),
    ("control/bounds/planted.cc", '"control/config/config.h"', "may not include control/config"),
    ("control/config/planted.cc", "<CLI/CLI.hpp>", "may not include cli"),
    ("control/config/planted.cc", '"dataplane/job/sender.h"', "may not include dataplane/job"),
    ("trainer-shim/client/planted.cc", "<torch/torch.h>", "may not include torch"),
    ("trainer-shim/client/planted.cc", '"dataplane/api/plan.h"', "may not include dataplane/api"),
    ("trainer-shim/group/planted.cc", "<mpi.h>", "may not include mpi"),
    ("trainer-shim/preload/planted.cc", "<string>", "libc only"),
    ("trainer-shim/torch/planted.cc", '"dataplane/ipc/layout.h"', "may not include dataplane/ipc"),
    ("control/daemon/planted.cc", '"tests/support/catch.h"', "may not include tests"),
    ("tests/sim/planted.cc", "<ns3/simulator.h>", "may not include ns3"),
    ("dataplane/job/planted.cc", '"planted.h"', "neither a path"),
    ("dataplane/job/planted.cc", "<boost/asio.hpp>", "unknown"),
    ("dataplane/nowhere/planted.cc", "<cstdint>", "not in the table"),
)
