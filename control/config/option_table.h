// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/config/config.h"

/// The table of all options. The parser, the validator, `check-config --effective` and the
/// reference page are loops over it. To add an option, add a row.
namespace gradplane::config {

enum class OptionType : std::uint8_t {
  kBoolean,
  kInteger,
  kSize,
  kRate,
  kTime,
  kChoice,
  kSizeOrAuto,
  kTimeOrWord,     // Option::word stands for 0
  kIntegerOrWord,  // here, too
  kNumber,         // a decimal, held in millionths
  kShare,
  kPatternShares,   // a section of the operator's own keys: pattern -> share
  kPatternNumbers,  // pattern -> number
  kPatternChoices,  // pattern -> choice
  kChoiceShares,    // a section of keys that are choices: choice -> share
  kNodePairs,       // a section of names of nodes: node -> node
  kNodeName,
  kPath,
  kInterface,
  kGroup,
  kPciAddress,
  kAddress,
  kAddressPrefix,
  kGroupRange,
  kSecret,
  kIntegerList,
};

/// Where an option may stand in the file. kGlobal: once. kPort: in port, and in the section port of
/// a node, where it holds for this node alone. The others: in each entry of a list, which is
/// cluster.nodes, plan.trees, network.sites or network.links.
enum class OptionScope : std::uint8_t { kGlobal, kPort, kNode, kTree, kSite, kLink };

/// A share and a number as an option holds them: in millionths.
inline constexpr std::int64_t kWholeShare = 1000000;
inline constexpr std::int64_t kWholeNumber = 1000000;

/// One line of a section whose keys the operator chooses.
struct SectionEntry {
  std::string key;
  std::size_t choice = 0;       // index of a choice, with kChoiceShares and kPatternChoices
  std::int64_t millionths = 0;  // a share or a number
  std::string name = {};        // the name of a node, with kNodePairs
};

/// A scalar, a list of scalars or a section of the file, converted as its option's type says.
struct Value {
  std::string text = {};
  /// The value in base units: an integer, bytes, bits per second, ns, a boolean, the index of a
  /// choice, an IPv4 address or millionths. 0 stands for `auto` and for Option::word.
  std::int64_t number = 0;
  std::uint8_t prefix_length = 0;
  std::vector<std::uint32_t> list = {};
  std::vector<SectionEntry> entries = {};
};
template <typename T>
T as(const Value& v) {
  return static_cast<T>(v.number);
}

inline constexpr std::int64_t kKiB = std::int64_t{1} << 10;
inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// Options that name a node are kept as text until the whole node list is known.
struct NodeReferences {
  std::string self;
  std::string coordinator;
  std::string root;
  struct Tree {
    std::string root;
    std::vector<SectionEntry> parents;
  };
  std::vector<Tree> trees;
  /// An entry of network.links, which names sites.
  struct Link {
    std::string from;
    std::string to;
    std::uint64_t bits_per_s = 0;
    std::optional<std::uint64_t> back_bits_per_s;
    Duration rtt;
    std::uint32_t loss_ppm = 0;
  };
  std::vector<Link> links;
  plan::Routing routing = plan::Routing::kFewestLinks;
};

/// What a row's store() may write to. The pointers after `references` are set only for options of
/// their scope.
struct Target {
  Config* config = nullptr;
  NodeReferences* references = nullptr;
  PortConfig* port = nullptr;
  NodeConfig* node = nullptr;
  PlanTree* tree = nullptr;
  NodeReferences::Tree* tree_references = nullptr;
  plan::Site* site = nullptr;
  NodeReferences::Link* link = nullptr;
};

struct Option {
  std::string_view path;  // below its entry in a list: "name"; else from the top
  OptionScope scope = OptionScope::kGlobal;
  OptionType type = OptionType::kBoolean;
  std::int64_t min = 0;          // in base units
  std::int64_t max = INT64_MAX;  // in base units; for texts the length in bytes
  std::int64_t multiple_of = 1;
  std::span<const std::string_view> choices = {};
  std::string_view word = {};          // a word that is accepted instead of a number, as "never"
  std::string_view default_text = {};  // empty: no default
  bool required = false;
  std::string_view default_note = {};  // how the default is found, when it is not a constant
  std::string_view summary;
  void (*store)(const Target&, const Value&) = nullptr;
};

/// sun_path of a Unix socket holds 107 bytes and a zero.
inline constexpr std::int64_t kMaxSocketPathBytes = 107;

std::span<const Option> options();
/// Parts of options(), each in a file of its name. congestion_options() includes grants.
std::span<const Option> port_options();
std::span<const Option> gather_options();
std::span<const Option> congestion_options();
std::span<const Option> plan_options();
std::span<const Option> network_options();
std::span<const Option> quota_options();
std::span<const Option> multicast_options();
std::span<const Option> training_options();

/// Whether the option is a section of lines `key: value`.
constexpr bool is_section(const Option& option) {
  using enum OptionType;
  return option.type == kPatternShares || option.type == kPatternNumbers ||
         option.type == kPatternChoices || option.type == kChoiceShares ||
         option.type == kNodePairs;
}
/// Whether the option's value is a scalar, so that a text can be its default.
constexpr bool is_scalar(const Option& option) {
  return option.type != OptionType::kIntegerList && !is_section(option);
}

/// The value of a text for an option, or nothing when the text is not accepted.
std::optional<Value> parse_value(const Option& option, std::string_view text);

/// The value of a list's items, or nothing when they are not accepted. Only for kIntegerList.
std::optional<Value> parse_list(const Option& option, std::span<const std::string> items);

/// One line of a section, or nothing when its key or its value is not accepted.
std::optional<SectionEntry> parse_section_entry(const Option& option, std::string_view key,
                                                std::string_view text);

/// The largest number of lines of the option's section.
std::size_t max_entries(const Option& option);

/// "a size from 512 B to 4 MiB with a unit (B, KiB, MiB, GiB)": for errors and the reference.
std::string accepted(const Option& option);

}  // namespace gradplane::config
