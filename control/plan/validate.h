// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::plan {

/// Whether a plan can be carried out. If not, the error names the first thing that is wrong. The
/// plan need not be trusted. A valid plan has:
///
/// - 1 to kMaxNodes members, each node once and below kMaxNodes, at most kMaxLocalRanks ranks each;
///   together they host 1 to kMaxRanks ranks, each once and below kMaxRanks; numbers may have gaps,
///   because a plan may lack ranks of its job;
/// - 1 to kMaxTrees trees of weight > 0, each with one entry of `parent` per member;
/// - in each tree a root that is a member without a parent; the parents of every member with ranks
///   lead to the root, and all of them are members; there is no cycle;
/// - members without ranks in a tree only if another member sends to them, or as its root;
/// - at most kMaxSelections selections. If there are any, every member hosts one rank and is the
///   root of one tree, in which all others are its children. A selection has for every member its
///   receivers, which are other members, in ascending order;
/// - auxiliary routes and soundings as validate_routes() and validate_soundings() want them.
Status validate(const api::Plan& plan);

}  // namespace gradplane::plan
