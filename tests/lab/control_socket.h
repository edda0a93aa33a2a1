// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <string>
#include <vector>

#include "dataplane/base/result.h"
#include "dataplane/ipc/unique_fd.h"

namespace gradplane::lab {

/// The control socket of the switch: a Unix socket that carries whole messages. It never blocks.
class ControlSocket {
 public:
  /// Adds the socket to the epoll set. Replaces a socket file that was left at this path.
  static Result<ControlSocket> open(const std::string& path, int epoll_fd);
  ControlSocket(ControlSocket&&) noexcept = default;
  ControlSocket& operator=(ControlSocket&&) = delete;
  ~ControlSocket();  // removes the path

  /// Accepts new connections, and answers each request with what `answer(request)` returns.
  template <typename F>
  void serve(F answer) {
    accept_new();
    std::string request;
    for (std::size_t i = 0; i < connections_.size();) {
      const Received what = receive(connections_[i].get(), request);
      if (what == Received::kMessage && reply(connections_[i].get(), answer(request))) continue;
      if (what == Received::kNothing) {
        ++i;
      } else {
        connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

 private:
  enum class Received { kNothing, kMessage, kEnd };

  ControlSocket() = default;
  void accept_new();
  static Received receive(int fd, std::string& request);
  static bool reply(int fd, const std::string& text);

  std::string path_;
  int epoll_fd_ = -1;
  ipc::UniqueFd listener_;
  std::vector<ipc::UniqueFd> connections_;
};

}  // namespace gradplane::lab
