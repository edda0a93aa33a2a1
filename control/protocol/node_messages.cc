// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/node_messages.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "dataplane/base/bytes.h"

namespace gradplane::protocol {

namespace {

/// The first byte of a message. On the wire: never change one.
enum class NodeType : std::uint8_t {
  kJoin = 1,
  kWaitingFor,
  kRefused,
  kPrepare,
  kPrepared,
  kCommit,
  kLeave,
  kFailed,
  kFinished,
  kDescribeBucket,
  kBucketBounds,
};

constexpr std::uint32_t kMaxFloorPpm = 1000000;
/// An hour: beyond every time that a configuration may have.
constexpr std::uint64_t kMaxSettingNs = 3600000000000;

class Writer {
 public:
  explicit Writer(NodeType type) : bytes_(kMaxNodeMessageBytes), out_(bytes_) {
    u8(static_cast<std::uint8_t>(type));
  }

  void u8(std::uint8_t v) { out_.write(v); }
  void u16(std::uint16_t v) { out_.write(v); }
  void u32(std::uint32_t v) { out_.write(v); }
  void u64(std::uint64_t v) { out_.write(v); }
  void key(const JobKey& key) {
    for (const std::byte byte : key) u8(std::to_integer<std::uint8_t>(byte));
  }
  void blob(std::span<const std::byte> bytes, std::size_t max_bytes) {
    const std::size_t size = std::min(bytes.size(), max_bytes);
    u16(static_cast<std::uint16_t>(size));
    for (const std::byte byte : bytes.first(size)) u8(std::to_integer<std::uint8_t>(byte));
  }
  void text(const std::string& text) {
    const std::string clean = printable(text, kMaxNodeTextBytes);
    blob(std::as_bytes(std::span(clean)), kMaxNodeTextBytes);
  }
  void ranks(const std::vector<std::uint16_t>& ranks, std::size_t max_count) {
    const std::size_t count = std::min(ranks.size(), max_count);
    u16(static_cast<std::uint16_t>(count));
    for (std::size_t i = 0; i < count; ++i) u16(ranks[i]);
  }
  std::vector<std::byte> take() {
    bytes_.resize(out_.size());
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
  ByteWriter out_;
};

static_assert(kMaxPlanBytes <= 0xffff, "a length has 16 bits");

std::vector<std::byte> write(const Join& m) {
  Writer out(NodeType::kJoin);
  out.key(m.key);
  out.u32(m.attempt);
  out.u32(m.user);
  out.u32(m.world_size);
  out.ranks(m.ranks, kMaxLocalRanks);
  out.text(m.label);
  return out.take();
}

std::vector<std::byte> write(const WaitingFor& m) {
  Writer out(NodeType::kWaitingFor);
  out.key(m.key);
  out.u32(m.attempt);
  out.u32(m.missing_count);
  out.ranks(m.missing, kMaxRanks);
  return out.take();
}

std::vector<std::byte> write(const Refused& m) {
  Writer out(NodeType::kRefused);
  out.key(m.key);
  out.u32(m.attempt);
  out.ranks(m.ranks, kMaxLocalRanks);
  out.text(m.reason);
  return out.take();
}

std::vector<std::byte> write(const Prepare& m) {
  Writer out(NodeType::kPrepare);
  out.key(m.key);
  out.u32(m.attempt);
  out.u32(m.epoch);
  out.u32(m.world_size);
  out.u32(m.settings.block_bytes);
  out.u32(m.settings.round_bytes);
  out.u8(m.settings.authenticate ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(m.settings.compensation));
  out.u32(m.settings.strict_rounds);
  out.u32(m.settings.floor_ppm);
  out.u64(m.settings.slack_ns);
  out.u64(m.settings.absent_after_ns);
  out.u8(m.settings.grants ? 1 : 0);
  out.text(m.label);
  out.blob(m.plan, kMaxPlanBytes);
  out.u8(m.learn_bounds ? 1 : 0);
  return out.take();
}

std::vector<std::byte> write_epoch(NodeType type, const JobKey& key, std::uint32_t epoch) {
  Writer out(type);
  out.key(key);
  out.u32(epoch);
  return out.take();
}

std::vector<std::byte> write(const Prepared& m) {
  return write_epoch(NodeType::kPrepared, m.key, m.epoch);
}
std::vector<std::byte> write(const Commit& m) {
  return write_epoch(NodeType::kCommit, m.key, m.epoch);
}
std::vector<std::byte> write(const Finished& m) {
  return write_epoch(NodeType::kFinished, m.key, m.epoch);
}

std::vector<std::byte> write(const Leave& m) {
  Writer out(NodeType::kLeave);
  out.key(m.key);
  out.u32(m.epoch);
  out.u16(m.rank);
  out.u8(m.clean ? 1 : 0);
  return out.take();
}

std::vector<std::byte> write(const Failed& m) {
  Writer out(NodeType::kFailed);
  out.key(m.key);
  out.u32(m.epoch);
  out.text(m.reason);
  return out.take();
}

std::vector<std::byte> write(const DescribeBucket& m) {
  Writer out(NodeType::kDescribeBucket);
  out.key(m.key);
  out.u32(m.epoch);
  out.blob(m.part, kMaxBucketPartBytes);
  return out.take();
}

std::vector<std::byte> write(const BucketBounds& m) {
  Writer out(NodeType::kBucketBounds);
  out.key(m.key);
  out.u32(m.epoch);
  out.u32(std::bit_cast<std::uint32_t>(m.learn_budget));
  out.blob(m.part, kMaxBucketPartBytes);
  return out.take();
}

/// Reads fields; the first that is out of range is remembered.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}

