// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "dataplane/base/result.h"

namespace gradplane::ipc {

/// Checks that only root and our own user can change names on the way to `folder`. Otherwise
/// another user could replace a file that others look up there, and pose as us. So each folder and
/// link on the way must belong to one of these two users, and no other user may write to it. A
/// folder on the way, but not the last one, may be writable by all if it is sticky, as /tmp is.
Status check_trusted_folder(const std::string& folder);

/// Creates the last folder of an absolute path (mode 0755) if it does not exist, and checks the
/// whole path.
Status make_trusted_folder(const std::string& folder);

}  // namespace gradplane::ipc
