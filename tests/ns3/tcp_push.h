// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <ns3/tcp-socket-base.h>

#include <map>
#include <string_view>
#include <vector>

#include "tests/ns3/rounds.h"
#include "tests/ns3/star.h"

namespace gradplane::ns3_incast {

/// ns-3's TCP: a connection from every sender to the receiver, established before the first round.
/// A push ends when the receiving application has read all of it.
class TcpPush : public Contestant {
 public:
  /// Selects the variant of ns-3's TCP with this name, without "tcp-", with settings like Linux's.
  /// Call it before the star is made, whose hosts take these settings.
  static void prepare(const Scenario& scenario, std::string_view name);

  TcpPush(const Scenario& scenario, Star& star);

  void set_rounds(Rounds& rounds) { rounds_ = &rounds; }
  void begin(std::size_t sender, std::uint32_t round) override;
  bool sums() const override { return false; }
  /// Adds counters to the outcome. Call it after the last round.
  void report(Outcome& outcome) const;

 private:
  void listen();
  void connect(std::size_t sender);
  void on_accepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
  void on_readable(ns3::Ptr<ns3::Socket> socket);
  void on_sent(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader&,
               ns3::Ptr<const ns3::TcpSocketBase>);

  const Scenario& scenario_;
  Star& star_;
  Rounds* rounds_ = nullptr;
  ns3::Ptr<ns3::Socket> listener_;
  std::vector<ns3::Ptr<ns3::Socket>> senders_;
  std::map<ns3::Ptr<ns3::Socket>, std::size_t> sender_of_;  // by the receiver's socket
  std::vector<std::size_t> missing_bytes_;                  // of each sender's push
  std::uint64_t sent_bytes_ = 0;                            // without headers
  std::string failure_;
};

}  // namespace gradplane::ns3_incast
