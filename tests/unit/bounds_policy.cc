// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/policy.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::bounds;
using api::BoundReason;

namespace {

constexpr Sizes kSizes{.block_bytes = 1024, .round_bytes = std::size_t{4} << 20};
constexpr std::uint32_t kBlock = 256;  // elements of fp32

using Named = std::vector<std::pair<std::string, std::uint32_t>>;  // name, elements

api::BucketBounds table(std::uint32_t bucket, const Named& tensors,
                        ElementType type = ElementType::kFloat32) {
  api::BucketBounds out{bucket, type, 0, {}};
  for (const auto& [name, elements] : tensors) {
    out.tensors.push_back({name, out.elements, elements, 0, BoundReason::kExact, ""});
    out.elements += elements;
  }
  return out;
}

/// Bounds by name. If several tensors have the same name, the last one is returned.
std::map<std::string, api::BoundedTensor> resolved(const Rules& rules,
                                                   const std::vector<api::BucketBounds>& tables) {
  std::map<std::string, api::BoundedTensor> found;
  for (const api::BucketBounds& t : resolve(rules, kSizes, tables)) {
    for (const api::BoundedTensor& tensor : t.tensors) found[tensor.name] = tensor;
  }
  return found;
}

Rules preset(Preset which) {
  Rules rules;
  rules.preset = which;
  return rules;
}

double used(const std::map<std::string, api::BoundedTensor>& tensors) {
  double sum = 0;
  double all = 0;
  for (const auto& [name, tensor] : tensors) {
    sum += static_cast<double>(tensor.bound) * tensor.elements;
    all += tensor.elements;
  }
  return sum / all;
}

/// The tables that DDP registers for a small residual network: the last bucket of the model first.
std::vector<api::BucketBounds> residual_network() {
  Named front = {{"conv1.weight", 20 * kBlock}, {"bn1.weight", 16}};
  Named back;
  for (int b = 0; b < 8; ++b) {
    const std::string block = "layer1." + std::to_string(b) + ".";
    Named& out = b < 4 ? front : back;
    out.emplace_back(block + "conv1.weight", 100 * kBlock);
    out.emplace_back(block + "bn1.weight", 16);
    out.emplace_back(block + "conv2.weight", 100 * kBlock);
    out.emplace_back(block + "bn2.weight", 16);
  }
  back.emplace_back("fc.weight", 40 * kBlock);
  back.emplace_back("fc.bias", 10);
  return {table(1, back), table(2, front)};
}

}  // namespace

TEST_CASE("the first pattern that matches decides, before kinds and the preset") {
  Rules rules = preset(Preset::kLtp);
  rules.patterns = {{"*.bias", 0.0F}, {"layer4.*", 0.05F}, {"layer*", 0.1F}};
  rules.kinds[static_cast<std::size_t>(Kind::kBias)] = 0.3F;
  rules.kinds[static_cast<std::size_t>(Kind::kNorm)] = 0.4F;
  const std::uint32_t large = 100 * kBlock;
  const auto tensors = resolved(rules, {table(1, {{"layer4.0.conv.weight", large},
                                                  {"layer4.0.conv.bias", large},
                                                  {"layer3.0.conv.weight", large},
                                                  {"stem.norm.weight", large},
                                                  {"stem.conv.weight", large}})});
  const auto& bias = tensors.at("layer4.0.conv.bias");
  CHECK(bias.bound == 0);
  CHECK(bias.why == BoundReason::kPattern);
  CHECK(bias.rule == "*.bias");
  CHECK(tensors.at("layer4.0.conv.weight").bound == 0.05F);
  CHECK(tensors.at("layer4.0.conv.weight").rule == "layer4.*");
  CHECK(tensors.at("layer3.0.conv.weight").bound == 0.1F);
  CHECK(tensors.at("stem.norm.weight").bound == 0.4F);
  CHECK(tensors.at("stem.norm.weight").why == BoundReason::kKind);
  CHECK(tensors.at("stem.norm.weight").rule == "norm");
  CHECK(tensors.at("stem.conv.weight").bound == kLtpBound);
  CHECK(tensors.at("stem.conv.weight").why == BoundReason::kPreset);
  CHECK(tensors.at("stem.conv.weight").rule == "ltp");
}

