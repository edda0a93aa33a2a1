// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/protocol/node_messages.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "control/protocol/node_fields.h"
#include "dataplane/base/bytes.h"

namespace gradplane::protocol {

namespace {

/// The first byte of a message is its place in NodeMessage, counted from 1. As these numbers are on
/// the wire, a new kind goes to the end.
constexpr std::size_t kFirstType = 1;
constexpr std::size_t kTypeCount = std::variant_size_v<NodeMessage>;
static_assert(kFirstType + kTypeCount <= 256);
static_assert(kMaxPlanBytes <= 0xffff, "a length has 16 bits");

/// The archive that writes. Texts and lists are cut to their bounds.
class Writer {
 public:
  Writer() : bytes_(kMaxNodeMessageBytes), out_(bytes_) {}

  template <std::unsigned_integral T>
  void number(const char*, T value, std::uint64_t, std::uint64_t) {
    out_.write(value);
  }
  void flag(const char*, bool value) { out_.write(static_cast<std::uint8_t>(value ? 1 : 0)); }
  template <typename Enum>
  void choice(const char*, Enum value, Enum) {
    out_.write(static_cast<std::uint8_t>(value));
  }
  void share(const char*, float value, float) { out_.write(std::bit_cast<std::uint32_t>(value)); }
  void raw(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) out_.write(std::to_integer<std::uint8_t>(byte));
  }
  void blob(const char*, std::span<const std::byte> bytes, std::size_t max_bytes) {
    const std::size_t size = std::min(bytes.size(), max_bytes);
    out_.write(static_cast<std::uint16_t>(size));
    raw(bytes.first(size));
  }
  void text(const char* name, const std::string& text) {
    const std::string clean = printable(text, kMaxNodeTextBytes);
    blob(name, std::as_bytes(std::span(clean)), kMaxNodeTextBytes);
  }
  void numbers(const char*, const std::vector<std::uint16_t>& list, std::size_t max_count,
               std::size_t) {
    const std::size_t count = std::min(list.size(), max_count);
    out_.write(static_cast<std::uint16_t>(count));
    for (std::size_t i = 0; i < count; ++i) out_.write(list[i]);
  }
  template <typename Entry>
  void entries(const char*, const std::vector<Entry>& list, std::size_t max_count) {
    const std::size_t count = std::min(list.size(), max_count);
    out_.write(static_cast<std::uint16_t>(count));
    for (std::size_t i = 0; i < count; ++i) fields(*this, list[i]);
  }
  std::vector<std::byte> take() {
    bytes_.resize(out_.size());
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
  ByteWriter out_;
};

/// The archive that reads. It remembers the first field that is out of range.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : in_(bytes) {}

  template <std::unsigned_integral T>
  void number(const char* name, T& value, std::uint64_t min, std::uint64_t max) {
    value = in_.read<T>();
    if (in_.ok() && (value < min || value > max)) reject(RejectReason::kOutOfRange, name);
  }
  void flag(const char* name, bool& value) {
    std::uint8_t byte = 0;
    number(name, byte, 0, 1);
    value = byte == 1;
  }
  template <typename Enum>
  void choice(const char* name, Enum& value, Enum last) {
    std::uint8_t byte = 0;
    number(name, byte, 0, static_cast<std::uint8_t>(last));
    value = static_cast<Enum>(byte);
  }
  void share(const char* name, float& value, float max) {
    value = std::bit_cast<float>(in_.read<std::uint32_t>());
    if (value >= 0 && value <= max) return;  // false for NaN
    if (in_.ok()) reject(RejectReason::kOutOfRange, name);
    value = 0;
  }
  void raw(std::span<std::byte> bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(in_.read<std::uint8_t>());
  }
  void blob(const char* name, std::vector<std::byte>& bytes, std::size_t max_bytes) {
    const std::size_t size = in_.read<std::uint16_t>();
    if (size > max_bytes) reject(RejectReason::kOutOfRange, name);
    if (size > in_.rest().size()) reject(RejectReason::kTruncated, name);
    bytes.assign(ok() ? size : 0, std::byte{0});
    raw(bytes);
  }
  void text(const char* name, std::string& text) {
    std::vector<std::byte> raw;
    blob(name, raw, kMaxNodeTextBytes);
    text = printable({reinterpret_cast<const char*>(raw.data()), raw.size()}, kMaxNodeTextBytes);
  }
  /// A list of numbers, each below `end`.
  void numbers(const char* name, std::vector<std::uint16_t>& list, std::size_t max_count,
               std::size_t end) {
    const std::size_t count = in_.read<std::uint16_t>();
    if (count > max_count) reject(RejectReason::kOutOfRange, name);
    if (count * 2 > in_.rest().size()) reject(RejectReason::kTruncated, name);
    list.assign(ok() ? count : 0, 0);
    for (std::uint16_t& each : list) number(name, each, 0, end - 1);
  }

