// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <fmt/format.h>

#include <algorithm>

#include "control/config/join.h"
#include "control/config/key.h"
#include "control/config/option_table.h"
#include "control/config/units.h"

namespace gradplane::config {
namespace {

constexpr std::size_t kMaxNodeNameBytes = 63;
constexpr std::size_t kMaxListItems = 64;
constexpr std::int64_t kMaxPrefixLength = 30;
constexpr std::int64_t kMinPrefixLength = 8;
constexpr std::string_view kExactWord = "exact";

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool all_of(std::string_view text, std::string_view also) {
  return std::all_of(text.begin(), text.end(), [also](char c) {
    return is_alphanumeric(c) || also.find(c) != std::string_view::npos;
  });
}

std::optional<Value> number_in_range(const Option& option, std::optional<std::int64_t> number) {
  if (!number || *number < option.min || *number > option.max) return std::nullopt;
  if (*number % option.multiple_of != 0) return std::nullopt;
  return Value{.number = *number};
}

std::optional<Value> parse_choice(const Option& option, std::string_view text) {
  const auto found = std::find(option.choices.begin(), option.choices.end(), text);
  if (found == option.choices.end()) return std::nullopt;
  return Value{.number = found - option.choices.begin()};
}

std::optional<std::int64_t> parse_ipv4(std::string_view text) {
  std::int64_t address = 0;
  for (int part = 0; part < 4; ++part) {
    const std::size_t dot = part < 3 ? text.find('.') : text.size();
    if (dot == std::string_view::npos) return std::nullopt;
    const auto octet = parse_integer(text.substr(0, dot));
    if (!octet || *octet > 255) return std::nullopt;
    address = address * 256 + *octet;
    text.remove_prefix(part < 3 ? dot + 1 : dot);
  }
  return address;
}

/// A unicast address that a host may have: not 0/8, not 127/8, not 224/3.
bool is_host_address(std::int64_t address) {
  const std::int64_t first = address >> 24;
  return first > 0 && first != 127 && first < 224;
}

std::optional<Value> parse_address(std::string_view text) {
  const auto address = parse_ipv4(text);
  if (!address || !is_host_address(*address)) return std::nullopt;
  return Value{.number = *address};
}

std::optional<Value> parse_address_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  auto value = parse_address(text.substr(0, slash));
  const auto prefix = parse_integer(text.substr(slash + 1));
  if (!value || !prefix || *prefix < kMinPrefixLength || *prefix > kMaxPrefixLength) {
    return std::nullopt;
  }
  const std::int64_t hosts = std::int64_t{1} << (32 - *prefix);
  const std::int64_t host = value->number % hosts;
  if (host == 0 || host == hosts - 1) return std::nullopt;
  value->prefix_length = static_cast<std::uint8_t>(*prefix);
  return value;
}

std::optional<Value> parse_group_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto first = parse_ipv4(text.substr(0, slash));
  const auto prefix = parse_integer(text.substr(slash + 1));
  if (!first || !prefix || *prefix > kMaxGroupPrefixLength) return std::nullopt;
  const Value value{.number = *first, .prefix_length = static_cast<std::uint8_t>(*prefix)};
  const GroupRange range{.first = {static_cast<std::uint32_t>(value.number)},
                         .prefix_length = value.prefix_length};
  return is_valid(range) ? std::optional(value) : std::nullopt;
}

/// "0000:3b:00.1", with or without the domain.
bool is_pci_address(std::string_view text) {
  const auto matches = [text](std::string_view pattern) {
    if (text.size() != pattern.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool hex = is_alphanumeric(text[i]) && (text[i] | 0x20) <= 'f';
      if (pattern[i] == 'x' ? !hex : text[i] != pattern[i]) return false;
    }
    return text.back() >= '0' && text.back() <= '7';
  };
  return matches("xxxx:xx:xx.x") || matches("xx:xx.x");
}

// Paths and interfaces become part of DPDK device arguments, where a comma or a blank would begin
// another argument.
bool is_path(const Option& option, std::string_view text) {
  const auto length = static_cast<std::int64_t>(text.size());
  return text.starts_with('/') && all_of(text, "/._-+@:~") && length >= option.min &&
         length <= option.max;
}

bool is_interface(const Option& option, std::string_view text) {
  const auto length = static_cast<std::int64_t>(text.size());
  return all_of(text, "._-@:") && text != "." && text != ".." && length >= option.min &&
         length <= option.max;
}

/// A name as groupadd accepts it, or a number.
bool is_group(const Option& option, std::string_view text) {
  return !text.empty() && static_cast<std::int64_t>(text.size()) <= option.max &&
         text.front() != '-' && all_of(text, "_-.");
}

bool is_node_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNodeNameBytes && is_alphanumeric(text.front()) &&
         all_of(text, "._-");
}

