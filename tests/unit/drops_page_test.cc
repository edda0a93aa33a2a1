// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// docs/drops.md explains every reason for which the daemon refuses something.
#include <fstream>
#include <sstream>
#include <string>

#include "control/protocol/parsed.h"
#include "control/server/server.h"
#include "control/session/admission.h"
#include "control/session/datagram.h"
#include "dataplane/hop/counters.h"
#include "dataplane/model/rank_fault.h"
#include "dataplane/port/port.h"
#include "tests/support/catch.h"

using namespace gradplane;

namespace {

/// The part of the page under a heading.
std::string section(std::string_view heading) {
  std::ifstream file(GRADPLANE_SOURCE_DIR "/docs/drops.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::size_t at = page.find("\n## " + std::string(heading) + "\n");
  REQUIRE(at != std::string::npos);
  return page.substr(at, page.find("\n## ", at + 1) - at);
}

template <typename Reason, typename Name>
void check_names(const std::string& where, Name name) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    const std::string text(name(static_cast<Reason>(i)));
    CAPTURE(text);
    CHECK(where.find("`" + text + "`") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("the page on drops has every reason") {
  check_names<port::PortDrop>(section("By the port"), port::port_drop_name);
  const std::string packets = section("Packets of jobs");
  check_names<hop::Drop>(packets, hop::drop_name);
  const std::string messages = section("Messages between daemons");
  check_names<session::DatagramDrop>(messages, session::datagram_drop_name);
  CHECK(messages.find("`control_queue_full`") != std::string::npos);
  const std::string local = section("Ranks and tools");
  check_names<server::HangUp>(local, server::hang_up_name);
  check_names<protocol::RejectReason>(local, protocol::reject_reason_name);
  check_names<session::Refusal>(local, session::refusal_name);
  for (const std::string_view name : kRankFaultNames)
    CHECK(local.find("`" + std::string(name) + "`") != std::string::npos);
}
