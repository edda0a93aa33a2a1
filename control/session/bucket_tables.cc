// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/session/bucket_tables.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <utility>

#include "dataplane/base/bytes.h"

namespace gradplane::session {
namespace {

constexpr std::size_t kPartHeaderBytes = 4 + 1 + 4 + 2 + 2 + 2;
constexpr std::size_t kTensorBytes = 4 + 4 + 4 + 1 + 1 + 2 + 2;  // beside its texts
static_assert(kPartHeaderBytes + kTensorBytes + kMaxTensorNameBytes + kMaxRuleBytes <=
                  protocol::kMaxBucketPartBytes,
              "every part holds a tensor");
static_assert(kMaxTensorsPerBucket <= 0xffff && kMaxBuckets <= 0xffff);

std::size_t bytes_of(const api::BoundedTensor& tensor) {
  return kTensorBytes + std::min(tensor.name.size(), kMaxTensorNameBytes) +
         std::min(tensor.rule.size(), kMaxRuleBytes);
}

void write_text(ByteWriter& out, const std::string& text, std::size_t max_bytes) {
  const std::string clean = protocol::printable(text, max_bytes);
  out.write(static_cast<std::uint16_t>(clean.size()));
  for (const char c : clean) out.write(static_cast<std::uint8_t>(c));
}

std::vector<std::byte> encode_part(const api::BucketBounds& table, std::size_t first,
                                   std::size_t end) {
  std::vector<std::byte> bytes(protocol::kMaxBucketPartBytes);
  ByteWriter out(bytes);
  out.write(table.bucket);
  out.write(static_cast<std::uint8_t>(table.type));
  out.write(table.elements);
  out.write(static_cast<std::uint16_t>(table.tensors.size()));
  out.write(static_cast<std::uint16_t>(first));
  out.write(static_cast<std::uint16_t>(end - first));
  for (std::size_t t = first; t < end; ++t) {
    const api::BoundedTensor& tensor = table.tensors[t];
    out.write(tensor.offset_elements);
    out.write(tensor.elements);
    out.write(std::bit_cast<std::uint32_t>(tensor.bound));
    out.write(static_cast<std::uint8_t>(tensor.why));
    out.write(static_cast<std::uint8_t>(tensor.wire));
    write_text(out, tensor.name, kMaxTensorNameBytes);
    write_text(out, tensor.rule, kMaxRuleBytes);
  }
  bytes.resize(out.size());
  return bytes;
}

/// Reads a text; nothing when it is longer than it may be.
std::optional<std::string> read_text(ByteReader& in, std::size_t max_bytes) {
  const std::size_t size = in.read<std::uint16_t>();
  if (size > max_bytes || size > in.rest().size()) return std::nullopt;
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(in.read<std::uint8_t>());
  return protocol::printable(text, max_bytes);
}

bool read_tensor(ByteReader& in, api::BoundedTensor& tensor) {
  tensor.offset_elements = in.read<std::uint32_t>();
  tensor.elements = in.read<std::uint32_t>();
  tensor.bound = std::bit_cast<float>(in.read<std::uint32_t>());
  const std::uint8_t why = in.read<std::uint8_t>();
  const std::uint8_t wire = in.read<std::uint8_t>();
  auto name = read_text(in, kMaxTensorNameBytes);
  auto rule = name ? read_text(in, kMaxRuleBytes) : std::nullopt;
  const bool sane = tensor.bound >= 0 && tensor.bound <= kMaxBound &&  // false for NaN
                    why <= static_cast<std::uint8_t>(api::BoundReason::kTooSmall) &&
                    is_wire_type(wire);
  if (!in.ok() || !name || !rule || !sane) return false;
  tensor.why = static_cast<api::BoundReason>(why);
  tensor.wire = static_cast<WireType>(wire);
  tensor.name = std::move(*name);
  tensor.rule = std::move(*rule);
  return true;
}

}  // namespace

std::vector<std::vector<std::byte>> encode_table(const api::BucketBounds& table) {
  std::vector<std::vector<std::byte>> parts;
  std::size_t first = 0;
  while (first < table.tensors.size()) {
    std::size_t end = first;
    std::size_t bytes = kPartHeaderBytes;
    while (end < table.tensors.size() &&
           bytes + bytes_of(table.tensors[end]) <= protocol::kMaxBucketPartBytes) {
      bytes += bytes_of(table.tensors[end++]);
    }
    parts.push_back(encode_part(table, first, end));
    first = end;
  }
  return parts;
}

Result<TablePart> decode_table_part(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  TablePart part;
  part.bucket = in.read<std::uint32_t>();
  const std::uint8_t type = in.read<std::uint8_t>();
  part.elements = in.read<std::uint32_t>();
  part.total = in.read<std::uint16_t>();
  part.first = in.read<std::uint16_t>();
  const std::size_t count = in.read<std::uint16_t>();
  if (!in.ok() || !is_element_type(type)) return Error{"its begin makes no sense"};
  part.type = static_cast<ElementType>(type);
  if (count * kTensorBytes > in.rest().size()) return Error{"it ends early"};
  part.tensors.resize(count);
  for (api::BoundedTensor& tensor : part.tensors) {
    if (!read_tensor(in, tensor)) return Error{"one of its tensors makes no sense"};
  }
  if (!in.rest().empty()) return Error{"it goes on after its end"};
  return part;
}

Status TableCollector::check(const TablePart& part) const {
  const std::string who = "bucket " + std::to_string(part.bucket);
  if (part.bucket == 0 || part.bucket > kMaxBuckets) {
    return Error{who + ": ids are 1 to " + std::to_string(kMaxBuckets)};
  }
  if (taken_[part.bucket]) return Error{who + " is described a second time; take a new id"};
  if (part.total == 0 || part.total > kMaxTensorsPerBucket || part.tensors.empty() ||
      part.tensors.size() > part.total || part.first > part.total - part.tensors.size()) {
    return Error{who + " has 1 to " + std::to_string(kMaxTensorsPerBucket) + " tensors"};
  }
  const bool goes_on = open_ && open_->bucket == part.bucket && open_->type == part.type &&
                       open_->elements == part.elements && open_total_ == part.total &&
                       open_->tensors.size() == part.first;
  if (open_ ? !goes_on : part.first != 0) {
    return Error{who + ": its parts do not come in order"};
  }
  const std::uint64_t limit = kMaxRoundBytes / element_bytes(part.type);
  std::uint64_t end = 0;
  if (goes_on) end = open_->tensors.back().offset_elements + open_->tensors.back().elements;
  for (const api::BoundedTensor& tensor : part.tensors) {
    const std::uint64_t begin = tensor.offset_elements;
    if (tensor.elements == 0 || begin < end || begin + tensor.elements > limit) {
      return Error{who + ": its tensors do not lie in a round one behind the other"};
    }
    end = begin + tensor.elements;
  }
  if (part.elements > limit || (part.elements != 0 && part.elements < end)) {
    return Error{who + ": it is not as large as its tensors"};
  }
  return Nothing{};
}

Result<std::optional<api::BucketBounds>> TableCollector::add(TablePart part) {
  const Status good = check(part);
  if (!good) {
    open_.reset();
    return good.error();
  }
  if (!open_) {
    open_ = api::BucketBounds{part.bucket, part.type, part.elements, {}};
    open_total_ = part.total;
  }
  std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(open_->tensors));
  if (open_->tensors.size() < open_total_) return std::optional<api::BucketBounds>();
  taken_[open_->bucket] = true;
  if (tensors_ + open_total_ > kMaxTensorsPerJob) {
    ++left_out_;
    open_.reset();
    return std::optional<api::BucketBounds>();
  }
  tensors_ += open_total_;
  const api::BoundedTensor& last = open_->tensors.back();
  if (open_->elements == 0) open_->elements = last.offset_elements + last.elements;
  return std::exchange(open_, std::nullopt);
}

}  // namespace gradplane::session
