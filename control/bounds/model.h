// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/api/bounds.h"

namespace gradplane::bounds {

/// A parameter of the network that is trained: all slices of one name.
struct Parameter {
  std::string name;            // empty: not known
  std::uint64_t elements = 0;  // sum over all slices; a rebuilt bucket adds its slices again
};

/// The network that a job trains: its parameters in the order of the model.
///
/// Names "param.N" give the order. For other names it follows from how DDP makes buckets: buckets
/// come in the reverse order of the model, the parameters of one bucket in the model's order. A
/// bucket that is larger than a round comes as several tables with consecutive ids, all full but
/// the last. When DDP rebuilds its buckets, the order is already known from the first ones.
class Model {
 public:
  /// `round_bytes`: size of a full table.
  Model(std::span<const api::BucketBounds> tables, std::size_t round_bytes);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Which parameter tensor `tensor` of table `table` is a slice of.
  std::size_t parameter_of(std::size_t table, std::size_t tensor) const {
    return parameter_of_[table][tensor];
  }
  /// Whether every parameter has a real name.
  bool has_names() const { return has_names_; }
  /// How many parameters make up the first and the last layer of the model. With real names these
  /// are the parameters of one layer. Without, a layer is a weight, with a bias beside it if the
  /// bias's size divides the weight's.
  std::size_t first_layer_size() const { return first_layer_size_; }
  std::size_t last_layer_size() const { return last_layer_size_; }
  bool in_first_layer(std::size_t parameter) const { return parameter < first_layer_size_; }
  bool in_last_layer(std::size_t parameter) const {
    return parameter + last_layer_size_ >= parameters_.size();
  }

 private:
  void find_ends();

  std::vector<Parameter> parameters_;
  std::vector<std::vector<std::size_t>> parameter_of_;
  bool has_names_ = true;
  std::size_t first_layer_size_ = 0;
  std::size_t last_layer_size_ = 0;
};

}  // namespace gradplane::bounds
