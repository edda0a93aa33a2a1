// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/session/datagram.h"
#include "control/session/stream.h"
#include "dataplane/base/time.h"

namespace gradplane::session {

struct LinkConfig {
  api::NodeId self = api::kNoNode;
  api::NodeId peer = api::kNoNode;
  std::uint64_t incarnation = 0;  // random, drawn once per start of the daemon; not 0
  ClusterKey key{};
  Duration heartbeat;
  Duration suspect_after;
};

/// After so many heartbeats without an answer it is doubtful whether a peer lives. Both sides send
/// heartbeats, so even with a loss of 10 % that happens by chance only once in millions of times.
inline constexpr std::int64_t kHeartbeatsToDoubt = 4;

/// What has happened on a link since the last report, in this order.
struct LinkReport {
  std::string lost;        // not empty: why everything agreed with this peer is void
  bool connected = false;  // a new conversation has begun
  std::vector<std::vector<std::byte>> messages;
};

/// Delivers messages to one peer reliably and in order, over datagrams that may be lost,
/// duplicated, reordered or forged. Pure: time and datagrams go in; datagrams, reports and the next
/// deadline come out.
///
/// A conversation is identified by the incarnations of both sides. A datagram for another
/// incarnation of this node is answered with the present incarnation and otherwise ignored. A new
/// incarnation of the peer counts only once the peer has echoed a timestamp that this node sent in
/// its present state. So a datagram that was delayed or recorded can neither open nor end a
/// conversation.
///
/// Such a datagram cannot keep a conversation alive either. Only a datagram that was sent later
/// than all received before ends the silence, and only the echo of a later timestamp measures a
/// round trip.
///
/// A side that restarts, or gives the other up after silence, takes a new incarnation. The other
/// side sees the new incarnation and reports `lost`, too. So either both sides go on, or both know
/// that the conversation has ended. A side that ends may say goodbye; the other one then reports
/// `lost` at once.
class PeerLink {
 public:
  PeerLink(const LinkConfig& config, Instant now);

  /// Queues a message (1..kMaxNodeMessageBytes). If the queue is full, the peer is given up and the
  /// report says `lost`.
  void send(std::span<const std::byte> message, Instant now);
  /// Takes a datagram of this peer that decode_datagram() has accepted. Returns kCount, or why the
  /// datagram was dropped.
  DatagramDrop receive(const Datagram& datagram, Instant now);
  void tick(Instant now);

  /// While watched, the peer gets heartbeats, and its silence is reported.
  void set_watched(bool watched, Instant now);
  /// Tells the peer that this daemon ends. A peer that does not hear it notices the silence.
  void say_goodbye(Instant now);
  /// Ends the conversation without a report here. The peer will notice.
  void reset(Instant now);

  LinkReport take_report();
  std::vector<std::vector<std::byte>> take_datagrams();
  Instant next_deadline() const;

  /// Whether a part of a table may be queued now without making other messages wait for long.
  bool has_room_for_table() const { return outgoing_.size() < kTableFrames; }
  bool connected() const { return peer_incarnation_ != 0; }
  bool watched() const { return watched_; }
  /// When the last datagram came that was sent later than all before it; Instant(): none has.
  Instant heard_at() const { return heard_at_; }
  /// Smoothed round trip; zero until measured.
  Duration rtt() const { return srtt_; }
  /// The time of silence after which the peer counts as dead.
  Duration suspicion() const;
  /// When the present silence will have lasted for kHeartbeatsToDoubt heartbeats. Not before
  /// `since` plus that time.
  Instant doubtful_at(Instant since) const;
  std::uint64_t retransmissions() const { return retransmissions_; }

 private:
  bool wants_contact() const { return watched_ || !outgoing_.empty(); }
  void begin_contact(Instant now);
  bool agree_on_incarnations(const Datagram& datagram, Instant now);
  void adopt(std::uint64_t incarnation, Instant now);
  void lose(const std::string& why, Instant now);
  void transmit_due(Instant now);
  void ping_when_due(Instant now);
  void emit(std::uint8_t flags, std::uint64_t echo, std::uint32_t sequence,
            std::span<const std::byte> body, std::uint64_t destination_incarnation, Instant now);
  void note_alive(const Datagram& datagram, Instant now);
  void sample_rtt(std::uint64_t echo, Instant now);
  Duration retransmit_after(std::uint32_t tries) const;

  LinkConfig config_;
  std::uint64_t incarnation_;
  std::uint64_t peer_incarnation_ = 0;  // 0: not connected
  Instant state_since_;                 // when incarnation_ or peer_incarnation_ changed last
  std::uint64_t newest_timestamp_ = 0;  // received from peer_incarnation_
  std::uint64_t newest_echo_ = 0;       // received from any incarnation, because the clock is ours

  SendStream outgoing_;
  ReceiveStream incoming_;
  LinkReport report_;
  std::vector<std::vector<std::byte>> datagrams_;

  bool watched_ = false;
  bool silence_reported_ = false;
  Instant heard_at_ = Instant::from_ns(0);
  Instant quiet_since_;  // the latest of: heard last, contact wanted, end of a pause of this node
  Instant next_ping_ = Instant::never();
  Duration ping_interval_;
  Duration srtt_;
  Duration rttvar_;
  std::uint64_t retransmissions_ = 0;
};

}  // namespace gradplane::session
