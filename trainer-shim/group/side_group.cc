// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "trainer-shim/group/side_group.h"

#include <future>

namespace gradplane::shim {

void wait_for(OriginalWork& work, const StillWaiting& still_waiting) {
  const auto ended = std::make_shared<std::promise<void>>();
  work.when_over([ended] { ended->set_value(); });
  const auto over = ended->get_future();
  for (auto waited = kFirstWord, next = kFirstWord;
       over.wait_for(next) == std::future_status::timeout; next = waited, waited *= 2) {
    still_waiting(waited.count());
  }
  work.wait();
}

std::vector<Statement> gather(SideGroup& side, int ranks, const Statement& mine,
                              const StillWaiting& still_waiting) {
  std::vector<Statement> statements(static_cast<std::size_t>(ranks));
  const auto work = side.all_gather(std::as_bytes(std::span(&mine, 1)),
                                    std::as_writable_bytes(std::span(statements)));
  wait_for(*work, still_waiting);
  return statements;
}

}  // namespace gradplane::shim
