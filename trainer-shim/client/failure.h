// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "trainer-shim/client/client.h"

namespace gradplane::client {

/// Why something did not work: a status for the program, a sentence for a person. GP_OK: it did.
struct [[nodiscard]] Failure {
  gp_status status = GP_OK;
  std::string reason;

  explicit operator bool() const noexcept { return status != GP_OK; }
};

}  // namespace gradplane::client
