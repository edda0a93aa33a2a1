// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/ipc/trusted_folder.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace gradplane::ipc {
namespace {

/// The most links that the kernel follows in one path.
constexpr int kMaxLinks = 40;

/// Whether the last folder may be writable by all if the sticky bit protects names.
enum class Last : bool { kMayBeShared, kOurs };

Error failure(const std::string& what, const std::string& path) {
  return Error{what + " " + path + ": " + std::strerror(errno)};
}

/// Removes the first name from `rest`, and returns it.
std::string next_name(std::string& rest) {
  const std::size_t begin = rest.find_first_not_of('/');
  if (begin == std::string::npos) {
    rest.clear();
    return {};
  }
  const std::size_t end = rest.find('/', begin);
  std::string name = rest.substr(begin, end == std::string::npos ? end : end - begin);
  rest.erase(0, end);
  return name;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(0, slash == 0 || slash == std::string::npos ? 1 : slash);
}

Status check_owner(const std::string& path, const struct stat& info) {
  const uid_t self = ::geteuid();
  if (info.st_uid == 0 || info.st_uid == self) return Nothing{};
  const std::string ours =
      self == 0 ? std::string("root") : std::string("root or to user ") + std::to_string(self);
  return Error{path + " belongs to user " + std::to_string(info.st_uid) +
               ", who could pass for the daemon there; choose a folder that belongs to " + ours +
               ", as all folders above it must"};
}

Status check_writers(const std::string& path, const struct stat& info, bool may_be_shared) {
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return Nothing{};
  const bool shared = (info.st_mode & S_ISVTX) != 0;
  if (shared && may_be_shared) return Nothing{};
  std::string text = path;
  text += " can be written by others than its owner, who could pass for the daemon there; ";
  if (shared) return Error{text + "choose a folder of the daemon's own below it"};
  return Error{text.append("run: chmod go-w ").append(path).append(", or choose another folder")};
}

/// Checks the owner and the writers of one step of the path.
Status check_step(const std::string& step, const struct stat& info, bool may_be_shared) {
  if (Status owned = check_owner(step, info); !owned) return owned;
  if (S_ISLNK(info.st_mode)) return Nothing{};
  if (!S_ISDIR(info.st_mode)) return Error{step + " is no folder"};
  return check_writers(step, info, may_be_shared);
}

/// Walks the path as the kernel does, name by name and link by link.
Status check_way(std::string rest, Last last) {
  std::string at = "/";
  int links = 0;
  struct stat info {};
  if (::lstat("/", &info) != 0) return failure("cannot look at", at);
  if (Status root = check_step(at, info, true); !root) return root;
  for (;;) {
    const std::string name = next_name(rest);
    if (name == ".") continue;
    if (name == "..") {
      at = parent_of(at);
      continue;
    }
    const bool is_last = name.empty();  // no name is left: `at` is the folder itself
    std::string step = at;
    if (at != "/" && !is_last) step.append("/");
    step.append(name);
    if (::lstat(step.c_str(), &info) != 0) return failure("cannot look at", step);
    const bool may_be_shared = !is_last || last == Last::kMayBeShared;
    if (Status good = check_step(step, info, may_be_shared); !good || is_last) return good;
    if (S_ISLNK(info.st_mode)) {
      char target[PATH_MAX];
      const ssize_t length = ::readlink(step.c_str(), target, sizeof target);
      if (length <= 0) return failure("cannot read the link", step);
      if (++links > kMaxLinks) return Error{step + " leads through too many links"};
      rest = std::string(target, static_cast<std::size_t>(length)).append("/").append(rest);
      if (rest.front() == '/') at.erase(1);
      continue;
    }
    at = step;
  }
}

}  // namespace

Status check_trusted_folder(const std::string& folder) {
  return check_way(folder, Last::kOurs);
}

Status make_trusted_folder(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 && errno == ENOENT) {
    const Status way = check_way(parent_of(folder), Last::kMayBeShared);
    if (!way) {
      return Error{std::string("cannot create the folder ").append(folder) + ": " +
                   way.error().message};
    }
    if (::mkdir(folder.c_str(), 0755) == 0) {
      // Others must be able to look up names in it, whatever the umask is.
      if (::chmod(folder.c_str(), 0755) != 0) return failure("cannot open to all", folder);
    } else if (errno != EEXIST) {
      return failure("cannot create the folder", folder);
    }
  }
  return check_trusted_folder(folder);
}

}  // namespace gradplane::ipc
