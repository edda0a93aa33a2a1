# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
"""Waits for something that another process does."""

import time


def wait_until(condition, then_touch=None, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    if then_touch:
        open(then_touch, "w").close()