  /// Reads entries until one is not valid.
  template <typename Entry>
  void entries(const char* name, std::vector<Entry>& list, std::size_t max_count) {
    const std::size_t count = in_.read<std::uint16_t>();
    if (count > max_count) reject(RejectReason::kOutOfRange, name);
    list.clear();
    while (ok() && list.size() < count) fields(*this, list.emplace_back());
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

/// Checks fields of a message against each other.
template <typename Message>
void check_whole(Reader&, const Message&) {}

void check_whole(Reader& in, const Join& m) {
  for (const std::uint16_t rank : m.ranks)
    if (rank >= m.world_size) in.reject(RejectReason::kOutOfRange, "ranks");
  std::vector<std::uint16_t> sorted = m.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    in.reject(RejectReason::kOutOfRange, "ranks");
}

void check_whole(Reader& in, const Prepare& m) {
  const JobSettings& s = m.settings;
  if (s.block_bytes % kBlockAlignBytes != 0) in.reject(RejectReason::kOutOfRange, "block_bytes");
  if (m.epoch < m.first_epoch) in.reject(RejectReason::kOutOfRange, "epoch");
  if (s.round_bytes < s.block_bytes || s.round_bytes % kBlockAlignBytes != 0)
    in.reject(RejectReason::kOutOfRange, "round_bytes");
}

bool repeats(std::vector<std::uint16_t> list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

void check_whole(Reader& in, const Report& m) {
  const bool sane = !m.has_job() || (m.world_size > 0 && m.epoch != m.next_epoch);
  if (!sane || (m.ending && m.epoch_before == 0)) in.reject(RejectReason::kOutOfRange, "epoch");
}

void check_whole(Reader& in, const Replan& m) {
  if (repeats(m.roots)) in.reject(RejectReason::kOutOfRange, "roots");
  if (repeats(m.without)) in.reject(RejectReason::kOutOfRange, "without");
}

void check_whole(Reader& in, const ReportLinks& m) {
  std::vector<std::uint16_t> senders;
  for (const LinkSample& link : m.links) senders.push_back(link.from);
  if (repeats(std::move(senders))) in.reject(RejectReason::kOutOfRange, "from");
}

template <std::size_t kIndex>
NodeMessage read_as(Reader& in) {
  std::variant_alternative_t<kIndex, NodeMessage> m;
  in.raw(m.key);
  fields(in, m);
  check_whole(in, m);
  return m;
}

template <std::size_t... kIndex>
NodeMessage read(Reader& in, std::size_t index, std::index_sequence<kIndex...>) {
  constexpr NodeMessage (*kReaders[])(Reader&) = {read_as<kIndex>...};
  return kReaders[index](in);
}

}  // namespace

std::vector<std::byte> encode(const NodeMessage& message) {
  Writer out;
  out.number("type", static_cast<std::uint8_t>(kFirstType + message.index()), 0, 0);
  std::visit(
      [&out](const auto& m) {
        out.raw(m.key);
        fields(out, m);
      },
      message);
  return out.take();
}

Parsed<NodeMessage> parse_node_message(std::span<const std::byte> bytes) {
  Parsed<NodeMessage> result;
  if (bytes.size() > kMaxNodeMessageBytes) {
    result.rejection = {RejectReason::kTooLong, "more than 64 KiB"};
    return result;
  }
  Reader in(bytes);
  std::uint8_t type = 0;
  in.number("type", type, 0, 255);
  NodeMessage message;
  if (type >= kFirstType && type < kFirstType + kTypeCount)
    message = read(in, type - kFirstType, std::make_index_sequence<kTypeCount>());
  else
    in.reject(RejectReason::kUnknownType, "type");
  result.rejection = in.finish();
  if (result.rejection.reason == RejectReason::kCount) result.message = std::move(message);
  return result;
}

}  // namespace gradplane::protocol
