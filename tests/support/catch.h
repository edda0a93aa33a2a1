// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

// Includes Catch2 2.13 (Debian 12) or Catch2 3 (Debian 13).
#ifdef GRADPLANE_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;  // in Catch2 2.13 it is outside the namespace
#else
#include <catch2/catch.hpp>
#endif
