// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/config/key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gradplane::config {
namespace {

constexpr std::size_t kHexDigits = 2 * kClusterKeyBytes;
// More than a key and a newline, so that a longer file is noticed.
constexpr std::size_t kMaxKeyFileBytes = kHexDigits + 8;
constexpr mode_t kForbiddenModes = S_IRWXG | S_IRWXO;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error key_file_error(const std::string& path, std::string_view why) {
  return Error{fmt::format("cluster.key_file {}: {}", path, why)};
}

Result<ClusterKey> read_key(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return key_file_error(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return key_file_error(path, "is not a regular file");
  if ((info.st_mode & kForbiddenModes) != 0) {
    return key_file_error(path, fmt::format("other users may read it (mode {:04o}); "
                                            "make it private: chmod 600 {}",
                                            info.st_mode & 07777U, path));
  }
  std::array<char, kMaxKeyFileBytes> text{};
  const ssize_t length = read(fd, text.data(), text.size());
  if (length < 0) return key_file_error(path, std::strerror(errno));
  std::string_view content(text.data(), static_cast<std::size_t>(length));
  while (content.ends_with('\n') || content.ends_with('\r')) content.remove_suffix(1);
  const auto key = parse_key(content);
  if (!key) {
    return key_file_error(
        path, fmt::format("must hold {} hex digits; make one: openssl rand -hex {}", kHexDigits,
                          kClusterKeyBytes));
  }
  return *key;
}

}  // namespace

std::optional<ClusterKey> parse_key(std::string_view text) {
  if (text.size() != kHexDigits) return std::nullopt;
  ClusterKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = hex_digit(text[2 * i]);
    const int low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key[i] = static_cast<std::byte>(high * 16 + low);
  }
  return key;
}

Result<ClusterKey> load_cluster_key(const Config& config) {
  if (config.cluster.key) return *config.cluster.key;
  const std::string& path = config.cluster.key_file;
  if (path.empty()) return ClusterKey{};
  // With O_NONBLOCK a FIFO that is given by mistake cannot block the start.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const char* const what_to_do =
        errno == EACCES ? "run the daemon as root or as the owner of the file"
                        : "write the cluster's key there: (umask 077; openssl rand -hex 16 >FILE), "
                          "and copy it to all nodes";
    return key_file_error(path, fmt::format("{}; {}", std::strerror(errno), what_to_do));
  }
  auto key = read_key(fd, path);
  close(fd);
  return key;
}

}  // namespace gradplane::config
