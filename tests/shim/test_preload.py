# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""The preload object does nothing at all in a process that does not reduce gradients."""

import json
import os
import re
import shutil
import subprocess
import tempfile

from harness import ADAPTER, FAKE_ADAPTER_DIR, HERE, PRELOAD, PYTHON, expect, run_all

REPOSITORY = os.path.dirname(os.path.dirname(HERE))
SHARED = ("-shared", "-fPIC")
PRELOAD_SOURCES = os.path.join(REPOSITORY, "trainer-shim", "preload")
HOOKS = [os.path.join(PRELOAD_SOURCES, name) for name in ("hooks.def", "mpi_hooks.def")]
MAP = os.path.join(PRELOAD_SOURCES, "preload.map")


def run(command, preload=PRELOAD, **env):
    own = {k: v for k, v in os.environ.items() if not k.startswith("GRADPLANE_")}
    if preload:
        own["LD_PRELOAD"] = preload
    own.update(env)
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=120)


def expect_same(command, **env):
    """Checks that output and exit code are the same with and without the preload object."""
    others = {k: v for k, v in env.items() if not k.startswith("GRADPLANE_")}
    plain, ours = run(command, preload=None, **others), run(command, **env)
    seen = [(done.returncode, done.stdout, done.stderr) for done in (plain, ours)]
    expect(seen[0] == seen[1], f"{command}: {plain} became {ours}")


def compile_c(folder, name, text, *flags):
    path = os.path.join(folder, name)
    with open(path + ".c", "w", encoding="utf8") as f:
        f.write(text)
    done = subprocess.run(["cc", "-o", path, path + ".c", *flags], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    return path


def hooked_symbols():
    found = set()
    for path in HOOKS:
        with open(path, encoding="utf8") as f:
            found |= set(re.findall(r"^GP_HOOK\(\w+,\s+(\w+)\)$", f.read(), re.MULTILINE))
    return found


def test_needs_libc_only():
    dynamic = run(["readelf", "-dW", PRELOAD], preload=None).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    expect(needed == ["libc.so.6"], f"needs {needed}")
    expect("TEXTREL" not in dynamic, "no relocation of its code")
    sections = run(["readelf", "-SW", PRELOAD], preload=None).stdout
    sizes = re.findall(r"\.init_array\s+\w+\s+\w+ \w+ (\w+)", sections)
    # The one entry is the compiler's frame_dummy. A constructor of gradplane would be a second
    # entry.
    expect(all(int(size, 16) <= 8 for size in sizes), "no constructor")


def test_exports_the_hooked_symbols_and_nothing_else():
    listed = run(["nm", "-D", "--defined-only", PRELOAD], preload=None).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    expect(exported == hooked_symbols(), f"{exported ^ hooked_symbols()}")
    with open(MAP, encoding="utf8") as f:
        names = re.findall(r"^ +(\w+);", f.read(), re.MULTILINE)
        expect(set(names) == hooked_symbols(), "preload.map agrees")


def test_adapter_exports_its_table_alone():
    adapter = os.path.join(FAKE_ADAPTER_DIR, ADAPTER)
    listed = run(["nm", "-D", "--defined-only", adapter], preload=None).stdout
    ours = {line.split()[-1] for line in listed.splitlines() if line.split()[-2] in "TDRB"}
    expect(ours - {"_edata", "_end", "__bss_start"} == {"gradplane_adapter"}, f"{ours}")


def test_shells_and_compilers():
    expect_same(["bash", "-c", "echo one | tr o 0; (exit 3); echo $?; ls /etc/hostname"])
    expect_same(["bash", "-c", "ls /nonexistent"])
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "a.c")
        with open(source, "w", encoding="utf8") as f:
            f.write("int main(void) { return 7; }\n")
        expect_same(["gcc", "-o", os.path.join(folder, "a"), source])
        expect_same([os.path.join(folder, "a")])


def test_python_without_torch():
    expect_same([PYTHON, "-c", "import json, threading, subprocess; print(json.dumps([1]))"])


def test_python_with_torch_alone():
    expect_same([PYTHON, "-c", "import torch; print(torch.ones(3).sum())"], GRADPLANE_REQUIRE="1")


