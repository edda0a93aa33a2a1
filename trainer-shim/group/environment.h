// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <string>

namespace gradplane::shim {

/// What GRADPLANE_* variables say. Read once in a process.
struct Environment {
  std::string socket_path = "/run/gradplane/gradplaned.sock";
  std::string run_id;
  /// Where the counters go at exit, as JSON; empty: nowhere. %r is the rank, %p the process id.
  std::string report_path;
  /// Of this process, as its launcher says; empty: it does not.
  std::string rank;
  /// What this process is called in `gradplane status`.
  std::string label;
  std::uint32_t attach_timeout_ms = 10000;
  /// A daemon of this user is trusted, as are root's and our own.
  std::uint32_t daemon_uid = 0;
  bool require = false;
  bool verbose = false;
  /// A reduce_scatter that asks for another reduction than a sum gets it, where Gloo gives a sum.
  bool heeds_reduce_op = false;
  /// What a program of MPI sums in a floating type are gradients, for which loss bounds hold.
  bool mpi_sums_are_gradients = false;
};

/// The environment of this process. Any thread.
const Environment& environment();

/// In a child of fork(): its rank, its process id and what it sets are others than its parent's.
void forget_environment_after_fork();

/// Warns on stderr, once each, of variables that start with GRADPLANE_ and mean nothing here, and
/// of values that cannot be used.
void warn_of_strange_variables();

}  // namespace gradplane::shim
