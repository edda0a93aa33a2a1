// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/daemon/job_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "control/bounds/learn.h"
#include "control/telemetry/rounds.h"

namespace gradplane::daemon {
namespace {

/// The shortest time between two warnings about one job.
constexpr Duration kWarnInterval = Duration::seconds(10);
/// The most nodes, and the most tensors, that a warning names.
constexpr std::size_t kMaxNamed = 4;

/// The keys whose counts have grown most since `before`, and by how much.
template <typename Key>
std::vector<std::pair<Key, std::uint64_t>> most_grown(const std::map<Key, std::uint64_t>& now,
                                                      const std::map<Key, std::uint64_t>& before) {
  std::vector<std::pair<Key, std::uint64_t>> grown;
  for (const auto& [key, count] : now) {
    const auto old = before.find(key);
    const std::uint64_t by = count - (old == before.end() ? 0 : old->second);
    if (by > 0) grown.emplace_back(key, by);
  }
  std::stable_sort(grown.begin(), grown.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (grown.size() > kMaxNamed) grown.resize(kMaxNamed);
  return grown;
}

/// The sum of of(part) over all parts.
template <typename Of>
auto sum_over(const std::vector<std::unique_ptr<aggregate::Bucket>>& parts, Of of) {
  auto sum = of(*parts.front());
  for (std::size_t p = 1; p < parts.size(); ++p) sum += of(*parts[p]);
  return sum;
}

Status make_parts(const std::vector<engine::JobRuntime*>& runtimes, InstalledBucket& installed) {
  try {
    installed.parts.reserve(runtimes.size());
    for (engine::JobRuntime* part : runtimes) {
      installed.parts.push_back(part->make_bucket(installed.table));
      if (installed.parts.back() != nullptr) continue;
      return Error{fmt::format(
          "the bounds of bucket {} fit no round of this job, or it needs more memory than is left "
          "to the job: for updates on their way, what quotas.updates leaves to its user",
          installed.table.bucket)};
    }
  } catch (const std::bad_alloc&) {
    return Error{
        fmt::format("there is not enough memory to gather bucket {}", installed.table.bucket)};
  }
  return Nothing{};
}

}  // namespace

void JobBounds::use(const api::Plan& plan) {
  contributions_ = 0;
  roots_.clear();
  for (const api::Member& member : plan.members) {
    ranks_of_node_[member.node].assign(member.ranks.begin(), member.ranks.end());
    // A node sums its ranks before it pushes, but the root's own ranks enter one by one.
    if (member.node == self_) {
      contributions_ += static_cast<std::uint32_t>(member.ranks.size());
    } else if (!member.ranks.empty()) {
      ++contributions_;
    }
  }
  for (const api::Tree& tree : plan.trees) roots_.push_back(tree.root);
  std::sort(roots_.begin(), roots_.end());
  roots_.erase(std::unique(roots_.begin(), roots_.end()), roots_.end());
}

void InstalledBucket::set_bound(std::size_t tensor, float bound) {
  for (const auto& part : parts) part->set_bound(tensor, bound);
}

std::uint64_t InstalledBucket::missing_blocks(std::size_t tensor) const {
  return sum_over(parts, [tensor](const auto& part) { return part.missing_blocks(tensor); });
}

std::uint64_t InstalledBucket::expected_blocks(std::size_t tensor) const {
  return sum_over(parts, [tensor](const auto& part) { return part.expected_blocks(tensor); });
}

std::uint64_t InstalledBucket::excluded_blocks(std::size_t tensor) const {
  return sum_over(parts, [tensor](const auto& part) { return part.excluded_blocks(tensor); });
}

std::uint64_t InstalledBucket::closes(CloseReason reason) const {
  return sum_over(parts, [reason](const auto& part) { return part.closes(reason); });
}

double InstalledBucket::part_energy(std::size_t tensor) const {
  return sum_over(parts, [tensor](const auto& part) { return part.part_energy(tensor); });
}

double InstalledBucket::sum_energy(std::size_t tensor) const {
  return sum_over(parts, [tensor](const auto& part) { return part.sum_energy(tensor); });
}

std::vector<aggregate::SourceReport> InstalledBucket::sources() const {
  std::vector<aggregate::SourceReport> all;
  for (const auto& part : parts) {
    for (std::size_t s = 0; s < part->source_count(); ++s) all.push_back(part->source(s));
  }
  return all;
}

Status JobBounds::add(const std::vector<engine::JobRuntime*>& parts, api::BucketBounds table,
                      float learn_budget) {
  if (buckets_.size() >= kMaxBuckets) {
    return Error{fmt::format("bucket {} is one too many", table.bucket)};
  }
  InstalledBucket installed{std::move(table), {}};
  if (const Status made = make_parts(parts, installed); !made) {
    for (std::size_t p = 0; p < installed.parts.size(); ++p)
      parts[p]->forget_bucket(installed.parts[p].get());
    return made;
  }
  learn_budget_ = learn_budget;
  handed_over_.resize(parts.size());
  buckets_.push_back(std::move(installed));
  return Nothing{};
}

bool JobBounds::hand_over(std::size_t part, engine::JobRuntime* runtime,
                          api::CommandQueue& commands, std::size_t keep_room) {
  while (!buckets_.empty() && handed_over_[part] < buckets_.size()) {
    api::Command add;
    add.kind = api::Command::Kind::kAddBucket;
    add.job = runtime;
    add.bucket = buckets_[handed_over_[part]].parts[part].get();
    if (commands.room() <= keep_room || !commands.push(add)) return false;
    ++handed_over_[part];
  }
  return true;
}

void JobBounds::learn() {
  std::vector<bounds::TensorNoise> noise;
  std::vector<std::pair<InstalledBucket*, std::size_t>> tensors;
  for (InstalledBucket& installed : buckets_) {
    for (std::size_t t = 0; t < installed.table.tensors.size(); ++t) {
      const api::BoundedTensor& tensor = installed.table.tensors[t];
      if (tensor.why != api::BoundReason::kLearned) continue;
      tensors.emplace_back(&installed, t);
      noise.push_back({.elements = tensor.elements,
                       .part_energy = installed.part_energy(t),
                       .sum_energy = installed.sum_energy(t)});
    }
  }
  if (tensors.empty()) return;
  const std::vector<float> learned = bounds::learn(noise, contributions_, learn_budget_);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].first->set_bound(tensors[i].second, learned[i]);
  }
}

