// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <system_error>

#include "dataplane/base/result.h"

namespace gradplane::ipc {

/// An error such as "`what`: Cannot allocate memory; `remedy`", for the errno value of a failed
/// call.
inline Error system_error(std::string what, int errno_value, const std::string& remedy) {
  return Error{std::move(what) + ": " + std::generic_category().message(errno_value) + "; " +
               remedy};
}

}  // namespace gradplane::ipc
