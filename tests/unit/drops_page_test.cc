// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// docs/drops.md explains every reason for which the daemon refuses something.
#include <string>

#include "control/protocol/parsed.h"
#include "control/server/server.h"
#include "control/session/admission.h"
#include "control/session/datagram.h"
#include "dataplane/hop/counters.h"
#include "dataplane/model/rank_fault.h"
#include "dataplane/port/port.h"
#include "tests/support/catch.h"
#include "tests/support/docs_page.h"

using namespace gradplane;
using namespace gradplane::testing;

namespace {

std::string section(const std::string& heading) {
  return docs_section(GRADPLANE_SOURCE_DIR "/docs/drops.md", heading);
}

template <typename Reason, typename Name>
void check_names(const std::string& where, Name name) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    check_explained(where, name(static_cast<Reason>(i)));
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
