// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <cstdint>
#include <vector>

#include "control/plan/validate.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

/// What validate() promises of a tree, in the simplest form. Node i is member i.
bool is_tree(const api::Plan& plan, const api::Tree& tree) {
  const std::size_t count = plan.members.size();
  if (tree.root >= count || tree.parent[tree.root] != api::kNoNode) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const bool in_tree = i == tree.root || tree.parent[i] != api::kNoNode;
    if (!in_tree && !plan.members[i].ranks.empty()) return false;
    if (!in_tree || i == tree.root) continue;
    std::size_t at = i;
    for (std::size_t step = 0; step < count && at != tree.root; ++step) {
      if (at >= count) return false;
      at = tree.parent[at];
    }
    if (at != tree.root) return false;
    bool sends = !plan.members[i].ranks.empty();
    for (std::size_t child = 0; child < count; ++child) sends |= tree.parent[child] == i;
    if (!sends) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("validate tells trees from everything else, for every way to connect four nodes") {
  std::uint32_t valid_count = 0;
  std::uint32_t seen_count = 0;
  for (std::uint32_t count = 1; count <= 4; ++count) {
    std::uint32_t shapes = 1;  // each node's parent is no node, a member, or an unknown node
    for (std::uint32_t i = 0; i < count; ++i) shapes *= count + 2;
    for (std::uint32_t hosting = 1; hosting < (1u << count); ++hosting) {
      api::Plan plan;
      std::uint16_t rank = 0;
      for (std::uint32_t i = 0; i < count; ++i) {
        plan.members.push_back({static_cast<api::NodeId>(i), {}});
        if ((hosting >> i & 1u) != 0) plan.members.back().ranks.push_back(rank++);
      }
      for (std::uint32_t root = 0; root <= count; ++root) {
        for (std::uint32_t shape = 0; shape < shapes; ++shape) {
          api::Tree tree{1, static_cast<api::NodeId>(root), {}};
          for (std::uint32_t i = 0, rest = shape; i < count; ++i, rest /= count + 2) {
            const std::uint32_t choice = rest % (count + 2);
            tree.parent.push_back(choice == count + 1 ? api::kNoNode
                                                      : static_cast<api::NodeId>(choice));
          }
          plan.trees = {tree};
          const bool expected = is_tree(plan, tree);
          if (plan::validate(plan).ok() != expected) {
            FAIL("count " << count << " hosting " << hosting << " root " << root << " shape "
                          << shape << " should be " << expected);
          }
          valid_count += expected ? 1 : 0;
          ++seen_count;
        }
      }
    }
  }
  CHECK(seen_count > 90000);
  CHECK(valid_count > 500);
}
