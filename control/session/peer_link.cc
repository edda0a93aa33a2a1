// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/peer_link.h"

#include <algorithm>
#include <utility>

#include "dataplane/base/assert.h"

namespace gradplane::session {

namespace {

constexpr Duration kFirstRetransmit = Duration::ms(200);  // before a round trip was measured
constexpr Duration kMinRetransmit = Duration::ms(10);
constexpr Duration kMaxRetransmit = Duration::ms(1000);
constexpr Duration kFirstPing = Duration::ms(20);
constexpr Duration kMaxRtt = Duration::seconds(60);
constexpr std::uint32_t kMaxBackoffShift = 6;

/// What to look at if a peer has never answered.
constexpr const char* kSilentFromStart =
    "; is its gradplaned running, and do both nodes have the same cluster.nodes, "
    "cluster.udp_port and cluster key?";

std::string seconds_text(Duration d) {
  const std::int64_t tenths = d.count_ns() / Duration::ms(100).count_ns();
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

PeerLink::PeerLink(const LinkConfig& config, Instant now)
    : config_(config),
      incarnation_(config.incarnation),
      state_since_(now),
      quiet_since_(now),
      ping_interval_(kFirstPing) {
  GP_ASSERT(config.incarnation != 0 && config.self != config.peer);
}

void PeerLink::send(std::span<const std::byte> message, Instant now) {
  if (!wants_contact()) begin_contact(now);
  // The sender wants to hear that the peer is still silent, even if that was reported before.
  // So it waits for as long as if nobody had called the peer before.
  if (!connected() && (silence_reported_ || outgoing_.size() == 0)) quiet_since_ = now;
  if (!connected()) silence_reported_ = false;
  if (!outgoing_.push(message)) {
    lose("lets too many messages pile up", now);
    return;
  }
  transmit_due(now);
}

DatagramDrop PeerLink::receive(const Datagram& datagram, Instant now) {
  if (datagram.destination_incarnation != incarnation_) {
    emit(kWantsReply, datagram.timestamp, 0, {}, datagram.source_incarnation, now);
    return DatagramDrop::kStaleIncarnation;
  }
  if (!agree_on_incarnations(datagram, now)) {
    emit(kWantsReply, datagram.timestamp, 0, {}, datagram.source_incarnation, now);
    return DatagramDrop::kUnproven;
  }
  if ((datagram.flags & kGoodbye) != 0) {
    lose("was stopped", now);
    silence_reported_ = true;  // that it then is silent is no news
    return DatagramDrop::kCount;
  }
  note_alive(datagram, now);
  outgoing_.on_ack(datagram.acknowledged, datagram.selective);

  DatagramDrop drop = DatagramDrop::kCount;
  if ((datagram.flags & kHasFrame) != 0) {
    drop = incoming_.accept(datagram, report_.messages);
    if (drop == DatagramDrop::kBadMessage) {
      lose("broke the protocol", now);
      return drop;
    }
  }
  if ((datagram.flags & (kHasFrame | kWantsReply)) != 0)
    emit(0, datagram.timestamp, 0, {}, peer_incarnation_, now);
  transmit_due(now);
  return drop;
}

bool PeerLink::agree_on_incarnations(const Datagram& datagram, Instant now) {
  if (datagram.source_incarnation == peer_incarnation_) return true;
  if (datagram.echo == 0 || datagram.echo < static_cast<std::uint64_t>(state_since_.count_ns()))
    return false;
  if (connected()) {
    outgoing_.clear();
    incoming_.clear();
    report_ = {};
    report_.lost = "was restarted, or had lost contact";
  }
  adopt(datagram.source_incarnation, now);
  return true;
}

void PeerLink::adopt(std::uint64_t incarnation, Instant now) {
  peer_incarnation_ = incarnation;
  newest_timestamp_ = 0;
  state_since_ = now;
  report_.connected = true;
  ping_interval_ = config_.heartbeat;
  next_ping_ = watched_ ? now + config_.heartbeat : Instant::never();
}

void PeerLink::tick(Instant now) {
  if (!wants_contact()) return;
  // If this node itself was stopped, its own pause must not count as silence of the peer.
  if (now - next_deadline() > config_.suspect_after / 2) quiet_since_ = now;
  if (now - quiet_since_ >= suspicion()) {
    const std::string how_long = seconds_text(now - quiet_since_);
    const std::string why = connected() ? "has been silent for " + how_long
                                        : "has not answered for " + how_long + kSilentFromStart;
    if (silence_reported_)
      reset(now);
    else
      lose(why, now);
    silence_reported_ = true;
  }
  ping_when_due(now);
  transmit_due(now);
}

void PeerLink::set_watched(bool watched, Instant now) {
  if (watched == watched_) return;
  if (!wants_contact()) begin_contact(now);
  watched_ = watched;
  if (watched && connected()) next_ping_ = std::min(next_ping_, now + config_.heartbeat);
  if (watched && !connected()) next_ping_ = std::min(next_ping_, now);
  ping_when_due(now);
}

void PeerLink::say_goodbye(Instant now) {
  if (connected()) emit(kGoodbye, 0, 0, {}, peer_incarnation_, now);
}

void PeerLink::begin_contact(Instant now) {
  quiet_since_ = now;
  silence_reported_ = false;
  ping_interval_ = connected() ? config_.heartbeat : kFirstPing;
  next_ping_ = now;
}

void PeerLink::reset(Instant now) {
  const bool spoke = connected();
  outgoing_.clear();
  incoming_.clear();
  peer_incarnation_ = 0;
  state_since_ = now;
  // A new incarnation makes sure that the peer ends the old conversation, too.
  if (spoke) incarnation_ += 0x9e3779b97f4a7c15;
  if (incarnation_ == 0) incarnation_ = 1;
  begin_contact(now);
}

void PeerLink::lose(const std::string& why, Instant now) {
  report_ = {};
  report_.lost = why;
  reset(now);
}

LinkReport PeerLink::take_report() {
  return std::exchange(report_, {});
}

std::vector<std::vector<std::byte>> PeerLink::take_datagrams() {
  return std::exchange(datagrams_, {});
}

Instant PeerLink::next_deadline() const {
  if (!wants_contact()) return Instant::never();
  Instant deadline = std::min(next_ping_, quiet_since_ + suspicion());
  if (connected()) deadline = std::min(deadline, outgoing_.next_deadline());
  return deadline;
}

Duration PeerLink::suspicion() const {
  return config_.suspect_after + (srtt_ + rttvar_ * 4) * 4;
}

Instant PeerLink::doubtful_at(Instant since) const {
  if (!watched_ || !connected()) return Instant::never();
  const Duration after = config_.heartbeat * kHeartbeatsToDoubt + (srtt_ + rttvar_ * 4) * 4;
  return std::max(quiet_since_, since) + std::min(after, suspicion());
}

void PeerLink::transmit_due(Instant now) {
  if (!connected()) {
    ping_when_due(now);
    return;
  }
  std::uint32_t sequence = 0;
  while (SendStream::Frame* frame = outgoing_.next_due(now, sequence)) {
    if (frame->tries > 0) ++retransmissions_;
    emit(frame->flags, 0, sequence, frame->body, peer_incarnation_, now);
    frame->due = now + retransmit_after(frame->tries++);
  }
}

void PeerLink::ping_when_due(Instant now) {
  if (!wants_contact() || now < next_ping_) return;
  emit(kWantsReply, 0, 0, {}, peer_incarnation_, now);
  next_ping_ = now + ping_interval_;
  ping_interval_ = std::min(ping_interval_ * 2, config_.heartbeat);
}

void PeerLink::emit(std::uint8_t flags, std::uint64_t echo, std::uint32_t sequence,
                    std::span<const std::byte> body, std::uint64_t destination_incarnation,
                    Instant now) {
  Datagram d;
  d.flags = flags;
  d.source = config_.self;
  d.destination = config_.peer;
  d.source_incarnation = incarnation_;
  d.destination_incarnation = destination_incarnation;
  d.timestamp = static_cast<std::uint64_t>(now.count_ns());
  d.echo = echo;
  // Another incarnation of the peer has not sent the frames that these fields acknowledge.
  if (destination_incarnation == peer_incarnation_) {
    d.acknowledged = incoming_.acknowledged();
    d.selective = incoming_.selective();
  }
  d.sequence = sequence;
  d.body = body;
  datagrams_.push_back(encode_datagram(config_.key, d));
}

void PeerLink::note_alive(const Datagram& datagram, Instant now) {
  // A datagram that comes again or late may be a replay. It says nothing about the peer's present
  // state.
  if (datagram.timestamp <= newest_timestamp_) return;
  newest_timestamp_ = datagram.timestamp;
  heard_at_ = now;
  quiet_since_ = std::max(quiet_since_, now);
  silence_reported_ = false;
  sample_rtt(datagram.echo, now);
}

void PeerLink::sample_rtt(std::uint64_t echo, Instant now) {
  // An old echo may answer a replay of our datagram, although the peer's timestamp is new.
  if (echo <= newest_echo_) return;
  newest_echo_ = echo;
  const Duration rtt = now - Instant::from_ns(static_cast<std::int64_t>(echo));
  if (rtt < Duration() || rtt > kMaxRtt) return;
  if (srtt_ == Duration()) {
    srtt_ = std::max(rtt, Duration::ns(1));
    rttvar_ = rtt / 2;
    return;
  }
  const Duration error = rtt < srtt_ ? srtt_ - rtt : rtt - srtt_;
  rttvar_ = (rttvar_ * 3 + error) / 4;
  srtt_ = (srtt_ * 7 + rtt) / 8;
}

Duration PeerLink::retransmit_after(std::uint32_t tries) const {
  const Duration base = srtt_ == Duration() ? kFirstRetransmit : srtt_ + rttvar_ * 4;
  const Duration first = std::clamp(base, kMinRetransmit, kMaxRetransmit);
  return std::min(first * (std::int64_t{1} << std::min(tries, kMaxBackoffShift)), kMaxRetransmit);
}

}  // namespace gradplane::session
