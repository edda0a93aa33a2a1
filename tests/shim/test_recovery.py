# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The gradplane authors
from harness import run_all

if __name__ == "__main__":
    run_all(globals())
