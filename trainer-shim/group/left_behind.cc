// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/left_behind.h"

namespace gradplane::shim {
namespace {

struct LeftBehind {
  const void* object;
  const LeftBehind* before;
};

const LeftBehind* last_left_behind = nullptr;  // a child of fork() has one thread

}  // namespace

void leave_behind(const void* object) {
  if (object) last_left_behind = new LeftBehind{object, last_left_behind};
}

}  // namespace gradplane::shim