  template <std::unsigned_integral T>
  T number(const char* name, T min, T max) {
    const T value = in_.read<T>();
    if (in_.ok() && (value < min || value > max)) reject(RejectReason::kOutOfRange, name);
    return value;
  }
  std::uint32_t epoch() { return number<std::uint32_t>("epoch", 1, UINT32_MAX); }
  float share(const char* name, float max) {
    const auto value = std::bit_cast<float>(in_.read<std::uint32_t>());
    if (value >= 0 && value <= max) return value;  // NaN is neither
    if (in_.ok()) reject(RejectReason::kOutOfRange, name);
    return 0;
  }
  std::uint32_t world_size() { return number<std::uint32_t>("world_size", 1, kMaxRanks); }
  JobKey key() {
    JobKey key;
    for (std::byte& byte : key) byte = static_cast<std::byte>(in_.read<std::uint8_t>());
    return key;
  }
  std::vector<std::byte> blob(const char* name, std::size_t max_bytes) {
    const std::size_t size = in_.read<std::uint16_t>();
    if (size > max_bytes) reject(RejectReason::kOutOfRange, name);
    if (size > in_.rest().size()) reject(RejectReason::kTruncated, name);
    std::vector<std::byte> bytes(ok() ? size : 0);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(in_.read<std::uint8_t>());
    return bytes;
  }
  std::string text(const char* name) {
    const std::vector<std::byte> raw = blob(name, kMaxNodeTextBytes);
    return printable({reinterpret_cast<const char*>(raw.data()), raw.size()}, kMaxNodeTextBytes);
  }
  std::vector<std::uint16_t> ranks(const char* name, std::size_t max_count) {
    const std::size_t count = in_.read<std::uint16_t>();
    if (count > max_count) reject(RejectReason::kOutOfRange, name);
    if (count * 2 > in_.rest().size()) reject(RejectReason::kTruncated, name);
    std::vector<std::uint16_t> ranks(ok() ? count : 0);
    for (std::uint16_t& rank : ranks) rank = number<std::uint16_t>(name, 0, kMaxRanks - 1);
    return ranks;
  }

  bool ok() const { return in_.ok() && rejection_.reason == RejectReason::kCount; }
  void reject(RejectReason reason, const char* name) {
    if (rejection_.reason == RejectReason::kCount) rejection_ = {reason, name};
  }
  Rejection finish() {
    if (!in_.ok()) reject(RejectReason::kTruncated, "ends early");
    if (in_.ok() && !in_.rest().empty()) reject(RejectReason::kTruncated, "goes on after its end");
    return rejection_;
  }

