// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/sim/rounding_checker.h"

#include <algorithm>
#include <cmath>

#include "tests/sim/trainer.h"

namespace gradplane::sim {
namespace {

/// If a block lacked a rank, that rank's residual comes in a later round, on top of its
/// contribution. So many rounds may accumulate.
constexpr double kPiledUp = 4;
/// Rounding errors of fp32 itself, over all rounds of a run.
constexpr double kSlack = 1e-3;

}  // namespace

RoundingChecker::RoundingChecker(const Scenario& scenario, std::uint32_t ranks)
    : scenario_(scenario), ranks_(ranks), done_(scenario.rounds.size()) {
  if (!scenario.tolerance.rounds_off) return;
  for (const api::BucketBounds& table : scenario.tolerance.buckets) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.submitted.resize(table.elements);
    bucket.delivered.resize(table.elements);
    bucket.wire.resize(table.elements);
    for (std::uint32_t e = 0; e < table.elements; ++e) {
      for (std::uint32_t r = 0; r < ranks; ++r) bucket.submitted[e] += contribution(r, e);
    }
    for (const api::BoundedTensor& tensor : table.tensors) {
      std::fill_n(bucket.wire.begin() + tensor.offset_elements, tensor.elements, tensor.wire);
    }
  }
}

double RoundingChecker::contribution(std::uint32_t rank, std::uint32_t element) {
  const std::uint32_t mixed = (element + 1) * 2654435761U ^ (rank + 1) * 40503U * 9973U;
  return static_cast<double>((mixed * 2246822519U) >> 8) * 0x1p-23 - 1;
}

/// Every node rounds at most once, and the value that it rounds is at most the sum of all ranks.
double RoundingChecker::most_error(WireType wire) const {
  double step = 0;
  switch (wire) {
    case WireType::kElements:
      break;
    case WireType::kBfloat16:
      step = 0x1p-9;
      break;
    case WireType::kFloat16:
      step = 0x1p-12;
      break;
    case WireType::kInt8:
      step = 1.0 / 254;
  }
  return static_cast<double>(scenario_.plan.members.size()) * ranks_ * step;
}

std::string RoundingChecker::on_result(std::uint32_t round, const ipc::Completion& completion,
                                       std::span<const std::byte> slot) {
  if (done_[round]) return {};
  done_[round] = true;
  const std::size_t b = scenario_.rounds[round].bucket - 1u;
  Bucket& bucket = buckets_[b];
  for (std::size_t e = 0; e < bucket.delivered.size(); ++e) {
    bucket.delivered[e] += load(ElementType::kFloat32, slot.data() + e * sizeof(float));
  }
  ++bucket.rounds;
  bucket.lacks = bucket.lacks || completion.partial_blocks > 0;
  return bucket.lacks ? std::string() : check(b, bucket.rounds);
}

std::string RoundingChecker::check(std::size_t b, std::uint32_t rounds) const {
  const Bucket& bucket = buckets_[b];
  const bool carries = scenario_.tolerance.compensation == Compensation::kCarry;
  for (std::size_t e = 0; e < bucket.delivered.size(); ++e) {
    const double most =
        (carries ? 1 : rounds) * most_error(bucket.wire[e]) * (bucket.lacks ? kPiledUp : 1);
    const double error = bucket.delivered[e] - rounds * bucket.submitted[e];
    if (std::abs(error) <= most + kSlack) continue;
    return "I5: bucket " + std::to_string(b + 1) + ", element " + std::to_string(e) + ", sent as " +
           std::string(wire_type_name(bucket.wire[e])) + ", is " + std::to_string(error) +
           " from what was submitted in " + std::to_string(rounds) + " rounds, at most " +
           std::to_string(most);
  }
  return {};
}

std::string RoundingChecker::conclude() const {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const bool is_judged =
        !buckets_[b].lacks || (scenario_.tolerance.compensation == Compensation::kCarry &&
                               scenario_.tolerance.closing_rounds > 0);
    const std::string wrong = is_judged ? check(b, buckets_[b].rounds) : std::string();
    if (!wrong.empty()) return wrong;
  }
  return {};
}

void narrow_rounds(Scenario& scenario, WireType wire) {
  api::BucketBounds bucket{.bucket = 1, .elements = scenario.rounds[0].elements, .tensors = {{}}};
  bucket.tensors[0].elements = bucket.elements;
  bucket.tensors[0].wire = wire;
  scenario.tolerance.rounds_off = true;
  scenario.tolerance.buckets = {bucket};
  scenario.rounds.assign(scenario.rounds.size(), round_of(bucket));
}

}  // namespace gradplane::sim
