// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/api/plan.h"
#include "dataplane/job/job_config.h"
#include "dataplane/model/group_name.h"

namespace gradplane::engine {

/// What `self` needs to know of a valid plan; if it is no member of it, it is in none of the trees.
/// `link_bits_per_second` is the link rate of each node,
/// by id (0 or absent: not known). A peer's rate is an even share of its link among all that send
/// to it, or its whole link when the peers grant. Of updates, only those count who send it theirs
/// in the same step. With `multicast`, a node sends its results to the
/// group of its children, and its updates to that of their receivers, except where peers grant:
/// credit is given to one sender for one receiver.
///
/// Where several cores of a node share a job, this is the part of one of them: it has the trees of
/// split_trees(), and its share of the rates. The first part sounds. Control thread.
job::PlanConfig local_plan(const api::Plan& plan, api::NodeId self,
                           const std::vector<std::uint64_t>& link_bits_per_second, bool grants,
                           bool multicast = false, CorePart core = {});

/// The same for the first plan of a job, which begins with the plan's activation round. Leaves
/// `config.epoch`, `config.key` and `config.core` as they are.
void fill_local_plan(job::JobConfig& config, const api::Plan& plan, api::NodeId self,
                     const std::vector<std::uint64_t>& link_bits_per_second,
                     bool multicast = false);

/// For a job that several cores of a node share: each tree as several of the same edges, so that
/// every core has a part of the blocks of each. A plan of too many trees stays as it is; then each
/// core has some of its trees. All nodes do the same with a plan.
api::Plan split_trees(const api::Plan& plan, std::size_t cores);

/// The key of a part of a job, from the key of a plan: engines of a node number their packets by
/// themselves, and no number may be used twice under a key. The first part has the plan's own.
wire::Key key_of_part(const wire::Key& key, std::size_t part);

/// The groups in which `self` is by a plan that so many cores share: those of its parents that have
/// one, and those of the nodes that it receives updates from.
std::vector<GroupName> groups_of(const api::Plan& plan, std::uint32_t job, api::NodeId self,
                                 std::size_t cores = 1);

}  // namespace gradplane::engine