std::optional<Value> text_if(bool accepted) {
  return accepted ? std::optional<Value>(Value{}) : std::nullopt;
}

std::optional<Value> parse_plain(const Option& option, std::string_view text) {
  switch (option.type) {
    case OptionType::kBoolean:
      if (text != "true" && text != "false") return std::nullopt;
      return Value{.number = text == "true" ? 1 : 0};
    case OptionType::kIntegerOrWord:
      if (text == option.word) return Value{};
      [[fallthrough]];
    case OptionType::kInteger:
      return number_in_range(option, parse_integer(text));
    case OptionType::kSizeOrAuto:
      if (text == "auto") return Value{};
      [[fallthrough]];
    case OptionType::kSize:
      return number_in_range(option, parse_with_unit(text, size_units()));
    case OptionType::kRate:
      return number_in_range(option, parse_with_unit(text, rate_units()));
    case OptionType::kTime:
      return number_in_range(option, parse_with_unit(text, time_units()));
    case OptionType::kChoice:
      return parse_choice(option, text);
    case OptionType::kNodeName:
      return text_if(is_node_name(text));
    case OptionType::kPath:
      return text_if(is_path(option, text));
    case OptionType::kInterface:
      return text_if(is_interface(option, text));
    case OptionType::kGroup:
      return text_if(is_group(option, text));
    case OptionType::kPciAddress:
      return text_if(is_pci_address(text));
    case OptionType::kAddress:
      return parse_address(text);
    case OptionType::kAddressPrefix:
      return parse_address_prefix(text);
    case OptionType::kGroupRange:
      return parse_group_range(text);
    case OptionType::kSecret:
      return text_if(parse_key(text).has_value());
    case OptionType::kTimeOrWord:
      if (text == option.word) return Value{};
      return number_in_range(option, parse_with_unit(text, time_units()));
    case OptionType::kShare:
      return number_in_range(option, parse_with_unit(text, share_units()));
    case OptionType::kNumber:
      return number_in_range(option, parse_with_unit(text, number_units()));
    case OptionType::kIntegerList:
    case OptionType::kPatternShares:
    case OptionType::kPatternNumbers:
    case OptionType::kPatternChoices:
    case OptionType::kChoiceShares:
    case OptionType::kNodePairs:
      return std::nullopt;
  }
  return std::nullopt;
}

/// A number of base units in the largest unit that holds it exactly.
std::string with_unit(std::int64_t number, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.base == 0) best = &unit;
  }
  return fmt::format("{} {}", number / best->base, best->name);
}

std::string unit_range(const Option& option, std::string_view what, std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) {
    if (!names.empty()) names += ", ";
    names += unit.name;
  }
  std::string text = fmt::format("{} from {} to {}", what, with_unit(option.min, units),
                                 with_unit(option.max, units));
  if (option.multiple_of > 1) {
    text += fmt::format(", a multiple of {}", with_unit(option.multiple_of, units));
  }
  return text + fmt::format(", with a unit ({})", names);
}

/// "5 %", "12.5 %".
std::string percent_text(std::int64_t share_ppm) {
  constexpr std::int64_t kPercent = kWholeShare / 100;
  if (share_ppm % kPercent == 0) return fmt::format("{} %", share_ppm / kPercent);
  return fmt::format("{:g} %", static_cast<double>(share_ppm) / kPercent);
}

double as_number(std::int64_t millionths) {
  return static_cast<double>(millionths) / static_cast<double>(kWholeNumber);
}

std::string number_range(const Option& option) {
  return fmt::format("a number from {:g} to {:g}", as_number(option.min), as_number(option.max));
}

std::string share_range(const Option& option) {
  return fmt::format("a share from {} to {}, such as 0.05 or 5 %", percent_text(option.min),
                     percent_text(option.max));
}

std::string pattern_lines(const Option& option, std::string_view what) {
  return fmt::format("at most {} lines 'pattern: {}' with patterns of at most {} bytes and ",
                     max_entries(option), what, bounds::kMaxPatternBytes);
}

/// Whether a text has only characters that names of tensors and jobs have. Patterns are printed in
/// quotes, so they may have none.
bool is_pattern(std::string_view text) {
  return !text.empty() && text.size() <= bounds::kMaxPatternBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; });
}

}  // namespace

std::optional<Value> parse_value(const Option& option, std::string_view text) {
  auto value = parse_plain(option, text);
  if (value) value->text = text;
  return value;
}

std::optional<Value> parse_list(const Option& option, std::span<const std::string> items) {
  if (option.type != OptionType::kIntegerList || items.size() > kMaxListItems) return std::nullopt;
  Value value;
  for (const std::string& item : items) {
    const auto number = number_in_range(option, parse_integer(item));
    if (!number) return std::nullopt;
    value.list.push_back(static_cast<std::uint32_t>(number->number));
  }
  value.text = fmt::format("[{}]", join(items));
  return value;
}

