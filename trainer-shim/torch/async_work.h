// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {

/// What Gloo calls an operation.
struct WorkKind {
  c10d::OpType type;
  const char* title;  // in profiles
};

#if GP_TORCH_AT_LEAST(2, 0)
/// Gloo numbers the operations of a group, and so it counts those of its program that we carry.
/// Null: the operation is none of its program's.
inline std::uint64_t next_sequence_number(Group* group) {
  if (!group) return 0;
  struct Access : Group {
    static auto number() { return &Access::seq_; }
  };
  return ++(group->*Access::number());
}
#endif

// One of Gloo's asynchronous works, whatever the version of libtorch wants to know of it.

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
  /// Sessions know the time limits. Gloo's context would be asked for its own otherwise.
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
