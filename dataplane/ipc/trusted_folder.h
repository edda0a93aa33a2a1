// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "dataplane/base/result.h"

namespace gradplane::ipc {

/// Whoever can change what stands at a name that others look up can pass himself off as us. So
/// nobody but root and our own user may do so for any folder or link on the way to `folder`: they
/// belong to these two, and nobody else writes to them. A folder on the way (not the last) may be
/// one that all write to and where each keeps his own names, as /tmp is.
Status check_trusted_folder(const std::string& folder);

/// Creates the last folder of an absolute path (0755) when it is not there, and checks the way.
Status make_trusted_folder(const std::string& folder);

}  // namespace gradplane::ipc
