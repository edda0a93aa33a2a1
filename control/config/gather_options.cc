// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <array>

#include "control/config/option_table.h"

namespace gradplane::config {
namespace {

using enum OptionType;

// These repeat the results of name_of(), which is not constexpr, as the table must be.
constexpr std::array<std::string_view, bounds::kPresets> kPresetNames = {"exact", "ltp", "mlt",
                                                                         "plot", "auto"};
constexpr std::array<std::string_view, bounds::kKinds> kKindNames = {"bias", "norm", "embedding",
                                                                     "first", "last"};
constexpr std::array<std::string_view, 3> kCompensations = {"zero", "rescale", "carry"};
static_assert(kCompensations.size() == static_cast<std::size_t>(Compensation::kCarry) + 1);

constexpr std::int64_t kMaxBoundPpm = static_cast<std::int64_t>(double{kMaxBound} * kWholeShare);
constexpr std::int64_t kMaxStrictRounds = 1000000;
// The smallest times are above 0, because 0 stands for the options' words.
constexpr std::int64_t kMinSlackNs = 1000;
constexpr std::int64_t kMaxSlackNs = 60000000000;
constexpr std::int64_t kMinAbsentNs = 1000000;
constexpr std::int64_t kMaxAbsentNs = 600000000000;

float share_of(std::int64_t ppm) {
  return static_cast<float>(ppm) / static_cast<float>(kWholeShare);
}

void store_patterns(const Target& t, const Value& v) {
  for (const SectionEntry& entry : v.entries) {
    t.config->gather.rules.patterns.push_back({entry.key, share_of(entry.millionths)});
  }
}

void store_wire_types(const Target& t, const Value& v) {
  for (const SectionEntry& entry : v.entries) {
    t.config->gather.rules.wire_types.push_back({entry.key, static_cast<WireType>(entry.choice)});
  }
}

void store_kinds(const Target& t, const Value& v) {
  for (const SectionEntry& entry : v.entries) {
    t.config->gather.rules.kinds[entry.choice] = share_of(entry.millionths);
  }
}

// One row per option, in the order of the reference page.
constexpr Option kGatherOptions[] = {
    {.path = "gather.preset",
     .type = kChoice,
     .choices = kPresetNames,
     .default_text = "exact",
     .summary = "How much of each rank's blocks of a tensor a round may miss, where nothing below "
                "says otherwise. `exact`: nothing; `ltp`: 20 % of each; `mlt`: 2 % of each; "
                "`plot`: by the place in the network, the first and last layer nothing; `auto`: "
                "learned while training. The coordinator's file counts.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->gather.rules.preset = static_cast<bounds::Preset>(v.number);
         }},
    {.path = "gather.bounds",
     .type = kPatternShares,
     .max = kMaxBoundPpm,
     .default_text = "{}",
     .summary = "Bounds by the tensor's name, as DDP calls the parameter, else `param.` and its "
                "number. `*` is any text, `?` any one byte. The first line that matches decides, "
                "before `gather.kinds` and `gather.preset`. The coordinator's file counts.",
     .store = store_patterns},
    {.path = "gather.kinds",
     .type = kChoiceShares,
     .max = kMaxBoundPpm,
     .choices = kKindNames,
     .default_text = "{}",
     .summary = "Bounds by the tensor's kind, told from its name; first and last are the model's "
                "first and last layer. The smallest counts for a tensor of several kinds. The "
                "coordinator's file counts.",
     .store = store_kinds},
    {.path = "gather.budget",
     .type = kShare,
     .max = kMaxBoundPpm,
     .default_note = "20 % with plot, 1 % with auto",
     .summary = "With plot and auto: the share of all elements that may be missing. The "
                "coordinator's file counts.",
     .store = [](const Target& t,
                 const Value& v) { t.config->gather.rules.budget = share_of(v.number); }},
    {.path = "gather.compensation",
     .type = kChoice,
     .choices = kCompensations,
     .default_text = "rescale",
     .summary = "What becomes of a block that misses ranks. `zero`: the sum of the others; "
                "`rescale`: that sum times ranks / others; `carry`: the sum, and what did not "
                "enter it is added to its rank's next gradient of that tensor.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->gather.compensation = static_cast<Compensation>(v.number);
         }},
    {.path = "gather.wire_types",
     .type = kPatternChoices,
     .choices = kWireTypeNames,
     .default_text = "{}",
     .summary = "How gradients of fp32 go on the network, by the tensor's name as in "
                "`gather.bounds`: as they are, in half the bytes (`bf16`, `fp16`) or in a quarter "
                "(`int8`, with a scale for each block). Sums are in fp32. The first line that "
                "matches decides; a tensor that none matches goes as it is. With compensation "
                "`carry`, rounding errors are carried, too. The coordinator's file counts.",
     .store = store_wire_types},
    {.path = "gather.strict_rounds",
     .type = kInteger,
     .max = kMaxStrictRounds,
     .default_text = "10",
     .summary = "Rounds of each bucket that miss nothing at first, when a loss costs most.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->gather.strict_rounds = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "gather.floor",
     .type = kShare,
     .max = kWholeShare,
     .default_text = "0.5",
     .summary = "No round closes with less of any rank's blocks, save of an absent rank.",
     .store =
         [](const Target& t, const Value& v) {
           t.config->gather.floor_ppm = static_cast<std::uint32_t>(v.number);
         }},
    {.path = "gather.slack",
     .type = kTimeOrWord,
     .min = kMinSlackNs,
     .max = kMaxSlackNs,
     .word = "auto",
     .default_text = "auto",
     .summary = "Between the time in which the slowest rank should be done and the deadline of a "
                "round. `auto`: learned from their spread, but 30 ms with preset ltp.",
     .store =
         [](const Target& t, const Value& v) {
           if (v.number > 0) t.config->gather.slack = Duration::ns(v.number);
         }},
    {.path = "gather.absent_after",
     .type = kTimeOrWord,
     .min = kMinAbsentNs,
     .max = kMaxAbsentNs,
     .word = "never",
     .default_text = "never",
     .summary = "How long a rank may send nothing of a round that others have begun, until the "
                "round goes on without it and says so. At most 8 rounds in a row go on "
                "without it; then they wait for it.",
     .store =
         [](const Target& t, const Value& v) {
           if (v.number > 0) t.config->gather.absent_after = Duration::ns(v.number);
         }},
};

}  // namespace

std::span<const Option> gather_options() {
  return kGatherOptions;
}

std::string_view name_of(Compensation compensation) {
  return kCompensations[static_cast<std::size_t>(compensation)];
}

}  // namespace gradplane::config
