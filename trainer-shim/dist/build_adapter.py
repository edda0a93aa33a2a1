# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Builds gradplane's adapter for the PyTorch of the Python that runs this, and the module behind
`import gradplane.torch`. `gradplane build-adapter` and the sdist's setup.py call it.

It needs a compiler with C++20 and the headers of PyTorch, Gloo and nlohmann/json. The module also
needs those of pybind11 and Python. A wheel of PyTorch has its own headers, but none of Gloo: give
the folder of Gloo's headers of the same age with --include.
"""

import argparse
import concurrent.futures
import ctypes.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTED = ((1, 13), (2, 6), (2, 11))
REDUCE = ("-ffp-contract=off", "-fno-math-errno", "-DGRADPLANE_REDUCE_X86")
VECTOR = (*REDUCE, "-fno-tree-loop-distribute-patterns")
GLOO = ("-DUSE_C10D_GLOO",)
# The sources of an adapter: patterns of files below ROOT, and their flags, which are those of the
# meson.build files.
PARTS = (
    ("trainer-shim/torch/*.cc", GLOO),
    ("trainer-shim/group/*.cc", ()),
    ("trainer-shim/client/*.cc", ()),
    ("control/protocol/*.cc", ()),
    ("dataplane/ipc/*.cc", ()),
    ("dataplane/reduce/*.cc", REDUCE),
    ("dataplane/reduce/avx2.cc", (*VECTOR, "-mavx2", "-mf16c")),
    ("dataplane/reduce/avx512.cc", (*VECTOR, "-mavx512f", "-mavx512bw", "-mavx512vl")),
)
OTHER_MACHINES = ("dataplane/reduce/neon.cc",)
ADAPTER_ALONE = "trainer-shim/torch/adapter.cc"
MODULE = "trainer-shim/backend/module.cc"
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing",
         "-Wno-psabi")  # fmt: skip
LINK = ("-shared", "-Wl,-z,nodelete", "-Wl,-z,defs", "-Wl,--as-needed")


class BuildError(Exception):
    """What is wrong, and what to do."""


class Torch:
    """The PyTorch of this Python."""

    def __init__(self):
        try:
            import torch
            import torch.distributed
        except ImportError as error:
            raise BuildError(f"{sys.executable} has no PyTorch: {error}") from error
        if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
            raise BuildError(f"PyTorch {torch.__version__} of {sys.executable} has no Gloo")
        self.version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        self.text = torch.__version__
        folder = pathlib.Path(torch.__file__).parent
        includes = (folder / "include", folder / "include/torch/csrc/api/include")
        # Debian has these headers in folders that every compiler searches.
        self.includes = [str(path) for path in includes if path.is_dir()]
        self.libraries = folder / "lib"
        self.abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)

    @property
    def suffix(self):
        return "{}_{}".format(*self.version)


def sources():
    """(path below ROOT, its flags) of every file that the adapter and the module share."""
    flags = {}
    for pattern, of_pattern in PARTS:
        found = sorted(ROOT.glob(pattern))
        if not found:
            raise BuildError(f"the sources are not whole: no {pattern} in {ROOT}")
        flags.update({str(path.relative_to(ROOT)): of_pattern for path in found})
    return {name: own for name, own in flags.items() if name not in OTHER_MACHINES}


class Compiler:
    """Compiles into a folder of its own, several files at a time. It runs in ROOT, so that a
    compiler cache finds the same relative paths whatever the place of ROOT."""

    def __init__(self, torch, includes, folder, jobs):
        self._command = shlex.split(os.environ.get("CXX", "c++"))
        if not shutil.which(self._command[0]):
            raise BuildError(f"no compiler {self._command[0]}; install g++, or set CXX")
        self._flags = [*FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={torch.abi}", "-I."]
        for path in (*map(os.path.abspath, includes), *torch.includes):
            self._flags += ["-isystem", path]
        self._folder = pathlib.Path(folder)
        self._jobs = jobs

    def run(self, arguments):
        environment = {**os.environ, "LC_ALL": "C"}  # hint() looks for English messages
        done = subprocess.run([*self._command, *map(str, arguments)], capture_output=True,
                              text=True, check=False, env=environment, cwd=ROOT)  # fmt: skip
        if done.returncode != 0:
            lines = done.stderr.splitlines()
            telling = ("error", "undefined", "cannot")
            errors = [line for line in lines if any(word in line for word in telling)]
            said = "\n".join(errors[:3] or lines)
            raise BuildError(f"{self._command[0]} failed:\n{said}{hint(done.stderr)}")

    def objects(self, files):
        """The object files of {path: flags}."""
        outputs = {name: self._folder / (name.replace("/", "_") + ".o") for name in files}

        def compile_one(name):
            self.run([*self._flags, *files[name], "-c", name, "-o", outputs[name]])
            return outputs[name]

        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            return list(pool.map(compile_one, files))


def hint(said):
    """What to install if the compiler's messages say that a header is missing."""
    for header, package in (
        ("gloo/", "libgloo-dev, or give the folder of PyTorch's third_party/gloo with --include"),
        ("nlohmann/", "nlohmann-json3-dev, or give its folder with --include"),
        ("pybind11/", "pybind11-dev"),
        ("Python.h", "python3-dev"),
    ):
        if header in said and ("No such file" in said or "not found" in said):
            return f"\ninstall {package}"
    return ""


