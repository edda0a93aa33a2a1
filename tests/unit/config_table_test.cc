// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "control/config/key.h"
#include "control/config/nearest.h"
#include "control/config/option_table.h"
#include "tests/support/catch.h"
#include "tests/unit/config_fixture.h"

using namespace gradplane;
using namespace gradplane::config;

namespace {

const std::filesystem::path kSource = GRADPLANE_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// All settings as text. Equal texts mean equal configurations.
std::string values_of(const ParsedConfig& parsed) {
  std::string out;
  for (const Setting& setting : parsed.settings) out += setting.key + "=" + setting.value + "\n";
  return out;
}

}  // namespace

TEST_CASE("every row of the option table is complete") {
  std::set<std::pair<OptionScope, std::string_view>> seen;
  for (const Option& option : options()) {
    CAPTURE(option.path);
    CHECK(seen.emplace(option.scope, option.path).second);
    CHECK(option.store != nullptr);
    CHECK(option.summary.ends_with('.'));
    CHECK_FALSE(accepted(option).empty());
    CHECK(option.min <= option.max);
    const bool has_choices = option.type == OptionType::kChoice ||
                             option.type == OptionType::kChoiceShares ||
                             option.type == OptionType::kPatternChoices;
    CHECK(has_choices == !option.choices.empty());
    const bool has_word =
        option.type == OptionType::kTimeOrWord || option.type == OptionType::kIntegerOrWord;
    CHECK(has_word == !option.word.empty());
    // An option has exactly one of: a default, a note how the default is found, or it is required.
    CHECK(int{!option.default_text.empty()} + int{!option.default_note.empty()} +
              int{option.required} ==
          1);
    if (!option.default_text.empty() && is_scalar(option)) {
      CHECK(parse_value(option, option.default_text));
    }
  }
}

TEST_CASE("the reference page is what the table says") {
  // After a change of the table run: build/control/cli/gradplane generate-config-reference >
  // docs/config-reference.md
  CHECK(read(kSource / "docs" / "config-reference.md") == reference_markdown());
}

TEST_CASE("every example loads, for every node, and so does its effective form") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    CAPTURE(entry.path().string());
    const ParsedConfig any = load_config(entry.path().string(),
                                         {.node_override = "", .host_name = "x", .any_node = true});
    REQUIRE(any.errors.empty());
    for (const NodeConfig& node : any.config->cluster.nodes) {
      const ParsedConfig parsed =
          load_config(entry.path().string(), {.node_override = node.name, .host_name = ""});
      REQUIRE(parsed.errors.empty());
      CHECK(parsed.config->self_node().name == node.name);
      const ParsedConfig again = parse(effective_yaml(parsed));
      for (const ConfigError& error : again.errors) UNSCOPED_INFO(error.text());
      REQUIRE(again.ok());
      CHECK(values_of(again) == values_of(parsed));
      CHECK(again.config->self == parsed.config->self);
    }
  }
  CHECK(count == 8);
}

TEST_CASE("the effective form says where each value comes from") {
  const std::string text = std::string(kBase) + "      port: {mtu: 9000}\n";
  const std::string effective =
      effective_yaml(parse_config(text, "f.yaml", {.node_override = "b", .host_name = ""}));
  CHECK(effective.find("  name: \"b\"                                  # --node\n") !=
        std::string::npos);
  CHECK(effective.find("  interface: \"eth1\"                          # f.yaml:5\n") !=
        std::string::npos);
  CHECK(effective.find("# default; this node: 9000 (f.yaml:14)\n") != std::string::npos);
  CHECK(effective.find("# default: the first node with aggregate: true\n") != std::string::npos);
  CHECK(effective.find("# default; here 1408 B\n") != std::string::npos);
  CHECK(effective.find("  # core:") != std::string::npos);
}

TEST_CASE("a key file is private, short and hex") {
  std::string folder = (std::filesystem::temp_directory_path() / "gp-key-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/key";
  Config config;
  config.cluster.key_file = path;
  CHECK(load_cluster_key(config).error().message.find("No such file") != std::string::npos);
  const auto write = [&](const std::string& content, mode_t mode) {
    std::ofstream(path) << content;
    REQUIRE(chmod(path.c_str(), mode) == 0);
  };
  write("00112233445566778899aabbccddeeff\n", 0600);
  REQUIRE(load_cluster_key(config).ok());
  CHECK(load_cluster_key(config).value()[15] == std::byte{0xff});
  write("00112233445566778899aabbccddeeff\n", 0640);
  CHECK(load_cluster_key(config).error().message.find("chmod 600") != std::string::npos);
  for (const char* bad :
       {"", "0011", "00112233445566778899aabbccddeefg", "00112233445566778899aabbccddeeff00"}) {
    write(bad, 0600);
    CHECK_FALSE(load_cluster_key(config).ok());
  }
  config.cluster.key_file = folder;
  CHECK_FALSE(load_cluster_key(config).ok());
  config.cluster.key = parse_key("ffffffffffffffffffffffffffffffff");
  CHECK(load_cluster_key(config).value()[0] == std::byte{0xff});
  std::filesystem::remove_all(folder);
}

TEST_CASE("edit distance") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("mtu", "mtu") == 0);
  CHECK(edit_distance("mtuu", "mtu") == 1);
  CHECK(edit_distance("mut", "mtu") == 1);
  CHECK(edit_distance("af_pakcet", "af_packet") == 1);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance(std::string(65, 'a'), "a") == SIZE_MAX);
}
