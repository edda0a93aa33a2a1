// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "tests/lab/routes.h"

namespace gradplane::lab {

// Searches outwards from each destination. The link over which a site is found first leads there.
Routes::Routes(const Description& description)
    : site_count_(description.sites.size()),
      hops_(site_count_ * site_count_),
      known_(site_count_ * site_count_) {
  for (std::size_t to = 0; to < site_count_; ++to) {
    std::vector<std::size_t> reached = {to};
    known_[to * site_count_ + to] = true;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (std::size_t link = 0; link < description.site_links.size(); ++link) {
        for (const std::size_t end : {0U, 1U}) {
          const std::size_t* ends = description.site_links[link].ends;
          const std::size_t from = ends[end];
          const std::size_t place = from * site_count_ + to;
          if (ends[1 - end] != reached[i] || known_[place]) continue;
          known_[place] = true;
          hops_[place] = {link, end == 0, reached[i]};
          reached.push_back(from);
        }
      }
    }
  }
}

bool Routes::connected(std::size_t from_site, std::size_t to_site) const {
  return known_[from_site * site_count_ + to_site];
}

}  // namespace gradplane::lab
