// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradplane {

/// Poll cores of one daemon: engines, queues of its port, UDP ports.
inline constexpr std::size_t kMaxCores = 16;

/// Of a job: the part that one poll core of a node has. The trees of a plan are dealt out to the
/// parts alike at every node, so part i talks to part i of the other nodes alone. Of any `count`
/// trees in a row that begin with a multiple of it, each part has one, and who has the first one
/// changes: what goes whole to the first tree of a root is not always the same part's.
struct CorePart {
  std::uint16_t index = 0;
  std::uint16_t count = 1;  // of the job, at every node

  constexpr bool has_tree(std::size_t tree) const { return part_of(tree) == index; }
  constexpr std::size_t part_of(std::size_t tree) const { return (tree + tree / count) % count; }
  constexpr bool is_sane() const { return count >= 1 && count <= kMaxCores && index < count; }
  bool operator==(const CorePart&) const = default;
};

}  // namespace gradplane
