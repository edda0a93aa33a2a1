// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// Jobs that share a downlink in virtual time, under each policy of the grant scheduler: the times
// of their iterations, relative to those of the same job alone. Prints a line of JSON for each
// setting and policy.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/contestant.h"
#include "tests/sim/interleave.h"

namespace {

using gradplane::grants::GrantScheduler;
using gradplane::sim::interleave::Result;
using gradplane::sim::interleave::Setting;
using gradplane::sim::interleave::Training;

const std::vector<std::pair<std::string, GrantScheduler::Policy>> kPolicies = {
    {"fair", GrantScheduler::Policy::kFair},
    {"mltcp", GrantScheduler::Policy::kMltcp},
    {"strict", GrantScheduler::Policy::kStrict}};

/// Prints the time of every iteration, job by job.
void print_series(const Result& r) {
  const char* before_job = "";
  std::printf("\"ratios\": [");
  for (const std::vector<double>& job : r.ratios) {
    std::printf("%s[", std::exchange(before_job, ", "));
    const char* before = "";
    for (const double ratio : job) std::printf("%s%.4f", std::exchange(before, ", "), ratio);
    std::printf("]");
  }
  std::printf("], ");
}

void print(const std::string& name, const Setting& s, const std::string& policy, const Result& r,
           bool series) {
  std::printf("{\"setting\": \"%s\", \"jobs\": %zu, \"share\": %.3f, \"jitter\": %.3f, ",
              name.c_str(), s.jobs.size(), s.jobs[0].share, s.jitter);
  std::printf("\"controller\": \"%s\", \"policy\": \"%s\", \"seed\": %llu, ", s.contestant.c_str(),
              policy.c_str(), static_cast<unsigned long long>(s.seed));
  std::printf("\"iterations\": %u, \"mean\": %.4f, \"p99\": %.4f, \"settled_mean\": %.4f, ",
              s.iterations, r.mean, r.p99, r.settled_mean);
  if (series) print_series(r);
  std::printf("\"converged_at\": %d, \"drops\": %llu, \"finished\": %s}\n", r.converged_at,
              static_cast<unsigned long long>(r.drops), r.finished ? "true" : "false");
}

struct How {
  bool nodes = false;
  bool series = false;
  double settled_at_most = 0;  // limit of the settled mean with MLTCP; 0: no limit
};

/// Runs grants under each policy, and a controller as it is and with MLTCP. Returns whether all
/// runs finished within the limits.
bool report(const std::string& name, Setting setting, const std::string& controller,
            const How& how) {
  bool finished = true;
  const auto run = [&](const std::string& policy) {
    const Result r = how.nodes ? gradplane::sim::interleave::run_on_nodes(setting)
                               : gradplane::sim::interleave::run(setting);
    print(name, setting, policy, r, how.series);
    finished = finished && r.finished;
    const bool bounded = policy == "mltcp" && how.settled_at_most > 0;
    finished = finished && (!bounded || r.settled_mean <= how.settled_at_most);
  };
  setting.contestant = controller;
  if (controller == "grants") {
    for (const auto& [policy_name, policy] : kPolicies) {
      setting.policy = policy;
      run(policy_name);
    }
    return finished;
  }
  run("fair");
  if (controller == "shares") return finished;
  setting.contestant += "+mltcp";
  run("mltcp");
  return finished;
}

Setting alike(std::size_t jobs, double share, double period_s = Training{}.period_s) {
  Training training;
  training.share = share;
  training.period_s = period_s;
  Setting setting;
  setting.jobs.assign(jobs, training);
  return setting;
}

/// Runs the settings of the published predictions, and settings with disturbances.
bool report_all(const Setting& common, const std::string& controller, const How& how) {
  std::vector<std::pair<std::string, Setting>> all;
  all.emplace_back("2 jobs", alike(2, 0.5));
  all.emplace_back("2 jobs, short communication", alike(2, 0.29));
  all.emplace_back("3 jobs", alike(3, 1.0 / 3));
  all.emplace_back("4 jobs", alike(4, 0.25));
  all.emplace_back("2 jobs that do not fit", alike(2, 0.6));
  for (const double jitter : {0.01, 0.05, 0.1, 0.2}) {
    all.emplace_back("2 jobs, jitter", alike(2, 0.5));
    all.back().second.jitter = jitter;
  }
  for (const double stated : {0.25, 0.5, 2.0, 4.0}) {
    char name[64];
    std::snprintf(name, sizeof name, "2 jobs, totals misstated by %g", stated);
    all.emplace_back(name, alike(2, 0.5));
    for (Training& training : all.back().second.jobs) training.stated_total = stated;
  }
  all.emplace_back("2 jobs, one total misstated by 4", alike(2, 0.5));
  all.back().second.jobs[1].stated_total = 4;
  all.emplace_back("2 jobs, periods 2 to 3", alike(2, 1.0 / 3));
  all.back().second.jobs[1].period_s *= 1.5;
  all.emplace_back("2 jobs, periods 1 to 2", alike(2, 1.0 / 3));
  all.back().second.jobs[1].period_s *= 2;
  bool finished = true;
  for (auto& [name, setting] : all) {
    setting.seed = common.seed;
    setting.iterations = common.iterations;
    setting.mark_bytes = common.mark_bytes;
    setting.link_bits_per_second = common.link_bits_per_second;
    setting.buffer_bytes = common.buffer_bytes;
    finished = report(name, setting, controller, how) && finished;
  }
  return finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times the iterations of jobs that share a downlink, in virtual time.");
  std::size_t jobs = 0;
  double share = 0.5;
  double period_ms = Training{}.period_s * 1e3;
  double mbit_per_s = 1000;
  How how;
  Setting setting;
  std::vector<std::string> controllers = {"grants"};
  app.add_option("--controller", controllers, std::string(gradplane::sim::incast::kContestants));
  app.add_option("--mark", setting.mark_bytes, "ECN threshold, bytes; 0: none");
  app.add_option("--jobs", jobs, "how many alike; without it, all settings of the predictions");
  app.add_option("--share", share, "communication of a job that is alone, as a part of its period");
  app.add_option("--period-ms", period_ms, "of a job that is alone");
  app.add_option("--iterations", setting.iterations, "how many")->check(CLI::Range(12, 10'000));
  app.add_option("--jitter", setting.jitter, "of the compute time, standard deviation, 0 to 1");
  app.add_option("--offset", setting.offset, "between starts, in parts of the communication");
  app.add_option("--seed", setting.seed, "of the jitter");
  app.add_option("--mbit", mbit_per_s, "rate of every link, Mbit/s");
  app.add_option("--buffer", setting.buffer_bytes, "bytes before the downlink");
  app.add_flag("--nodes", how.nodes, "whole daemons, three hosts; the controller `shares` too");
  app.add_option("--settled-at-most", how.settled_at_most,
                 "mean of the last half of the iterations over the isolated time, of what takes "
                 "turns by MLTCP");
  app.add_flag("--series", how.series, "tell every iteration");
  CLI11_PARSE(app, argc, argv);
  setting.link_bits_per_second = static_cast<std::uint64_t>(mbit_per_s * 1e6);
  bool finished = true;
  for (const std::string& controller : controllers) {
    gradplane::sim::incast::Scenario any;
    any.senders.resize(1);
    const bool known = gradplane::sim::incast::choose(controller, any);
    if (!known && !(how.nodes && controller == "shares")) {
      std::fprintf(stderr, "interleave: no controller '%s'; see --help\n", controller.c_str());
      return 1;
    }
    if (jobs == 0) {
      finished = report_all(setting, controller, how) && finished;
      continue;
    }
    setting.jobs = alike(jobs, share, period_ms / 1e3).jobs;
    finished = report("as asked", setting, controller, how) && finished;
  }
  return finished ? 0 : 1;
}
