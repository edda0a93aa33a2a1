// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/requests.h"

#include <nlohmann/json.hpp>

namespace gradplane::lab {
namespace {

using nlohmann::json;

json settings_json(const LinkSettings& s) {
  json result = {{"rate_bits_per_second", s.rate_bits_per_second},
                 {"delay_ns", s.delay.count_ns()},
                 {"jitter_ns", s.jitter.count_ns()},
                 {"queue_bytes", s.queue_bytes},
                 {"ecn_threshold_bytes", s.ecn_threshold_bytes},
                 {"loss", s.loss.random},
                 {"reorder_share", s.reorder.share},
                 {"reorder_delay_ns", s.reorder.extra_delay.count_ns()},
                 {"duplicate_share", s.duplicate_share}};
  if (s.loss.bursts) {
    const GilbertElliott& g = *s.loss.bursts;
    result["gilbert_elliott"] = {{"enter", g.enter},
                                 {"leave", g.leave},
                                 {"loss_in_bad", g.loss_in_bad},
                                 {"loss_in_good", g.loss_in_good}};
  }
  return result;
}

json link_json(const Link& link, Instant now) {
  const LinkCounters& c = link.counters();
  return {{"frames", c.frames},
          {"bytes", c.bytes},
          {"sent_wire_bytes", c.sent_wire_bytes},
          {"queue_drops", c.queue_drops},
          {"random_drops", c.random_drops},
          {"marks", c.marks},
          {"duplicates", c.duplicates},
          {"reordered", c.reordered},
          {"deepest_queue_bytes", c.deepest_queue_bytes},
          {"queued_bytes", link.queued_bytes(now)},
          {"settings", settings_json(link.settings())}};
}

json two_way_json(const TwoWayLink& link, Instant now) {
  json first = link_json(link.first, now);
  // From CLOCK_MONOTONIC, which is the same for all processes of the machine; 0: no data frame.
  if (link.is_host_link) first["last_data_arrival_ns"] = link.last_data_arrival.count_ns();
  return {{link.is_host_link ? "up" : "forward", first},
          {link.is_host_link ? "down" : "backward", link_json(link.second, now)}};
}

json stats(Network& network, const SwitchCounters& counters, Instant now) {
  json links = json::object();
  for (const TwoWayLink& link : network.links()) links[link.name] = two_way_json(link, now);
  const NetworkCounters& n = network.counters();
  return {{"ok", true},
          {"links", links},
          {"switch",
           {{"cpu_seconds", counters.cpu_seconds},
            {"delivered", n.delivered},
            {"frames_in_flight", network.frames_in_flight()},
            {"pool_exhausted", n.pool_exhausted},
            {"malformed", n.malformed},
            {"ring_drops", counters.ring_drops},
            {"send_failures", counters.send_failures},
            {"late_1ms", counters.late_1ms},
            {"latest_us", static_cast<double>(counters.latest_ns) / 1e3}}}};
}

json failure(const std::string& why) {
  return {{"ok", false}, {"error", why}};
}

std::string text_of(const json& request, const char* key) {
  const auto found = request.find(key);
  return found != request.end() && found->is_string() ? found->get<std::string>() : "";
}

json set_link(const json& request, Network& network, Instant now) {
  TwoWayLink* link = network.find_link(text_of(request, "link"));
  if (link == nullptr) return failure("link: there is no host or site link of this name");
  const auto direction = parse_direction(text_of(request, "direction"), link->is_host_link);
  if (!direction) {
    return failure(link->is_host_link ? "direction: accepted: up, down, both"
                                      : "direction: accepted: forward, backward, both");
  }
  std::vector<config::ConfigError> errors;
  Reader reader("settings", errors);
  // JSON is YAML, so the same code reads settings in files and in requests.
  const std::string settings = request.value("settings", json()).dump();
  const SettingsChange change =
      reader.settings(config::read_tree(settings, "settings", errors), "");
  if (!errors.empty()) return failure(errors.front().text());
  Network::set(*link, *direction, change);
  return {{"ok", true}, {"link", two_way_json(*link, now)}};
}

}  // namespace

Answer answer_request(std::string_view request, Network& network, const SwitchCounters& counters,
                      Instant now) {
  const json parsed = json::parse(request, nullptr, false);
  if (!parsed.is_object()) return {failure("the request is no JSON object").dump()};
  const std::string what = text_of(parsed, "do");
  if (what == "stats") return {stats(network, counters, now).dump()};
  if (what == "set") return {set_link(parsed, network, now).dump()};
  if (what == "reset") {
    network.reset_counters();
    return {json({{"ok", true}}).dump(), true};
  }
  if (what == "start_schedule") {
    network.start_schedule(now);
    return {json({{"ok", true}}).dump()};
  }
  return {failure("do: accepted: stats, reset, set, start_schedule").dump()};
}

}  // namespace gradplane::lab