 private:
  ByteReader in_;
  Rejection rejection_;
};

NodeMessage read_join(Reader& in) {
  Join m;
  m.key = in.key();
  m.attempt = in.number<std::uint32_t>("attempt", 1, UINT32_MAX);
  // The last number is nobody's: a rank has a user.
  m.user = in.number<std::uint32_t>("user", 0, UINT32_MAX - 1);
  m.world_size = in.world_size();
  m.ranks = in.ranks("ranks", kMaxLocalRanks);
  m.label = in.text("label");
  for (const std::uint16_t rank : m.ranks)
    if (rank >= m.world_size) in.reject(RejectReason::kOutOfRange, "ranks");
  std::vector<std::uint16_t> sorted = m.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    in.reject(RejectReason::kOutOfRange, "ranks");
  return m;
}

NodeMessage read_waiting_for(Reader& in) {
  WaitingFor m;
  m.key = in.key();
  m.attempt = in.number<std::uint32_t>("attempt", 1, UINT32_MAX);
  m.missing_count = in.number<std::uint32_t>("missing_count", 0, kMaxRanks);
  m.missing = in.ranks("missing", kMaxRanks);
  return m;
}

NodeMessage read_refused(Reader& in) {
  Refused m;
  m.key = in.key();
  m.attempt = in.number<std::uint32_t>("attempt", 1, UINT32_MAX);
  m.ranks = in.ranks("ranks", kMaxLocalRanks);
  m.reason = in.text("reason");
  return m;
}

JobSettings read_settings(Reader& in) {
  JobSettings s;
  s.block_bytes = in.number<std::uint32_t>("block_bytes", kMinBlockBytes, kMaxBlockBytes);
  if (s.block_bytes % kBlockAlignBytes != 0) in.reject(RejectReason::kOutOfRange, "block_bytes");
  s.round_bytes = in.number<std::uint32_t>("round_bytes", s.block_bytes, kMaxRoundBytes);
  if (s.round_bytes % kBlockAlignBytes != 0) in.reject(RejectReason::kOutOfRange, "round_bytes");
  s.authenticate = in.number<std::uint8_t>("authenticate", 0, 1) == 1;
  constexpr auto kLast = static_cast<std::uint8_t>(Compensation::kCarry);
  s.compensation = static_cast<Compensation>(in.number<std::uint8_t>("compensation", 0, kLast));
  s.strict_rounds = in.number<std::uint32_t>("strict_rounds", 0, UINT32_MAX);
  s.floor_ppm = in.number<std::uint32_t>("floor", 0, kMaxFloorPpm);
  s.slack_ns = in.number<std::uint64_t>("slack", 0, kMaxSettingNs);
  s.absent_after_ns = in.number<std::uint64_t>("absent_after", 0, kMaxSettingNs);
  s.grants = in.number<std::uint8_t>("grants", 0, 1) == 1;
  return s;
}

NodeMessage read_prepare(Reader& in) {
  Prepare m;
  m.key = in.key();
  m.attempt = in.number<std::uint32_t>("attempt", 0, UINT32_MAX);
  m.epoch = in.epoch();
  m.world_size = in.world_size();
  m.settings = read_settings(in);
  m.label = in.text("label");
  m.plan = in.blob("plan", kMaxPlanBytes);
  m.learn_bounds = in.number<std::uint8_t>("learn_bounds", 0, 1) == 1;
  return m;
}

template <typename Message>
NodeMessage read_epoch(Reader& in) {
  Message m;
  m.key = in.key();
  m.epoch = in.epoch();
  return m;
}

NodeMessage read_leave(Reader& in) {
  Leave m;
  m.key = in.key();
  m.epoch = in.epoch();
  m.rank = in.number<std::uint16_t>("rank", 0, kMaxRanks - 1);
  m.clean = in.number<std::uint8_t>("clean", 0, 1) == 1;
  return m;
}

NodeMessage read_failed(Reader& in) {
  Failed m;
  m.key = in.key();
  m.epoch = in.epoch();
  m.reason = in.text("reason");
  return m;
}

NodeMessage read_describe_bucket(Reader& in) {
  DescribeBucket m;
  m.key = in.key();
  m.epoch = in.epoch();
  m.part = in.blob("part", kMaxBucketPartBytes);
  return m;
}

NodeMessage read_bucket_bounds(Reader& in) {
  BucketBounds m;
  m.key = in.key();
  m.epoch = in.epoch();
  m.learn_budget = in.share("learn_budget", kMaxBound);
  m.part = in.blob("part", kMaxBucketPartBytes);
  return m;
}

NodeMessage read(Reader& in, std::uint8_t type) {
  switch (static_cast<NodeType>(type)) {
    case NodeType::kJoin:
      return read_join(in);
    case NodeType::kWaitingFor:
      return read_waiting_for(in);
    case NodeType::kRefused:
      return read_refused(in);
    case NodeType::kPrepare:
      return read_prepare(in);
    case NodeType::kPrepared:
      return read_epoch<Prepared>(in);
    case NodeType::kCommit:
      return read_epoch<Commit>(in);
    case NodeType::kLeave:
      return read_leave(in);
    case NodeType::kFailed:
      return read_failed(in);
    case NodeType::kFinished:
      return read_epoch<Finished>(in);
    case NodeType::kDescribeBucket:
      return read_describe_bucket(in);
    case NodeType::kBucketBounds:
      return read_bucket_bounds(in);
  }
  in.reject(RejectReason::kUnknownType, "type");
  return {};
}

}  // namespace

std::vector<std::byte> encode(const NodeMessage& message) {
  return std::visit([](const auto& m) { return write(m); }, message);
}

Parsed<NodeMessage> parse_node_message(std::span<const std::byte> bytes) {
  Parsed<NodeMessage> result;
  if (bytes.size() > kMaxNodeMessageBytes) {
    result.rejection = {RejectReason::kTooLong, "more than 64 KiB"};
    return result;
  }
  Reader in(bytes);
  const std::uint8_t type = in.number<std::uint8_t>("type", 0, 255);
  NodeMessage message = read(in, type);
  result.rejection = in.finish();
  if (result.rejection.reason == RejectReason::kCount) result.message = std::move(message);
  return result;
}

}  // namespace gradplane::protocol
