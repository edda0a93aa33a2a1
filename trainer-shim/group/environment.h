// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gradplane::shim {

/// The values of GRADPLANE_* variables. They are read once in a process.
struct Environment {
  std::string socket_path = "/run/gradplane/gradplaned.sock";
  std::string run_id;
  /// The file for the counters at exit, as JSON; empty: none. %r is the rank, %p the process id.
  std::string report_path;
  /// The rank of this process that the launcher has set; empty: none.
  std::string rank;
  /// The name of this process in `gradplane status`.
  std::string label;
  std::uint32_t attach_timeout_ms = 10000;
  /// Daemons of this user are trusted, besides root's and those of the process's own user.
  std::uint32_t daemon_uid = 0;
  /// How many threads copy a long piece of a large tensor.
  std::uint32_t copy_threads = 1;
  bool require = false;
  bool verbose = false;
  /// Whether a reduce_scatter does another reduction than a sum if the program asks for it. Gloo
  /// always sums.
  bool heeds_reduce_op = false;
  /// Sums in a floating type outside DDP's buckets are gradients, whose names begin with this;
  /// empty: they are exact.
  std::string gradients;
  /// Whether loss bounds hold for all sums of MPI in a floating type, because they are gradients.
  bool mpi_sums_are_gradients = false;
};

/// The environment of this process. Any thread.
const Environment& environment();

/// The variables that the shim and `gradplane run` know.
std::span<const std::string_view> known_variables();

/// A digest of the variables that must have the same values on all ranks of a group.
std::uint64_t shared_settings(const Environment& environment);

/// For a child of fork(), where rank, process id and variables may differ from its parent's.
void forget_environment_after_fork();

/// Warns on stderr of unknown variables that begin with GRADPLANE_, and of invalid values. Each is
/// warned of once.
void warn_of_strange_variables();

}  // namespace gradplane::shim
