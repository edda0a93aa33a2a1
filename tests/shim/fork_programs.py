# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Programs whose children use torch.distributed after fork()."""

import os

import torch
import torch.distributed as dist
from rank_basics import RANK, WORLD, end, error_of, say, start


def wait_for_child(pid):
    assert os.waitpid(pid, 0)[1] == 0


def own_group_after_fork():
    """The parent uses a group and destroys it. Its child is a rank of another job."""
    start()
    dist.all_reduce(torch.ones(10))
    end()
    pid = os.fork()
    if pid != 0:
        wait_for_child(pid)
        return
    os.environ["RANK"] = str(100 + RANK)  # a rank of its own, which names its report
    dist.init_process_group("gloo", rank=RANK, world_size=WORLD,
                            init_method="file://" + os.environ["GP_TEST_RENDEZVOUS"])
    for i in range(5):
        t = torch.full((1000,), float(i))
        dist.all_reduce(t)
        assert torch.equal(t, torch.full((1000,), float(i * WORLD))), t
    works = [dist.all_reduce(torch.ones(20), async_op=True) for _ in range(4)]
    futures = [work.get_future().then(lambda f: f.value()[0] + 1) for work in works]
    values = [float(future.wait()[0]) for future in futures]
    end()
    say(values=values)


def parents_group_after_fork():
    """A child uses the group of its parent. It must not wait, because it does not have the parent's
    threads. GP_TEST_CHILD_REQUIRE becomes the child's GRADPLANE_REQUIRE."""
    start()
    dist.all_reduce(torch.ones(10))
    pid = os.fork()
    if pid == 0:
        if "GP_TEST_CHILD_REQUIRE" in os.environ:
            os.environ["GRADPLANE_REQUIRE"] = os.environ["GP_TEST_CHILD_REQUIRE"]
        say(error=error_of(lambda: dist.all_reduce(torch.ones(10), async_op=True)))
        os._exit(0)
    wait_for_child(pid)
    t = torch.ones(10)
    dist.all_reduce(t)
    say(value=float(t[0]))
