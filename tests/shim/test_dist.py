# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Builds an adapter with `gradplane build-adapter`, and the Python module from the sdist with pip,
both for the installed PyTorch. Both must carry collectives."""

import os
import shutil
import subprocess
import tempfile

from harness import HERE, PYTHON, TORCH, expect, reports, run_all, run_ranks
from test_daemon import BUILD_FOLDER, Daemon

ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD_SECONDS = 900
# The second build makes mostly the same object files as the first.
COMPILER = {**os.environ, "CCACHE_NOHASHDIR": "1",
            **({"CXX": "ccache c++"} if shutil.which("ccache") else {})}  # fmt: skip


def call(command, code=0, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=COMPILER,
                          timeout=BUILD_SECONDS, **options)
    expect(done.returncode == code, f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect_carried(**options):
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        env = {"GRADPLANE_SOCKET": daemon.socket, "GRADPLANE_REPORT": folder + "/report-%r",
               "GRADPLANE_REQUIRE": "1", **options.pop("env")}
        outcomes = run_ranks("dtypes+reductions", 2, env=env, forked=False, **options)
        expect(all(o.code == 0 for o in outcomes), "every rank ends well", outcomes)
        for report in reports(folder, 2):
            expect(report["carried"] == {"all_reduce": 25 + 75}, str(report), outcomes)


def test_an_adapter():
    gradplane = os.path.join(BUILD_FOLDER, "control", "cli", "gradplane")
    name = "libgradplane_torch_{}_{}.so".format(*TORCH)
    with tempfile.TemporaryDirectory() as folder:
        said = call([gradplane, "build-adapter", "--python", PYTHON, "--output", folder])
        expect(os.listdir(folder) == [name] and f"built {folder}/{name}" in said, said)
        expect_carried(env={"GRADPLANE_ADAPTER_DIR": folder})


def test_a_python_without_torch():
    gradplane = os.path.join(BUILD_FOLDER, "control", "cli", "gradplane")
    with tempfile.TemporaryDirectory() as folder:
        call([PYTHON, "-m", "venv", "--without-pip", folder + "/venv"])
        python = folder + "/venv/bin/python3"
        said = call([gradplane, "build-adapter", "--python", python, "--output", folder], code=1)
        expect(f"{python} has no PyTorch" in said, said)


def test_the_sdist():
    with tempfile.TemporaryDirectory() as folder:
        call([os.path.join(ROOT, "scripts", "sdist"), folder])
        made = [name for name in os.listdir(folder) if name.endswith(".tar.gz")]
        expect(len(made) == 1, str(made))
        site = os.path.join(folder, "site")
        call([PYTHON, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index",
              "--target", site, os.path.join(folder, made[0])], cwd=folder)
        expect_carried(preload=False, env={"GP_TEST_BACKEND": "gradplane", "PYTHONPATH": site})


if __name__ == "__main__":
    run_all(globals())
