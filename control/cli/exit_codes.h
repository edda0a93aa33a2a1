// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

/// What `gradplane` returns; --help says the same.
namespace gradplane::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
/// `run --verify`: the command succeeded, but nothing went through gradplane.
inline constexpr int kExitNothingCarried = 3;
/// As env(1) and the shells: the command was found but could not be run, or was not found.
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNotFound = 127;
/// This plus the signal's number, when a signal ended the command and cannot be passed on.
inline constexpr int kExitSignalBase = 128;

}  // namespace gradplane::cli
