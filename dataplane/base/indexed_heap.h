// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "dataplane/base/assert.h"

namespace gradplane {

/// A binary min-heap of small indices. Each index is in it at most once, with a key that may
/// change. The smallest key costs O(1), everything else O(log n). Only the constructor allocates.
/// `IndexType` is an integer, or a type with index().
template <typename Key, typename IndexType = std::uint16_t>
class IndexedHeap {
 public:
  using Index = IndexType;

  /// Has room for the indices below `capacity`, which must be less than 65535.
  explicit IndexedHeap(std::size_t capacity) : places_(capacity, kNowhere) {
    GP_ASSERT(capacity < kNowhere);
    nodes_.reserve(capacity);
  }

  bool empty() const { return nodes_.empty(); }
  bool contains(Index index) const { return places_[number_of(index)] != kNowhere; }
  /// The index with the smallest key. The heap must not be empty.
  Index top() const { return nodes_.front().index; }
  const Key& top_key() const { return nodes_.front().key; }
  /// The key of an index that the heap contains.
  const Key& key_of(Index index) const { return nodes_[places_[number_of(index)]].key; }

  /// Adds `index`, or changes its key.
  void set(Index index, Key key) {
    if (!contains(index)) {
      places_[number_of(index)] = static_cast<std::uint16_t>(nodes_.size());
      nodes_.push_back({key, index});
    } else {
      nodes_[places_[number_of(index)]].key = key;
    }
    sink(rise(places_[number_of(index)]));
  }

  /// Removes `index`; does nothing if it is not in the heap.
  void erase(Index index) {
    if (!contains(index)) return;
    const std::size_t hole = places_[number_of(index)];
    swap(hole, nodes_.size() - 1);
    nodes_.pop_back();
    places_[number_of(index)] = kNowhere;
    if (hole < nodes_.size()) sink(rise(hole));
  }

 private:
  static constexpr std::uint16_t kNowhere = std::numeric_limits<std::uint16_t>::max();
  struct Node {
    Key key;
    Index index;
  };

  static std::size_t number_of(Index index) {
    if constexpr (requires { index.index(); }) {
      return index.index();
    } else {
      return index;
    }
  }

  void swap(std::size_t a, std::size_t b) {
    std::swap(nodes_[a], nodes_[b]);
    places_[number_of(nodes_[a].index)] = static_cast<std::uint16_t>(a);
    places_[number_of(nodes_[b].index)] = static_cast<std::uint16_t>(b);
  }
  std::size_t rise(std::size_t at) {
    while (at > 0 && nodes_[at].key < nodes_[(at - 1) / 2].key) {
      swap(at, (at - 1) / 2);
      at = (at - 1) / 2;
    }
    return at;
  }
  void sink(std::size_t at) {
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= nodes_.size()) return;
      if (child + 1 < nodes_.size() && nodes_[child + 1].key < nodes_[child].key) ++child;
      if (!(nodes_[child].key < nodes_[at].key)) return;
      swap(at, child);
      at = child;
    }
  }

  std::vector<Node> nodes_;
  std::vector<std::uint16_t> places_;  // index into nodes_
};

}  // namespace gradplane
