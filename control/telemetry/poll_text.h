// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "control/telemetry/status.h"

namespace gradplane::telemetry {

/// What the poll loops did, as lines of the status for a person: pairs of a label and a text. It is
/// all since the daemon began, or since `before`, an earlier report. `before` may be null, and is
/// ignored if it is of another process.
std::vector<std::pair<std::string, std::string>> poll_lines(const StatusReport& report,
                                                            const StatusReport* before);

}  // namespace gradplane::telemetry
