// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// The precompiled header of large test programs.
#include "tests/support/catch.h"
