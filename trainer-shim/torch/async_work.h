// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// Gloo's names of an operation.
struct WorkKind {
  c10d::OpType type;
  const char* title;  // in profiles
};

#if GP_TORCH_AT_LEAST(2, 0)
/// The next number of an operation of the group. Gloo numbers the operations of a program, so
/// carried ones must get numbers, too. A null group means that the operation is not the program's.
inline std::uint64_t next_sequence_number(Group* group) {
  if (!group) return 0;
  struct Access : Group {
    static auto number() { return &Access::seq_; }
  };
  return ++(group->*Access::number());
}
#endif

// One of Gloo's asynchronous works. Its constructor has the same arguments for all versions of
// libtorch.

#if GP_TORCH_AT_LEAST(2, 8)

class AsyncWork : public Group::AsyncWork {
 public:
  AsyncWork(Group* group, const WorkKind& kind, const TensorLists& outputs, const Tensors& inputs)
      : Group::AsyncWork(nullptr, outputs, kind.type, next_sequence_number(group), kNotGloos,
                         kind.title, std::optional<Tensors>(inputs)),
        inputs_(inputs),
        outputs_(outputs.empty() ? Tensors() : outputs[0]) {}

  const Tensors getInputTensors() override { return inputs_; }
  const Tensors getOutputTensors() override { return outputs_; }

 private:
  /// Sessions have their own timeouts. Without a value Gloo would ask its context for one, and that
  /// is null here.
  static constexpr std::chrono::milliseconds kNotGloos{0};

  const Tensors inputs_;
  const Tensors outputs_;
};

#elif GP_TORCH_AT_LEAST(2, 0)

class AsyncWork : public Group::AsyncWork {
 public:
  AsyncWork(Group* group, const WorkKind& kind, const TensorLists& outputs, const Tensors& inputs)
      : Group::AsyncWork(outputs, kind.type, next_sequence_number(group), kind.title,
                         std::optional<Tensors>(inputs)) {}
};

#else

class AsyncWork : public Group::AsyncWork {
 public:
  AsyncWork(Group*, const WorkKind& kind, const TensorLists& outputs, const Tensors& inputs)
      : Group::AsyncWork(outputs, kind.title, c10::optional<Tensors>(inputs)) {}
};

#endif

}  // namespace gradplane::shim
