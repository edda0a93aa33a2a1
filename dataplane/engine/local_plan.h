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

/// What `self` needs to know of a valid plan. A node that is no member of the plan is in none of
/// its trees. `link_bits_per_second` is the link rate of each node, by id; 0 or absent means that
/// it is not known.
///
/// A peer's rate is an even share of its link among all nodes that send to it, or its whole link if
/// the peers grant. For updates, only the nodes that send to it in the same step count. With
/// `multicast`, a node sends its results to the group of its children, and its updates to the group
/// of their receivers. It does not if peers grant, because credit is given to one sender for one
/// receiver.
///
/// If several cores of a node share a job, this is the part of the core `core`: its trees after
/// split_trees(), and its share of the rates. Only the first part sounds. Control thread.
job::PlanConfig local_plan(const api::Plan& plan, api::NodeId self,
                           const std::vector<std::uint64_t>& link_bits_per_second, bool grants,
                           bool multicast = false, CorePart core = {});

/// The same for the first plan of a job. The job begins with the plan's activation round.
/// `config.epoch`, `config.key` and `config.core` stay as they are.
void fill_local_plan(job::JobConfig& config, const api::Plan& plan, api::NodeId self,
                     const std::vector<std::uint64_t>& link_bits_per_second,
                     bool multicast = false);

/// Copies each tree as often as cores share the job, so that every core gets a part of the blocks
/// of each tree. If that makes too many trees, the plan stays as it is, and each core gets some of
/// the trees. All nodes do the same with the same plan.
api::Plan split_trees(const api::Plan& plan, std::size_t cores);

/// Derives the key of a part of a job from the key of its plan. The engines of a node number their
/// packets independently, and a packet number may be used only once under a key. The first part
/// uses the plan's own key.
wire::Key key_of_part(const wire::Key& key, std::size_t part);

/// The groups that `self` joins under a plan that `cores` cores share: the groups of its parents,
/// and those of the nodes that send updates to it.
std::vector<GroupName> groups_of(const api::Plan& plan, std::uint32_t job, api::NodeId self,
                                 std::size_t cores = 1);

}  // namespace gradplane::engine