TEST_CASE("a tensor of several kinds gets the smallest of their bounds") {
  Rules rules = preset(Preset::kLtp);
  rules.kinds[static_cast<std::size_t>(Kind::kBias)] = 0.3F;
  rules.kinds[static_cast<std::size_t>(Kind::kNorm)] = 0.1F;
  rules.kinds[static_cast<std::size_t>(Kind::kLast)] = 0.0F;
  const std::uint32_t large = 100 * kBlock;
  const auto tensors =
      resolved(rules, {table(1, {{"a.weight", large}, {"ln.bias", large}, {"fc.bias", large}})});
  CHECK(tensors.at("ln.bias").bound == 0.1F);
  CHECK(tensors.at("ln.bias").rule == "norm");
  CHECK(tensors.at("fc.bias").bound == 0);
  CHECK(tensors.at("fc.bias").rule == "last");
}

TEST_CASE("a bound of less than a block is none") {
  // The tensors are not aligned to blocks, so one that fills 49 blocks has elements in 50.
  const auto tensors =
      resolved(preset(Preset::kMlt),
               {table(1, {{"a", 10}, {"b", 49 * kBlock}, {"c", 50 * kBlock}, {"d", 48 * kBlock}})});
  CHECK(tensors.at("a").bound == 0);
  CHECK(tensors.at("a").why == BoundReason::kTooSmall);
  CHECK(tensors.at("a").rule == "mlt: 2 % of 1 block");
  CHECK(tensors.at("b").bound == kMltBound);  // 2 % of 50 blocks is one block
  CHECK(tensors.at("c").bound == kMltBound);
  CHECK(tensors.at("d").bound == 0);
  CHECK(tensors.at("d").rule == "mlt: 2 % of 49 blocks");
}

TEST_CASE("whole numbers are exact, and so is everything without a rule") {
  Rules rules = preset(Preset::kLtp);
  rules.patterns = {{"*", 0.5F}};
  const Named large = {{"a", 100 * kBlock}};
  CHECK(resolved(rules, {table(1, large)}).at("a").bound == 0.5F);
  CHECK(resolved(rules, {table(1, large, ElementType::kInt32)}).at("a").bound == 0);
  const auto exact = resolved(preset(Preset::kExact), {table(1, large)});
  CHECK(exact.at("a").bound == 0);
  CHECK(exact.at("a").why == BoundReason::kExact);
}

TEST_CASE("what is to be learned begins exact, and what is too small for it says so") {
  const auto tensors = resolved(preset(Preset::kAuto), {table(1, {{"a", 2 * kBlock}, {"b", 3}})});
  CHECK(tensors.at("a").bound == 0);
  CHECK(tensors.at("a").why == BoundReason::kLearned);
  CHECK(tensors.at("b").why == BoundReason::kTooSmall);
}

TEST_CASE("first and last layer are found in the order in which DDP makes its buckets") {
  Rules rules = preset(Preset::kLtp);
  rules.kinds[static_cast<std::size_t>(Kind::kFirst)] = 0.0F;
  rules.kinds[static_cast<std::size_t>(Kind::kLast)] = 0.01F;
  std::vector<api::BucketBounds> tables = residual_network();
  const auto kind_of = [&](const std::string& name) {
    const auto tensors = resolved(rules, tables);
    const auto& tensor = tensors.at(name);
    return tensor.why == BoundReason::kKind ? tensor.rule : std::string("none");
  };
  CHECK(kind_of("conv1.weight") == "first");
  CHECK(kind_of("layer1.0.conv1.weight") == "none");
  CHECK(kind_of("layer1.7.conv2.weight") == "none");
  // DDP rebuilds its buckets. Kinds still follow the order of the first buckets.
  tables.push_back(table(3, {{"fc.bias", 10}, {"layer1.0.conv1.weight", 100 * kBlock}}));
  tables.push_back(table(4, {{"conv1.weight", 20 * kBlock}, {"fc.weight", 40 * kBlock}}));
  CHECK(kind_of("conv1.weight") == "first");
  CHECK(kind_of("layer1.0.conv1.weight") == "none");
  rules.kinds[static_cast<std::size_t>(Kind::kLast)] = 0.1F;
  CHECK(kind_of("fc.weight") == "last");
}

