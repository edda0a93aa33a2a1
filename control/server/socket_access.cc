// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/server/socket_access.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace gradplane::server {
namespace {

constexpr const char* kAccessList = "system.posix_acl_access";
constexpr mode_t kOursAlone = 0600;
constexpr mode_t kOursAndGroup = 0660;
/// With this number chown() leaves the group as it is.
constexpr gid_t kNoGroup = static_cast<gid_t>(-1);
/// connect() needs the right to write. The right to read is given with it by custom.
constexpr __u16 kMay = ACL_READ | ACL_WRITE;

Result<gid_t> group_number(const std::string& name) {
  gid_t number = 0;
  const char* end = name.data() + name.size();
  if (const auto read = std::from_chars(name.data(), end, number);
      read.ec == std::errc() && read.ptr == end) {
    if (number != kNoGroup) return number;
    return Error{fmt::format("control.group: {} stands for no group; name another", name)};
  }
  if (const group* found = ::getgrnam(name.c_str())) return found->gr_gid;
  return Error{fmt::format(
      "control.group: this host has no group {}; run: groupadd {}, or name another", name, name)};
}

Status give_to_group(const std::string& path, const std::string& name) {
  const Result<gid_t> group = group_number(name);
  if (!group) return group.error();
  if (::chown(path.c_str(), static_cast<uid_t>(-1), group.value()) == 0) return Nothing{};
  return Error{fmt::format(
      "control.group: cannot give {} to the group {}: {}; run as root or as a member of the group",
      path, name, std::strerror(errno))};
}

/// A POSIX access list in the format of the kernel. Entries must be added in the kernel's order.
class AccessList {
 public:
  AccessList() { put(posix_acl_xattr_header{POSIX_ACL_XATTR_VERSION}); }
  void add(__u16 tag, __u16 may, __u32 id = static_cast<__u32>(ACL_UNDEFINED_ID)) {
    put(posix_acl_xattr_entry{tag, may, id});
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  template <typename Part>
  void put(const Part& part) {
    const auto* begin = reinterpret_cast<const char*>(&part);
    bytes_.insert(bytes_.end(), begin, begin + sizeof part);
  }
  std::vector<char> bytes_;
};

Status let_users_in(const std::string& path, const SocketAccess& access) {
  std::vector<uid_t> users = access.users;
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  AccessList list;
  list.add(ACL_USER_OBJ, kMay);
  for (const uid_t user : users) list.add(ACL_USER, kMay, user);
  list.add(ACL_GROUP_OBJ, access.group.empty() ? 0 : kMay);
  list.add(ACL_MASK, kMay);
  list.add(ACL_OTHER, 0);
  const std::vector<char>& bytes = list.bytes();
  if (::setxattr(path.c_str(), kAccessList, bytes.data(), bytes.size(), 0) == 0) return Nothing{};
  return Error{
      fmt::format("control.allow_uids: cannot give {} an access list: {}; choose a control.socket "
                  "on a file system that has them (tmpfs, ext4, xfs), or use control.group instead",
                  path, std::strerror(errno))};
}

}  // namespace

Status grant_access(const std::string& path, const SocketAccess& access) {
  // An access list that is inherited from the folder could let others in.
  ::removexattr(path.c_str(), kAccessList);
  if (!access.group.empty()) {
    if (Status given = give_to_group(path, access.group); !given) return given;
  }
  if (::chmod(path.c_str(), access.group.empty() ? kOursAlone : kOursAndGroup) != 0)
    return Error{fmt::format("cannot set the rights of {}: {}; check the rights of its folder",
                             path, std::strerror(errno))};
  return access.users.empty() ? Status(Nothing{}) : let_users_in(path, access);
}

}  // namespace gradplane::server
