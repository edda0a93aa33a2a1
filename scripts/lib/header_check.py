# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Checks that every header compiles alone. Headers that do are remembered by content.

The build compiles headers alone that a source file includes first. Only the others are compiled
here.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess

from sources import Finding, is_header

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header"]
FLAGS += ["-x", "c++", "-I."]
CACHE = ".cache/lint-headers.json"
COMPILE_SECONDS = 60


def check(root, names):
    built = {_first_include(root, name) for name in names if name.endswith(".cc")}
    headers = [
        name
        for name in names
        if is_header(name) and name not in built and not _needs_framework(root, name)
    ]
    known = _load(root)
    remembered = {name: entry for name, entry in known.items() if name in headers}
    stale = [name for name in headers if not _is_current(root, remembered.get(name))]
    findings = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for name, (error, used) in zip(stale, pool.map(functools.partial(_compile, root), stale)):
            if error:
                remembered.pop(name, None)
                findings.append(error)
            else:
                remembered[name] = {"used": used, "hash": _hash(root, used)}
    if remembered != known:
        _save(root, remembered)
    return findings


def _first_include(root, name):
    path = root / name
    text = path.read_text(errors="replace") if path.is_file() else ""
    found = re.search(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")', text, re.MULTILINE)
    return found[1].strip('"') if found else None


@functools.cache
def _needs_framework(root, name):
    """Whether a header includes libtorch's or MPI's. Those of libtorch take half a minute each,
    those of MPI are in their own folders, and the builds of the adapters compile both."""
    pending, seen = [name], set()
    while pending:
        path = root / pending.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        text = path.read_text(errors="replace")
        if re.search(r"#\s*include\s*<(torch|ATen|c10|mpi\.h)", text):
            return True
        pending += re.findall(r'#\s*include\s*"([^"]+)"', text)
    return False


@functools.cache
def _dpdk_flags():
    done = subprocess.run(
        ["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=False
    )
    return done.stdout.split() if done.returncode == 0 else None


def _compile(root, name):
    """(a Finding or None, the project's files that it includes)."""
    flags = list(FLAGS)
    if name.startswith(("dataplane/port/dpdk/", "control/daemon/")):
        dpdk = _dpdk_flags()
        if dpdk is None:
            return None, [name]
        flags += dpdk
    if name.startswith("tests/") and not _catch2_is_old():
        flags.append("-DGRADPLANE_CATCH2_V3")
    try:
        done = subprocess.run(
            ["g++", *flags, "-H", name],
            cwd=root, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Finding(name, 0, f"does not compile alone within {COMPILE_SECONDS} s"), []
    if done.returncode != 0:
        first = re.search(r"error: (.*)", done.stderr)
        return Finding(name, 0, f"does not compile alone: {first[1] if first else '?'}"), []
    used = {match[1] for match in re.finditer(r"^\.+ (?:\./)?([^/].*)$", done.stderr, re.MULTILINE)}
    return None, sorted(used | {name})


@functools.cache
def _catch2_is_old():
    return os.path.exists("/usr/include/catch2/catch.hpp")


def _hash(root, used):
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for name in used:
        digest.update(name.encode() + b"\0" + (root / name).read_bytes())
    return digest.hexdigest()


def _is_current(root, entry):
    try:
        return bool(entry) and entry["hash"] == _hash(root, entry["used"])
    except OSError:
        return False


def _load(root):
    try:
        return json.loads((root / CACHE).read_text())
    except (OSError, ValueError):
        return {}


def _save(root, remembered):
    path = root / CACHE
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(remembered, indent=1))
    part.replace(path)