TEST_CASE("a bucket that is larger than a round keeps its order") {
  Rules rules;
  rules.kinds[static_cast<std::size_t>(Kind::kFirst)] = 0.1F;
  rules.kinds[static_cast<std::size_t>(Kind::kLast)] = 0.2F;
  const std::uint32_t full = kSizes.round_bytes / 4;
  const auto tensors = resolved(rules, {table(1, {{"a.w", full}}), table(2, {{"b.w", full}}),
                                        table(3, {{"c.w", 100 * kBlock}})});
  CHECK(tensors.at("a.w").rule == "first");
  CHECK(tensors.at("c.w").rule == "last");
}

TEST_CASE("without names the numbers give the order, and sizes the ends") {
  Rules rules;
  rules.kinds[static_cast<std::size_t>(Kind::kFirst)] = 0.1F;
  rules.kinds[static_cast<std::size_t>(Kind::kLast)] = 0.2F;
  const std::uint32_t bias = 20 * kBlock;
  const auto tensors = resolved(rules, {table(1, {{"param.10", 8 * bias}, {"param.11", bias}}),
                                        table(2, {{"param.9", 64 * bias}, {"param.2", bias}}),
                                        table(3, {{"param.0", 8 * bias}, {"param.1", bias}})});
  CHECK(tensors.at("param.0").rule == "first");
  CHECK(tensors.at("param.1").rule == "first");
  CHECK(tensors.at("param.2").why == BoundReason::kExact);
  CHECK(tensors.at("param.9").why == BoundReason::kExact);
  CHECK(tensors.at("param.10").rule == "last");
  CHECK(tensors.at("param.11").rule == "last");
}

TEST_CASE("plot: the ends exact, blocks decreasing, residual layers half, the budget used") {
  const auto tensors = resolved(preset(Preset::kPlot), residual_network());
  CHECK(tensors.at("conv1.weight").bound == 0);
  CHECK(tensors.at("conv1.weight").rule == "plot: first layer");
  CHECK(tensors.at("fc.weight").bound == 0);
  CHECK(tensors.at("fc.weight").rule == "plot: last layer");
  CHECK(tensors.at("layer1.2.conv2.weight").rule == "plot: block 4 of 9, residual");
  float before = kMaxBound;
  for (int b = 0; b < 6; ++b) {
    const std::string block = "layer1." + std::to_string(b) + ".";
    INFO(block);
    const float first = tensors.at(block + "conv1.weight").bound;
    const float second = tensors.at(block + "conv2.weight").bound;
    CHECK(first > 0);
    CHECK(second == Approx(first / 2));
    CHECK(first < before);
    before = first;
  }
  // Norms are too small for a bound, so they leave a little of the budget unused.
  CHECK(used(tensors) == Approx(kPlotBudget).epsilon(0.002));
}

TEST_CASE("plot: thresholds are those of the paper's sequence") {
  // Five residual blocks of one layer each: 1/5 + 2 d, ... with d = 0.8 x 2 / 20.
  Named tensors = {{"first.w", 1000 * kBlock}};
  for (int b = 0; b < 5; ++b) tensors.emplace_back("h." + std::to_string(b) + ".w", 1000 * kBlock);
  tensors.emplace_back("last.w", 1000 * kBlock);
  Rules rules = preset(Preset::kPlot);
  rules.budget = 0.1F;
  const auto bounds = resolved(rules, {table(1, tensors)});
  const double expected[] = {0.36, 0.28, 0.2, 0.12, 0.04};
  for (int b = 0; b < 5; ++b) {
    CHECK(bounds.at("h." + std::to_string(b) + ".w").bound == Approx(expected[b] * 0.7));
  }
}

TEST_CASE("plot: the fully connected layers of a VGG get the most") {
  Named tensors;
  for (int i = 0; i < 6; ++i) {
    tensors.emplace_back("features." + std::to_string(3 * i) + ".weight", 500 * kBlock);
  }
  for (int i = 0; i < 3; ++i) {
    tensors.emplace_back("classifier." + std::to_string(3 * i) + ".weight", 2000 * kBlock);
  }
  const auto bounds = resolved(preset(Preset::kPlot), {table(1, tensors)});
  CHECK(bounds.at("features.0.weight").bound == 0);
  CHECK(bounds.at("classifier.6.weight").bound == 0);
  CHECK(bounds.at("features.3.weight").bound > bounds.at("features.6.weight").bound);
  CHECK(bounds.at("classifier.0.weight").bound < bounds.at("classifier.3.weight").bound);
  CHECK(bounds.at("classifier.3.weight").bound > bounds.at("features.3.weight").bound);
  CHECK(bounds.at("classifier.3.weight").rule == "plot: fully connected 2 of 2");
  CHECK(used(bounds) == Approx(kPlotBudget).epsilon(0.01));
}