FORK_EXEC_THREADS = r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void* thread(void* arg) { errno = 7; return errno == 7 ? arg : NULL; }
int main(int argc, char** argv) {
  if (argc > 1) { puts("executed"); return 5; }
  errno = 42;
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, thread, argv);
  for (int i = 0; i < 8; ++i) {
    void* out;
    pthread_join(threads[i], &out);
    if (out != argv) return 1;
  }
  if (errno != 42) return 2;
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      execl(argv[0], argv[0], "again", NULL);
      _exit(9);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 5) return 3;
  }
  return 0;
}
"""

SYMBOL_WITHOUT_TORCH = r"""
#include <errno.h>
#include <stdio.h>
extern int SYMBOL(long, double, long, long, long, long, long, double);
int main(void) {
  errno = 33;
  const int out = SYMBOL(1, 2.5, 3, 4, 5, 6, 7, 8.5);
  printf("%d %d\n", out, errno);
  return 0;
}
"""

LIBRARY = r"""
int SYMBOL(long a, double b, long c, long d, long e, long f, long g, double h) {
  return (int)(a * 1 + b * 10 + c * 100 + d + e + f + g * 1000 + h * 2);
}
"""


def test_fork_exec_threads_errno():
    with tempfile.TemporaryDirectory() as folder:
        expect_same([compile_c(folder, "many", FORK_EXEC_THREADS, "-pthread")])


def test_a_call_reaches_whoever_defines_the_symbol():
    # Without torch, a library of the program defines a hooked name. Arguments in all kinds of
    # registers and on the stack must arrive, and errno must not change.
    symbol = "_ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE"
    expect(symbol in hooked_symbols(), "the symbol of this test is hooked")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(folder, "libown.so", LIBRARY.replace("SYMBOL", symbol), *SHARED)
        program = compile_c(folder, "program", SYMBOL_WITHOUT_TORCH.replace("SYMBOL", symbol),
                            library, f"-Wl,-rpath,{folder}")
        plain, ours = run([program], preload=None), run([program])
        expect(ours.stdout == plain.stdout == "7358 33\n", f"{plain} {ours}")
        expect("no libtorch_cpu.so is loaded" in ours.stderr, ours.stderr)
        quiet = run([program], GRADPLANE_DISABLE="1")
        expect((quiet.stdout, quiet.stderr) == (plain.stdout, ""), f"{quiet}")


def test_the_version_of_a_wheel():
    # The library's name has no version, and gradplane cannot attach to it.
    symbol = "_ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE"
    with tempfile.TemporaryDirectory() as folder:
        libraries = os.path.join(folder, "torch", "lib")
        os.makedirs(libraries)
        source = LIBRARY.replace("SYMBOL", symbol)
        library = compile_c(libraries, "libtorch_cpu.so", source, *SHARED)
        program = compile_c(folder, "program", SYMBOL_WITHOUT_TORCH.replace("SYMBOL", symbol),
                            library, f"-Wl,-rpath,{libraries}")
        for text, said in ((None, "names no version"), ("version = 2\n", "names no version"),
                           ("import os\n__version__ = '2.7.1+cpu'\ndebug = False\n",
                            "not attachable: ProcessGroupGloo")):  # fmt: skip
            if text:
                with open(os.path.join(folder, "torch", "version.py"), "w", encoding="utf8") as f:
                    f.write(text)
            done = run([program])
            expect(done.stdout == "7358 33\n" and said in done.stderr, f"{text}: {done}")


def test_several_preloads():
    with tempfile.TemporaryDirectory() as folder:
        other = compile_c(folder, "libother.so", "int gp_other(void) { return 1; }\n", *SHARED)
        second = os.path.join(folder, "libgradplane_preload.so")
        shutil.copy(PRELOAD, second)
        for order in (f"{other}:{PRELOAD}", f"{PRELOAD} {other}", f"{PRELOAD}:{second}:{other}"):
            done = run(["bash", "-c", "echo fine"], preload=order)
            expect((done.stdout, done.stderr) == ("fine\n", ""), f"{order}: {done}")


GLOO_ALONE = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
t = torch.ones(3); dist.all_reduce(t); dist.barrier(); print(t.sum())
"""


def test_one_rank_passes_silently():
    # If the host name did not resolve, Gloo would print a line with the time.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report")
        expect_same([PYTHON, "-c", GLOO_ALONE], GRADPLANE_ADAPTER_DIR=FAKE_ADAPTER_DIR,
                    GRADPLANE_SOCKET="/nonexistent", GLOO_SOCKET_IFNAME="lo", GRADPLANE_REPORT=path)
        with open(path, encoding="utf8") as f:
            report = json.load(f)
        expect(report["passed_through"] == {"one_rank": 1}, f"and the report says why: {report}")


def test_another_object_that_came_first_is_respected():
    # The other object defines allreduce and calls the next one, so the vtable does not point at
    # gradplane.
    with tempfile.TemporaryDirectory() as folder:
        first = os.path.join(folder, "libgradplane_preload.so")
        shutil.copy(PRELOAD, first)
        done = run([PYTHON, "-c", GLOO_ALONE], preload=f"{first}:{PRELOAD}",
                   GRADPLANE_ADAPTER_DIR=FAKE_ADAPTER_DIR)
        expect(done.stdout == "tensor(3.)\n", f"{done}")


def test_an_adapter_that_does_not_load():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, ADAPTER)
        with open(path, "w", encoding="utf8") as f:
            f.write("not an object")
        done = run([PYTHON, "-c", GLOO_ALONE], GRADPLANE_ADAPTER_DIR=folder)
        expect(done.stdout == "tensor(3.)\n", f"{done}")
        expect(done.stderr.count("the adapter does not load") == 1, done.stderr)
        compile_c(folder, ADAPTER,
                  "unsigned gradplane_adapter[8] = {99, 99};\n", *SHARED)
        done = run([PYTHON, "-c", GLOO_ALONE], GRADPLANE_ADAPTER_DIR=folder)
        expect(done.stdout == "tensor(3.)\n", f"{done}")
        expect(done.stderr.count("is of another build") == 1, done.stderr)


if __name__ == "__main__":
    run_all(globals())
