// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/stall_text.h"

#include "tests/support/catch.h"

using namespace gradplane;

namespace {

std::string text_of(Stall::Reason reason, bool authenticate = true) {
  config::Config config;
  config.cluster.nodes.resize(2);
  config.cluster.nodes[1].name = "w7";
  config.block_bytes = 1408;
  config.authenticate = authenticate;
  return daemon::stall_text(config, 17, 1,
                            {.reason = reason, .blocks = 12, .quiet = Duration::ms(6040)});
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("who reads why a round was given up learns what, for how long, of whom, and what to do") {
  using Reason = Stall::Reason;
  for (const Reason reason : {Reason::kPushesUnacked, Reason::kResultsUnacked,
                              Reason::kBlocksMissing, Reason::kUnanswered, Reason::kDisputed}) {
    const std::string text = text_of(reason);
    CAPTURE(text);
    CHECK(says(text, "round 17: nothing has moved here for 6.0 s: "));
    CHECK(says(text, "w7"));
    CHECK(says(text, "12"));
    CHECK(says(text, reason == Reason::kDisputed ? "report it" : "packets of 1464 bytes"));
  }
  CHECK(says(text_of(Reason::kDisputed, false), "turn security.authenticate on"));
}
