# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Importing this module makes "gradplane" a backend of torch.distributed:

    import gradplane.torch
    torch.distributed.init_process_group("gradplane")

A group of this backend is a group of Gloo whose collectives the daemon carries. Collectives that it
cannot carry go over Gloo, and so do all collectives if there is no daemon. A process with the
preloaded shim has the same without this module, for all of its groups of Gloo.
"""

import importlib
import pathlib

import torch
import torch.distributed as dist

NAME = "gradplane"
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


def _module():
    name = "_torch_{}_{}".format(*VERSION)
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}.{name}":
            raise
        folder = pathlib.Path(__file__).parent
        found = sorted({path.name.split(".")[0].replace("_torch_", "").replace("_", ".")
                        for path in folder.glob("_torch_*.so")})  # fmt: skip
        raise ImportError(
            f"gradplane has no module for PyTorch {torch.__version__} and this Python in {folder}; "
            f"it has some for PyTorch {', '.join(found) or '(none)'}. Build gradplane with the "
            "headers of this PyTorch, or run the program with gradplane's shim preloaded."
        ) from error


_create_group = _module().create_group
if VERSION >= (2, 0):
    dist.Backend.register_backend(NAME, _create_group, devices=["cpu", "cuda"])
else:
    dist.Backend.register_backend(NAME, _create_group)
