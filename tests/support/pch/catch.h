// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// What large programs of tests compile once instead of in each of their files.
#include "tests/support/catch.h"
