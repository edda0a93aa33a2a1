// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "control/bounds/names.h"

#include <string>

#include "tests/support/catch.h"

using namespace gradplane::bounds;

TEST_CASE("a pattern fits a whole name, case and all") {
  CHECK(matches("layer4.*", "layer4.0.conv1.weight"));
  CHECK(matches("*.bias", "layer4.0.conv1.bias"));
  CHECK(matches("*", ""));
  CHECK(matches("*", "anything.at.all"));
  CHECK(matches("", ""));
  CHECK(matches("layer?.0.*", "layer4.0.bn1.weight"));
  CHECK(matches("*.bn?.*", "layer4.0.bn1.weight"));
  CHECK(matches("*a*b*c", "xaxbxbc"));
  CHECK(matches("a**b", "ab"));
  CHECK(matches("param.1", "param.1"));
  CHECK_FALSE(matches("param.1", "param.10"));
  CHECK_FALSE(matches("layer4", "layer4.0"));
  CHECK_FALSE(matches("layer4.*", "xlayer4.0"));
  CHECK_FALSE(matches("*.bias", "layer4.bias.x"));
  CHECK_FALSE(matches("*.Bias", "layer4.bias"));
  CHECK_FALSE(matches("?", ""));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("*a*b*c", "xaxbxb"));
}

TEST_CASE("a pattern of many stars does not take for ever") {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  CHECK_FALSE(matches(pattern + "b", std::string(256, 'a')));
}

TEST_CASE("names tell biases, norms and embeddings") {
  for (const char* name : {"fc.bias", "lstm.bias_ih_l0", "attn.in_proj_bias"}) CHECK(is_bias(name));
  for (const char* name : {"fc.weight", "bias.weight", "debiased", ""}) CHECK_FALSE(is_bias(name));
  for (const char* name :
       {"bn1.weight", "layer1.0.bn2.bias", "h.3.ln_1.weight", "ln_f.bias", "norm.weight",
        "encoder.LayerNorm.weight", "input_layernorm.weight", "blocks.0.norms.1.bias"}) {
    INFO(name);
    CHECK(is_norm(name));
  }
  for (const char* name : {"fc.weight", "conv1.weight", "norm", "layer1.0.weight", "",
                           "linear.weight", "lnx.conv.weight"}) {
    INFO(name);
    CHECK_FALSE(is_norm(name));
  }
  for (const char* name : {"transformer.wte.weight", "wpe.weight", "tok_emb.weight",
                           "bert.embeddings.word_embeddings.weight", "embed_tokens.weight"}) {
    INFO(name);
    CHECK(is_embedding(name));
  }
  for (const char* name : {"fc.weight", "member.weight", ""}) CHECK_FALSE(is_embedding(name));
}

TEST_CASE("names tell layers and blocks of a network") {
  CHECK(layer_of("layer1.0.conv1.weight") == "layer1.0.conv1");
  CHECK(layer_of("weight").empty());
  CHECK(network_block_of("layer1.0.conv1.weight") == "layer1.0");
  CHECK(network_block_of("layer1.0.downsample.0.weight") == "layer1.0");
  CHECK(network_block_of("transformer.h.11.attn.c_proj.weight") == "transformer.h.11");
  CHECK(network_block_of("features.28.weight") == "features.28");
  CHECK(network_block_of("features.denseblock1.denselayer2.conv1.weight") ==
        "features.denseblock1.denselayer2");
  CHECK(network_block_of("conv1.weight") == "conv1");
  CHECK(network_block_of("weight").empty());
  CHECK(placeholder_number("param.17") == 17U);
  CHECK_FALSE(placeholder_number("param.x"));
  CHECK_FALSE(placeholder_number("param."));
  CHECK_FALSE(placeholder_number("xparam.1"));
  CHECK_FALSE(placeholder_number("param.99999999999999999999999"));
  CHECK(convolution_number("layer1.0.conv3") == 3U);
  CHECK_FALSE(convolution_number("layer1.0.conv"));
  CHECK(is_residual_output("h.3.attn.c_proj"));
  CHECK(is_residual_output("encoder.layer.3.attention.output.dense"));
  CHECK(is_residual_output("layer2.0.downsample.0"));
  CHECK_FALSE(is_residual_output("h.3.attn.c_attn"));
  CHECK_FALSE(is_residual_output("encoder.layer.3.intermediate.dense"));
}
