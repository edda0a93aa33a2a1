// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <vector>

#include "tests/lab/description.h"

namespace gradplane::lab {

/// The next site link on the shortest route between two sites. Of equally short routes, it takes
/// the one that comes first in the file.
class Routes {
 public:
  struct Hop {
    std::size_t link_index = 0;  // index into Description::site_links
    bool is_forward = true;
    std::size_t site_index = 0;  // the site at its end
  };

  explicit Routes(const Description& description);

  bool connected(std::size_t from_site, std::size_t to_site) const;
  /// The sites must be different and connected.
  const Hop& next(std::size_t from_site, std::size_t to_site) const {
    return hops_[from_site * site_count_ + to_site];
  }

 private:
  std::size_t site_count_;
  std::vector<Hop> hops_;
  std::vector<bool> known_;
};

}  // namespace gradplane::lab