def link(compiler, torch, objects, target, *libraries):
    """Links to a file beside `target` and renames it, so that no process loads half a library."""
    folder = [f"-L{torch.libraries}"] if torch.libraries.is_dir() else []
    part = target.with_name(target.name + ".part").absolute()
    # Debian has Gloo as a library of its own. If libtorch_cpu has all of it, none is needed.
    gloo = ctypes.util.find_library("gloo")
    compiler.run([*LINK, *objects, *folder, "-ltorch_cpu", "-lc10", *libraries,
                  *([f"-l:{gloo}"] if gloo else []), "-pthread", "-o", part])  # fmt: skip
    os.replace(part, target)


def build(adapter_folder=None, module_path=None, includes=(), jobs=0, say=print):
    """Builds the adapter into a folder, the module at a path, or both. Raises BuildError."""
    torch = Torch()
    for folder in filter(None, (adapter_folder, module_path and pathlib.Path(module_path).parent)):
        if not os.access(folder, os.W_OK):
            raise BuildError(f"{folder} cannot be written to; give another folder with --output")
    if torch.version not in TESTED:
        known = ", ".join("{}.{}".format(*version) for version in TESTED)
        say(f"PyTorch {torch.text} is not among those that gradplane is tested with ({known})")
    shared = sources()
    alone = {ADAPTER_ALONE: shared.pop(ADAPTER_ALONE)}
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(torch, includes, folder, jobs or os.cpu_count() or 1)
        objects = compiler.objects(shared)
        if adapter_folder:
            target = pathlib.Path(adapter_folder) / f"libgradplane_torch_{torch.suffix}.so"
            link(compiler, torch, objects + compiler.objects(alone), target)
            say(f"built {target} for PyTorch {torch.text}")
        if module_path:
            flags = (*GLOO, f"-DGP_MODULE_NAME=_torch_{torch.suffix}",
                     "-I" + sysconfig.get_paths()["include"])  # fmt: skip
            own = compiler.objects({MODULE: flags})
            # Python's own symbols come from the program that loads the module.
            link(compiler, torch, objects + own, pathlib.Path(module_path), "-ltorch_python",
                 "-Wl,-z,undefs")  # fmt: skip
            say(f"built {module_path} for PyTorch {torch.text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True,
                        help="the folder for the adapter")  # fmt: skip
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER",
                        help="a folder with headers that are missing")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=0,
                        help="files at a time (default: one per CPU)")  # fmt: skip
    arguments = parser.parse_args()
    try:
        build(adapter_folder=arguments.output, includes=arguments.include, jobs=arguments.jobs)
    except (BuildError, OSError) as error:
        sys.exit(f"build-adapter: {error}")


if __name__ == "__main__":
    main()
