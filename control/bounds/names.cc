// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/names.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gradplane::bounds {
namespace {

constexpr std::string_view kPlaceholder = "param.";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
}

std::optional<std::uint64_t> number_of(std::string_view digits) {
  if (!is_number(digits)) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view last_word(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

/// Calls f(word, end of the word in the path) for each word; f returns whether to go on.
template <typename F>
void for_each_word(std::string_view path, F f) {
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (!f(path.substr(begin, end - begin), end)) return;
    begin = end + 1;
  }
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // place of the last '*' in the pattern
  std::size_t taken = 0;                      // end of the part of the name that it matches now
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<std::uint64_t> placeholder_number(std::string_view name) {
  if (!name.starts_with(kPlaceholder)) return std::nullopt;
  return number_of(name.substr(kPlaceholder.size()));
}

std::string_view layer_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

std::string_view network_block_of(std::string_view name) {
  const std::string_view layer = layer_of(name);
  std::size_t numbered = 0;  // end of the first word that is a number
  std::size_t ends_in = 0;   // end of the last word that ends in a digit
  for_each_word(layer, [&](std::string_view word, std::size_t end) {
    if (is_number(word)) numbered = end;
    if (!word.empty() && is_digit(word.back()) && end < layer.size()) ends_in = end;
    return numbered == 0;
  });
  if (numbered > 0) return layer.substr(0, numbered);
  return ends_in > 0 ? layer.substr(0, ends_in) : layer;
}

bool is_bias(std::string_view name) {
  const std::string_view word = last_word(name);
  return word == "bias" || word.starts_with("bias_") || word.ends_with("_bias");
}

bool is_norm(std::string_view name) {
  constexpr std::array<std::string_view, 4> kShort = {"bn", "ln", "gn", "rms"};
  bool norm = false;
  for_each_word(layer_of(name), [&](std::string_view word, std::size_t) {
    if (is_number(word)) return true;  // "norms.0": the word before the number decides
    const std::string text = lower(word);
    const std::string_view stem =
        std::string_view(text).substr(0, text.find_first_of("0123456789_"));
    norm = text.find("norm") != std::string::npos || is_one_of(stem, kShort);
    return true;
  });
  return norm;
}

bool is_embedding(std::string_view name) {
  constexpr std::array<std::string_view, 3> kShort = {"wte", "wpe", "emb"};
  bool found = false;
  for_each_word(name, [&](std::string_view word, std::size_t) {
    const std::string text = lower(word);
    found = text.find("embed") != std::string::npos || text.ends_with("_emb") ||
            is_one_of(text, kShort);
    return !found;
  });
  return found;
}

bool is_residual_output(std::string_view layer) {
  constexpr std::array<std::string_view, 7> kOutputs = {
      "c_proj", "out_proj", "o_proj", "down_proj", "fc2", "linear2", "shortcut"};
  return is_one_of(last_word(layer), kOutputs) || layer.ends_with("output.dense") ||
         layer.ends_with("attn.proj") || layer.find(".downsample.") != std::string_view::npos;
}

std::optional<std::uint64_t> convolution_number(std::string_view layer) {
  const std::string_view word = last_word(layer);
  return word.starts_with("conv") ? number_of(word.substr(4)) : std::nullopt;
}

}  // namespace gradplane::bounds
