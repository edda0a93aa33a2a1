// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/torch/originals.h"

namespace gradplane::shim {
namespace {

Originals kept;

}  // namespace

void keep_originals(const Originals& functions) {
  kept = functions;
}

const Originals& originals() {
  return kept;
}

}  // namespace gradplane::shim
