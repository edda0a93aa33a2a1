// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/model.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "control/bounds/names.h"

namespace gradplane::bounds {
namespace {

/// Sorts parameters in the order of the model: by the number in the name, else by the bucket in
/// which the parameter was seen first.
struct Place {
  std::uint64_t number = UINT64_MAX;
  std::uint64_t group = 0;  // a DDP bucket, of one or more tables; the last is first in the model
  std::uint32_t bucket = 0;
  std::uint32_t offset = 0;

  bool operator<(const Place& other) const {
    return std::tuple(number, other.group, bucket, offset) <
           std::tuple(other.number, group, other.bucket, other.offset);
  }
};

bool is_full(const api::BucketBounds& table, std::size_t round_bytes) {
  return table.elements >= round_bytes / element_bytes(table.type);
}

bool is_bias_of(const Parameter& bias, const Parameter& weight) {
  return bias.elements > 0 && weight.elements > bias.elements &&
         weight.elements % bias.elements == 0;
}

}  // namespace

Model::Model(std::span<const api::BucketBounds> tables, std::size_t round_bytes)
    : parameter_of_(tables.size()) {
  std::vector<std::size_t> by_id(tables.size());
  std::iota(by_id.begin(), by_id.end(), std::size_t{0});
  std::sort(by_id.begin(), by_id.end(),
            [&](std::size_t a, std::size_t b) { return tables[a].bucket < tables[b].bucket; });

  std::vector<Place> places;
  std::map<std::string, std::size_t> known;
  std::uint64_t group = 0;
  const api::BucketBounds* previous = nullptr;
  for (const std::size_t at : by_id) {
    const api::BucketBounds& table = tables[at];
    const bool goes_on = previous != nullptr && previous->bucket + 1 == table.bucket &&
                         is_full(*previous, round_bytes);
    if (!goes_on) ++group;
    previous = &table;
    for (const api::BoundedTensor& tensor : table.tensors) {
      const auto number = placeholder_number(tensor.name);
      has_names_ = has_names_ && !tensor.name.empty() && !number;
      const auto [entry, fresh] = known.try_emplace(tensor.name, parameters_.size());
      const bool is_new = fresh || tensor.name.empty();
      const std::size_t parameter = is_new ? parameters_.size() : entry->second;
      if (is_new) {
        parameters_.push_back({tensor.name, 0});
        places.push_back(
            {number.value_or(UINT64_MAX), group, table.bucket, tensor.offset_elements});
      }
      parameters_[parameter].elements += tensor.elements;
      parameter_of_[at].push_back(parameter);
    }
  }

  std::vector<std::size_t> order(parameters_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<std::size_t> rank(order.size());
  std::vector<Parameter> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted[i] = std::move(parameters_[order[i]]);
  }
  parameters_ = std::move(sorted);
  for (std::vector<std::size_t>& of_table : parameter_of_) {
    for (std::size_t& parameter : of_table) parameter = rank[parameter];
  }
  find_ends();
}

void Model::find_ends() {
  const std::size_t count = parameters_.size();
  if (count == 0) return;
  first_layer_size_ = last_layer_size_ = 1;
  if (!has_names_) {
    if (count > 1 && is_bias_of(parameters_[1], parameters_[0])) first_layer_size_ = 2;
    if (count > 1 && is_bias_of(parameters_[count - 1], parameters_[count - 2])) {
      last_layer_size_ = 2;
    }
    return;
  }
  const auto layer = [&](std::size_t i) { return layer_of(parameters_[i].name); };
  while (first_layer_size_ < count && !layer(0).empty() && layer(first_layer_size_) == layer(0)) {
    ++first_layer_size_;
  }
  while (last_layer_size_ < count && !layer(count - 1).empty() &&
         layer(count - 1 - last_layer_size_) == layer(count - 1)) {
    ++last_layer_size_;
  }
}

}  // namespace gradplane::bounds
