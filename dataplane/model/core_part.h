// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradplane {

/// The most poll cores of one daemon. Each has an engine, a queue of the port and a UDP port.
inline constexpr std::size_t kMaxCores = 16;

/// The part of a job that one poll core of a node has. Every node assigns the trees of a plan to
/// parts in the same way, so part i talks only to part i of other nodes. Of each `count`
/// consecutive trees, beginning at a multiple of `count`, each part has one. Which part has the
/// first of them changes, so that operations that use only the first tree of a root do not always
/// load the same part.
struct CorePart {
  std::uint16_t index = 0;
  std::uint16_t count = 1;  // parts of the job, the same at every node

  constexpr bool has_tree(std::size_t tree) const { return part_of(tree) == index; }
  constexpr std::size_t part_of(std::size_t tree) const { return (tree + tree / count) % count; }
  constexpr bool is_sane() const { return count >= 1 && count <= kMaxCores && index < count; }
  bool operator==(const CorePart&) const = default;
};

}  // namespace gradplane
