// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/cli/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "dataplane/base/siphash.h"

namespace gradplane::cli {
namespace {

/// The names of the variables that a launcher sets; empty where it sets none.
struct Launcher {
  std::string_view name;
  std::string_view rank;
  std::string_view size;
  std::string_view local_rank;
  std::string_view local_size;
  std::string_view job;    // tells jobs of one host apart
  std::string_view hosts;  // the first of them has rank 0
};
constexpr std::array<Launcher, kLauncherNames.size()> kLaunchers = {
    {{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", ""},
     {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", ""},
     {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_JOB_ID",
      "SLURM_JOB_NODELIST"},
     {"kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE", "", "", "", ""}}};

/// PyTorch's default.
constexpr std::uint32_t kDefaultPort = 29500;
/// The ports kFirstPort to kFirstPort + kPorts - 1 are below the kernel's ephemeral ports.
constexpr std::uint32_t kFirstPort = 20000;
constexpr std::uint32_t kPorts = 12000;

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::uint32_t> number_of(const Environment& environment, std::string_view variable,
                                std::string_view launcher) {
  const std::string_view text = value_of(environment, variable);
  if (text.empty()) {
    return Error{
        fmt::format("--launcher {0}: {1} is not set; start `gradplane run --launcher {0}` "
                    "by {0}, once for each rank{2}",
                    launcher, variable,
                    variable == "WORLD_SIZE" ? ", and set WORLD_SIZE to the number of ranks" : "")};
  }
  if (const auto number = number_in(text)) return *number;
  return Error{
      fmt::format("--launcher {}: {} is \"{}\", which is no number", launcher, variable, text)};
}

/// The address of rank 0; empty when the launcher does not tell it.
std::string master_of(const Launcher& launcher, const Environment& environment,
                      std::uint32_t size) {
  const std::string_view local = value_of(environment, launcher.local_size);
  if (size == 1 || (!local.empty() && number_in(local) == size)) return "127.0.0.1";
  return first_host(value_of(environment, launcher.hosts));
}

/// A port from a hash of the job's id, so that jobs on one host rarely have the same.
std::uint32_t port_of(const Launcher& launcher, const Environment& environment) {
  const std::string_view job = value_of(environment, launcher.job);
  if (job.empty()) return kDefaultPort;
  const std::uint64_t hash = siphash24({}, std::as_bytes(std::span(job)));
  return kFirstPort + static_cast<std::uint32_t>(hash % kPorts);
}

}  // namespace

std::string first_host(std::string_view list) {
  const std::size_t open = list.find_first_of("[,");
  if (open == std::string_view::npos || list[open] == ',') return std::string(list.substr(0, open));
  const std::size_t end = list.find_first_of("-,]", open);
  const std::size_t close = list.find(']', open);
  if (close == std::string_view::npos) return {};
  const std::string_view behind = list.substr(close + 1);
  std::string host(list.substr(0, open));
  host += list.substr(open + 1, end - open - 1);
  host += behind.substr(0, behind.find(','));
  return host;
}

Result<Environment> launched_environment(Environment base, std::string_view name) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.name != name) continue;
    const auto rank = number_of(base, launcher.rank, name);
    if (!rank) return rank.error();
    const auto size = number_of(base, launcher.size, name);
    if (!size) return size.error();
    if (rank.value() >= size.value()) {
      return Error{fmt::format("--launcher {}: {} is {}, but {} is {}", name, launcher.rank,
                               rank.value(), launcher.size, size.value())};
    }
    if (value_of(base, "MASTER_ADDR").empty()) {
      const std::string master = master_of(launcher, base, size.value());
      if (master.empty()) {
        return Error{
            fmt::format("--launcher {}: the ranks are on several hosts, and {} does not say "
                        "which has rank 0; set MASTER_ADDR to its address",
                        name, name)};
      }
      set(base, "MASTER_ADDR", master);
    }
    if (value_of(base, "MASTER_PORT").empty())
      set(base, "MASTER_PORT", fmt::format("{}", port_of(launcher, base)));
    set(base, "RANK", fmt::format("{}", rank.value()));
    set(base, "WORLD_SIZE", fmt::format("{}", size.value()));
    const std::string_view local = value_of(base, launcher.local_rank);
    if (!local.empty()) set(base, "LOCAL_RANK", std::string(local));
    return base;
  }
  return Error{fmt::format("--launcher {}: there is none of this name", name)};
}

}  // namespace gradplane::cli
