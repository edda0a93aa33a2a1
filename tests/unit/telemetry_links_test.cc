// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/telemetry/links.h"

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::telemetry;

namespace {

LinkStatus measured() {
  return {.node = "paris",
          .rate_bits_per_second = 155'000'000,
          .rate_is_lower_bound = false,
          .rate_confidence_percent = 100,
          .rate_age_ns = 250'000'000,
          .rtt_ns = 20'000'000,
          .rtt_age_ns = 1'000'000,
          .loss_ppm = 20'000,
          .loss_confidence_percent = 60,
          .loss_age_ns = 500'000'000};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a link's rate is told as measured, as a lower bound, or as not known") {
  LinkStatus link = measured();
  CHECK(link_rate_text(link) == "155.0 Mbit/s");
  link.rate_is_lower_bound = true;
  CHECK(link_rate_text(link) == "at least 155.0 Mbit/s");
  link.rate_confidence_percent = 0;
  CHECK(link_rate_text(link) == "-");
  CHECK(link_loss_text(link) == "2.00 %");
  link.loss_confidence_percent = 0;
  CHECK(link_loss_text(link) == "-");
}

TEST_CASE("what is not known of a link has no number") {
  LinkStatus link;
  link.node = "paris";
  CHECK(links_table({link}).text(0) ==
        "FROM   RATE  SURE  AGE  RTT  AGE  LOSS  SURE  AGE\n"
        "paris     -     -    -    -    -     -     -    -\n");
}

TEST_CASE("metrics have what is known of a link, with its age and confidence") {
  StatusReport report;
  report.links = {measured()};
  const std::string text = to_openmetrics(report);
  for (const char* sample : {"gradplane_link_rate_bits_per_second{from=\"paris\"} 155000000\n",
                             "gradplane_link_rate_is_lower_bound{from=\"paris\"} 0\n",
                             "gradplane_link_rate_confidence_ratio{from=\"paris\"} 1\n",
                             "gradplane_link_rate_age_seconds{from=\"paris\"} 0.25\n",
                             "gradplane_link_rtt_seconds{from=\"paris\"} 0.02\n",
                             "gradplane_link_rtt_age_seconds{from=\"paris\"} 0.001\n",
                             "gradplane_link_loss_ratio{from=\"paris\"} 0.02\n",
                             "gradplane_link_loss_confidence_ratio{from=\"paris\"} 0.6\n",
                             "gradplane_link_loss_age_seconds{from=\"paris\"} 0.5\n"}) {
    INFO(sample);
    CHECK(has(text, sample));
  }
  report.links[0] = {};
  report.links[0].node = "paris";
  CHECK_FALSE(has(to_openmetrics(report), "paris"));
}

TEST_CASE("the groups of the port are told, and whether a switch asks for them") {
  StatusReport report;
  CHECK_FALSE(has(to_text(report), "groups"));
  CHECK(has(to_openmetrics(report), "gradplane_port_groups 0\n"));
  report.port.groups = 38;
  CHECK(has(to_text(report), "in 38 groups, for which no switch has asked\n"));
  CHECK(has(to_openmetrics(report), "gradplane_port_groups 38\n"));
  report.port.igmp_version = 2;
  CHECK(has(to_text(report), "in 38 groups, IGMP version 2\n"));
}