TEST_CASE("plot: without names it goes by order and says so") {
  Named tensors;
  for (int i = 0; i < 6; ++i) tensors.emplace_back("param." + std::to_string(i), 500 * kBlock + i);
  Rules rules = preset(Preset::kPlot);
  rules.budget = 0.05F;
  const auto bounds = resolved(rules, {table(1, tensors)});
  CHECK(bounds.at("param.0").bound == 0);
  CHECK(bounds.at("param.5").bound == 0);
  CHECK(bounds.at("param.1").bound > bounds.at("param.2").bound);
  CHECK(bounds.at("param.1").rule == "plot: 1 of 4 by order, names are not known");
}

TEST_CASE("plot: a model of one or two layers is exact") {
  CHECK(resolved(preset(Preset::kPlot), {table(1, {{"fc.w", 500 * kBlock}})}).at("fc.w").bound ==
        0);
  const auto two =
      resolved(preset(Preset::kPlot), {table(1, {{"a.w", 500 * kBlock}, {"b.w", 500 * kBlock}})});
  CHECK(used(two) == 0);
}

TEST_CASE("the summary counts what is in force") {
  const auto tables =
      resolve(preset(Preset::kLtp), kSizes, std::vector{table(1, {{"a", 90 * kBlock}, {"b", 1}})});
  CHECK(summary(preset(Preset::kLtp), tables) ==
        "ltp: 2 tensors in 1 bucket, 1 exact, 20 % of all elements may be missing");
}

TEST_CASE("a warning names the patterns that fit nothing, and each of the first tensors once") {
  Rules rules = preset(Preset::kLtp);
  rules.patterns = {{"*.bias", 0}, {"par*", 0}, {"layer4.*", 0.05F}};
  const auto tables = resolve(rules, kSizes,
                              std::vector{table(1, {{"param.0", 90 * kBlock}}),
                                          table(2, {{"param.0", kBlock}, {"param.1", kBlock}})});
  CHECK(unused_patterns(rules, tables) ==
        "no tensor's name so far fits *.bias, layer4.*; the first names are param.0, param.1; DDP "
        "tells names only under TORCH_DISTRIBUTED_DEBUG=INFO, else they are param.N");
  rules.patterns = {{"par*", 0}};
  CHECK(unused_patterns(rules, tables).empty());
}

TEST_CASE("tensors of fp32 get the wire type of the first pattern that fits") {
  Rules rules;
  rules.wire_types = {{"*.bias", WireType::kElements},
                      {"layer1.*", WireType::kInt8},
                      {"*", WireType::kBfloat16},
                      {"nothing.*", WireType::kFloat16}};
  const std::vector<api::BucketBounds> tables = {
      table(1, {{"layer1.bias", 9}, {"layer1.weight", 9}, {"layer2.weight", 9}}),
      table(2, {{"half.weight", 9}}, ElementType::kFloat16),
      table(3, {{"wide.weight", 9}}, ElementType::kFloat64)};
  const auto tensors = resolved(rules, tables);
  CHECK(tensors.at("layer1.bias").wire == WireType::kElements);
  CHECK(tensors.at("layer1.weight").wire == WireType::kInt8);
  CHECK(tensors.at("layer2.weight").wire == WireType::kBfloat16);
  CHECK(tensors.at("half.weight").wire == WireType::kElements);
  CHECK(tensors.at("wide.weight").wire == WireType::kElements);
  CHECK(tensors.at("layer2.weight").bound == 0);
  const std::string text = summary(rules, resolve(rules, kSizes, tables));
  INFO(text);
  CHECK(text.find("; 1 go as bf16; 1 go as int8") != std::string::npos);
  CHECK(unused_patterns(rules, tables).find("no tensor's name so far fits nothing.*") == 0);
  CHECK(summary({}, resolve({}, kSizes, tables)).find("go as") == std::string::npos);
}
