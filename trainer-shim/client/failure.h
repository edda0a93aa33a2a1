// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "trainer-shim/client/client.h"

namespace gradplane::client {

/// Why something has failed: a status for the program, and a sentence for a person. With GP_OK it
/// has not failed.
struct [[nodiscard]] Failure {
  gp_status status = GP_OK;
  std::string reason;

  explicit operator bool() const noexcept { return status != GP_OK; }
};

}  // namespace gradplane::client
