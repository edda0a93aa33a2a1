// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a parameter's name tells. PyTorch's modules make it of words between dots, and the last
/// word is the parameter's own ("layer1.0.conv1.weight").
namespace gradplane::bounds {

/// Whether a pattern matches a whole name. '*' stands for any text, dots and empty text included,
/// and '?' for any one byte. Every other byte stands for itself. Case matters.
bool matches(std::string_view pattern, std::string_view name);

/// N of "param.N", which stands for a name that is not known; nothing for a real name.
std::optional<std::uint64_t> placeholder_number(std::string_view name);

/// The module that a parameter belongs to: "layer1.0.conv1"; empty for a name of one word.
std::string_view layer_of(std::string_view name);

/// The repeated part of a network that a parameter lies in. The block's name goes up to the first
/// word that is a number ("layer1.0", "transformer.h.11"), else up to the last word before the
/// layer's own that ends in a digit ("denseblock1.denselayer2"), else it is the layer's name.
std::string_view network_block_of(std::string_view name);

bool is_bias(std::string_view name);
bool is_norm(std::string_view name);
bool is_embedding(std::string_view name);

/// Whether the layer's output is added to its block's residual connection, as far as a name tells:
/// the output projections of transformers and the shortcuts of residual networks. The last
/// convolution of a residual block has no name of its own, so plot.cc finds it.
bool is_residual_output(std::string_view layer);

/// N of a layer "convN"; nothing for others.
std::optional<std::uint64_t> convolution_number(std::string_view layer);

}  // namespace gradplane::bounds
