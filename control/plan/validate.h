// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include "dataplane/api/plan.h"
#include "dataplane/base/result.h"

namespace gradplane::plan {

/// Whether a plan can be carried out; if not, the error names the first thing wrong with it. The
/// plan may come from anybody. What a valid plan promises to those who use it:
///
/// - 1 to kMaxNodes members, each node once and below kMaxNodes, at most kMaxLocalRanks ranks each;
///   together they host every rank from 0 to world size - 1 exactly once, at most kMaxRanks;
/// - 1 to kMaxTrees trees of weight > 0, each with one entry of `parent` per member;
/// - in each tree the root is a member without a parent; every member that hosts ranks reaches the
///   root over its parents, all of which are members of the tree; there is no cycle;
/// - a member without ranks is in a tree only if somebody sends to it, or it is the root;
/// - with selections, at most kMaxSelections, every member hosts one rank and is the root of one
///   tree, in which all others are its children; each selection says of every member who receives
///   what it sends: other members, ascending.
Status validate(const api::Plan& plan);

}  // namespace gradplane::plan