std::uint64_t JobBounds::closes(CloseReason reason) const {
  std::uint64_t count = 0;
  for (const InstalledBucket& installed : buckets_) count += installed.closes(reason);
  return count;
}

JobBounds::Missing JobBounds::count_missing() const {
  Missing missing;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const InstalledBucket& bucket = buckets_[b];
    for (const aggregate::SourceReport& source : bucket.sources())
      missing.of_node[source.node] += source.missing_blocks;
    for (std::size_t t = 0; t < bucket.any().tensor_count(); ++t) {
      if (bucket.missing_blocks(t) > 0) missing.of_tensor[{b, t}] = bucket.missing_blocks(t);
    }
  }
  return missing;
}

std::vector<std::uint32_t> JobBounds::ranks_of(api::NodeId node) const {
  const auto found = ranks_of_node_.find(node);
  return found == ranks_of_node_.end() ? std::vector<std::uint32_t>() : found->second;
}

std::string JobBounds::tensor_name(std::uint32_t bucket, std::uint32_t tensor) const {
  for (const InstalledBucket& installed : buckets_) {
    if (installed.table.bucket != bucket || tensor >= installed.table.tensors.size()) continue;
    return installed.table.tensors[tensor].name;
  }
  return {};
}

std::string JobBounds::take_close_warning(const config::Config& config, Instant now) {
  const std::uint64_t deadline = closes(CloseReason::kDeadline);
  const std::uint64_t absent = closes(CloseReason::kAbsent);
  if ((deadline == told_deadline_ && absent == told_absent_) || now < may_tell_at_) return {};
  std::string text =
      fmt::format("{} rounds closed by their deadline and {} without an absent rank; missing most:",
                  deadline - told_deadline_, absent - told_absent_);
  Missing missing = count_missing();
  for (const auto& [node, blocks] : most_grown(missing.of_node, told_missing_.of_node)) {
    const std::string name = "node " + config.cluster.nodes[node].name;
    text += fmt::format(" {} {} blocks,", telemetry::source_text(name, ranks_of(node)), blocks);
  }
  for (const auto& [place, blocks] : most_grown(missing.of_tensor, told_missing_.of_tensor)) {
    const api::BoundedTensor& tensor = buckets_[place.first].table.tensors[place.second];
    const std::string name = tensor.name.empty() ? "a tensor without a name" : tensor.name;
    text += fmt::format(" {} {} blocks,", name, blocks);
  }
  text.pop_back();
  told_deadline_ = deadline;
  told_absent_ = absent;
  told_missing_ = std::move(missing);
  may_tell_at_ = now + kWarnInterval;
  return text;
}

}  // namespace gradplane::daemon
