// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "trainer-shim/group/environment.h"
#include "trainer-shim/group/groups.h"
#include "trainer-shim/group/process.h"
#include "trainer-shim/torch/gloo_side_group.h"
#include "trainer-shim/torch/replacements.h"

namespace gradplane::shim {
namespace {

std::string refusal_text(const std::vector<int>& ranks) {
  std::string text = "these ranks of a process group run without gradplane: rank";
  for (std::size_t i = 0; i < std::min<std::size_t>(ranks.size(), 8); ++i) {
    text += ' ';
    text += std::to_string(ranks[i]);
  }
  text += ranks.size() > 8 ? " ..." : "";
  return text + " (start all ranks with gradplane run)";
}

/// Whether every rank of the new group could make its side group. The answer is the same on all
/// ranks.
bool all_ranks_ok(Group* group, bool ok) {
  Tensors flag = {at::full({1}, ok ? 1 : 0, at::kInt)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MIN;
  originals().allreduce(group, flag, options)->wait();
  return flag[0].item<int>() == 1;
}

/// Whether constructors of Gloo's groups may return before the other ranks have begun theirs. Then
/// no rank knows yet whether the others have gradplane.
bool connects_late() {
#if GP_TORCH_AT_LEAST(2, 8)
  return c10d::getDefaultGlooLazyInit();
#else
  return false;
#endif
}

GroupEntry refused(std::string why) {
  return {nullptr, std::move(why), environment().require || Carrier::daemon_requires(),
          PassReason::kPeers};
}

/// Opens the session of a group whose ranks all have the shim, or says why there is none.
GroupEntry open_session(Group* group, const StorePtr& store, int rank, int size,
                        const GroupOptions& options) {
  std::shared_ptr<GroupSession> session;
  std::string trouble = "a rank could not connect its side group";
  try {
    auto side = std::make_unique<GlooSideGroup>(store, rank, size, options);
    session = std::make_shared<GroupSession>(std::move(side), rank, size);
    session->start();
  } catch (const std::exception& e) {
    trouble = std::string("the side group failed: ") + e.what();
    session.reset();
  }
  bool all_ok = false;
  try {
    all_ok = all_ranks_ok(group, session != nullptr);
  } catch (...) {  // a rank has died, and the program hears of it
    if (session) session->shut_down(0);
    throw;
  }
  if (all_ok) return {session, "", false, PassReason::kPeers};
  if (session) session->shut_down(0);
  return refused(trouble);
}

}  // namespace

std::shared_ptr<GroupSession> session_for(Group* group, Operation operation,
                                          std::optional<PassReason> reason) {
  const GroupEntry entry = groups().find(group);
  if (!entry.session && entry.refusal.empty()) {
    // The group has one rank, or it is a side group, which has more.
    if (group->getSize() == 1) count_pass(operation, PassReason::kOneRank);
    return nullptr;
  }
  if (!reason && entry.session) return entry.session;
  if (!reason) {
    if (entry.required || environment().require) {
      throw std::runtime_error(
          "gradplane: " + entry.refusal +
          "; to go on over Gloo is forbidden (ranks.require or GRADPLANE_REQUIRE)");
    }
    announce_fallback(entry.refusal, "Gloo");
  }
  count_pass(operation, reason.value_or(entry.reason));
  return nullptr;
}

void announce_group(c10d::Store& store, int rank) {
  note_use();
  if (!connects_late()) GlooSideGroup::say_hello(store, rank);
}

void open_group(Group* group, const StorePtr& store, int rank, int size,
                const GroupOptions& options) {
  if (connects_late()) {
    groups().add(group, refused("Gloo connects when it is first used (TORCH_GLOO_LAZY_INIT); to be "
                                "carried, unset that on all ranks"));
    return;
  }
  const auto missing = GlooSideGroup::ranks_without_shim(*store, size);
  groups().add(group, missing.empty() ? open_session(group, store, rank, size, options)
                                      : refused(refusal_text(missing)));
}

namespace replacement {

void group_constructor(Group* self, const StorePtr& store, int rank, int size,
                       GroupOptions& options) {
  if (size < 2 || GlooSideGroup::connecting()) {
    originals().group_constructor(self, store, rank, size, options);
    return;
  }
  const GroupOptions kept_options = options;  // the constructor moves its argument away
  announce_group(*store, rank);
  originals().group_constructor(self, store, rank, size, options);
  try {
    open_group(self, store, rank, size, kept_options);
  } catch (...) {
    originals().group_destructor(self);  // the caller does not destroy a group that was not made
    throw;
  }
}

void group_destructor(Group* self) {
  groups().remove(self);
  originals().group_destructor(self);
}

void group_deleting_destructor(Group* self) {
  groups().remove(self);
  originals().group_deleting_destructor(self);
}

}  // namespace replacement
}  // namespace gradplane::shim
