// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include <openssl/evp.h>

#include "dataplane/base/assert.h"
#include "dataplane/wire/gmac.h"

namespace gradplane::wire {
namespace {

const unsigned char* octets(const std::byte* at) {
  return reinterpret_cast<const unsigned char*>(at);
}

}  // namespace

struct Gmac::State {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_CIPHER_CTX_free(context); }
};

Gmac::Gmac(const Key& key) : state_(std::make_unique<State>()) {
  GP_ASSERT(state_->context != nullptr);
  const int made =
      EVP_EncryptInit_ex(state_->context, EVP_aes_128_gcm(), nullptr, octets(key.data()), nullptr);
  GP_ASSERT(made == 1);
}

Gmac::~Gmac() = default;

/// GMAC is GCM without a plaintext. No call here can fail once the cipher and its key are set.
Gmac::Tag Gmac::tag(const Nonce& nonce, std::span<const std::byte> bytes,
                    std::span<const std::byte> more) const {
  EVP_CIPHER_CTX* const context = state_->context;
  Tag tag;
  int written = 0;
  bool ok = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, octets(nonce.data())) == 1;
  for (const std::span<const std::byte> piece : {bytes, more}) {
    if (piece.empty()) continue;
    ok = ok && EVP_EncryptUpdate(context, nullptr, &written, octets(piece.data()),
                                 static_cast<int>(piece.size())) == 1;
  }
  ok = ok && EVP_EncryptFinal_ex(context, nullptr, &written) == 1;
  ok = ok && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()),
                                 tag.data()) == 1;
  GP_ASSERT(ok);
  return tag;
}

}  // namespace gradplane::wire