std::size_t max_entries(const Option& option) {
  if (option.type == OptionType::kNodePairs) return kMaxNodes;
  return option.type == OptionType::kChoiceShares ? option.choices.size() : bounds::kMaxPatterns;
}

std::optional<SectionEntry> parse_section_entry(const Option& option, std::string_view key,
                                                std::string_view text) {
  SectionEntry entry{.key = std::string(key)};
  if (option.type == OptionType::kNodePairs) {
    if (!is_node_name(key) || !is_node_name(text)) return std::nullopt;
    entry.name = text;
    return entry;
  }
  if (option.type == OptionType::kChoiceShares) {
    const auto choice = parse_choice(option, key);
    if (!choice) return std::nullopt;
    entry.choice = static_cast<std::size_t>(choice->number);
  } else if (!is_pattern(key)) {
    return std::nullopt;
  }
  if (option.type == OptionType::kPatternChoices) {
    const auto choice = parse_choice(option, text);
    if (!choice) return std::nullopt;
    entry.choice = static_cast<std::size_t>(choice->number);
    return entry;
  }
  const bool is_number = option.type == OptionType::kPatternNumbers;
  if (!is_number && text == kExactWord) return entry;
  const auto units = is_number ? number_units() : share_units();
  const auto number = number_in_range(option, parse_with_unit(text, units));
  if (!number) return std::nullopt;
  entry.millionths = number->number;
  return entry;
}

std::string accepted(const Option& option) {
  switch (option.type) {
    case OptionType::kBoolean:
      return "true or false";
    case OptionType::kInteger:
      return fmt::format("an integer from {} to {}", option.min, option.max);
    case OptionType::kIntegerOrWord:
      return fmt::format("{}, or an integer from {} to {}", option.word, option.min, option.max);
    case OptionType::kSize:
      return unit_range(option, "a size", size_units());
    case OptionType::kSizeOrAuto:
      return "auto, or " + unit_range(option, "a size", size_units());
    case OptionType::kRate:
      return unit_range(option, "a rate", rate_units());
    case OptionType::kTime:
      return unit_range(option, "a time", time_units());
    case OptionType::kChoice:
      return fmt::format("one of {}", join(option.choices));
    case OptionType::kNodeName:
      return fmt::format("a name of letters, digits, '.', '_' and '-', at most {} long",
                         kMaxNodeNameBytes);
    case OptionType::kPath:
      return fmt::format("an absolute path of letters, digits and /._-+@:~, at most {} bytes long",
                         option.max);
    case OptionType::kInterface:
      return fmt::format("an interface name, at most {} bytes long", option.max);
    case OptionType::kGroup:
      return fmt::format("the name or the number of a group, at most {} bytes long", option.max);
    case OptionType::kPciAddress:
      return "a PCI address such as 0000:3b:00.0";
    case OptionType::kAddress:
      return "an IPv4 address of a host, such as 10.77.0.254";
    case OptionType::kAddressPrefix:
      return fmt::format(
          "an IPv4 address of a host with a prefix length from {} to {}, such as 10.77.0.1/24",
          kMinPrefixLength, kMaxPrefixLength);
    case OptionType::kGroupRange:
      return fmt::format(
          "a prefix of IPv4 multicast addresses with a length from {} to {}, such as "
          "239.71.0.0/16, outside 232.0.0.0/8, that holds none of x.0.0.0/24 and x.128.0.0/24, "
          "which switches flood",
          kMinGroupPrefixLength, kMaxGroupPrefixLength);
    case OptionType::kSecret:
      return fmt::format("{} hex digits", 2 * kClusterKeyBytes);
    case OptionType::kTimeOrWord:
      return fmt::format("{}, or {}", option.word, unit_range(option, "a time", time_units()));
    case OptionType::kShare:
      return share_range(option);
    case OptionType::kNumber:
      return number_range(option);
    case OptionType::kPatternShares:
      return fmt::format("{}exact, or {}", pattern_lines(option, "share"), share_range(option));
    case OptionType::kPatternNumbers:
      return pattern_lines(option, "number") + number_range(option);
    case OptionType::kPatternChoices:
      return fmt::format("{}one of {}", pattern_lines(option, "choice"), join(option.choices));
    case OptionType::kChoiceShares:
      return fmt::format("lines 'kind: share' with one of {} and exact, or {}",
                         join(option.choices), share_range(option));
    case OptionType::kNodePairs:
      return fmt::format("at most {} lines 'node: node' with names of cluster.nodes", kMaxNodes);
    case OptionType::kIntegerList:
      return fmt::format("a list of at most {} integers from {} to {}", kMaxListItems, option.min,
                         option.max);
  }
  return {};
}

}  // namespace gradplane::config
