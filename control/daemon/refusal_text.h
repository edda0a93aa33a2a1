// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>

#include "dataplane/model/refusal.h"

namespace gradplane::daemon {

/// Says to people why the poll loop has not taken a job or a plan, and what helps.
std::string refusal_text(JobRefusal why);
std::string refusal_text(PlanRefusal why);

}  // namespace gradplane::daemon
