// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// libipsec-mb has code for all instruction sets, and chooses when a manager is made. A manager only
// holds functions, so all keys share it.
#include <intel-ipsec-mb.h>

#include "dataplane/base/assert.h"
#include "dataplane/wire/gmac.h"

namespace gradplane::wire {
namespace {

const std::uint8_t* octets(const std::byte* at) {
  return reinterpret_cast<const std::uint8_t*>(at);
}
std::uint8_t* octets(std::byte* at) {
  return reinterpret_cast<std::uint8_t*>(at);
}

const IMB_MGR& functions() {
  static IMB_MGR* const chosen = [] {
    IMB_MGR* const manager = alloc_mb_mgr(0);
    GP_ASSERT(manager != nullptr);
    init_mb_mgr_auto(manager, nullptr);
    return manager;
  }();
  return *chosen;
}

}  // namespace

struct Gmac::State {
  gcm_key_data key;
  // Kept here, so that they are not looked up for each packet.
  aes_gcm_enc_dec_t seal;
  aes_gmac_init_t begin;
  aes_gmac_update_t add;
  aes_gmac_finalize_t end;
};

Gmac::Gmac(const Key& key) : state_(std::make_unique<State>()) {
  state_->seal = functions().gcm128_enc;
  state_->begin = functions().gmac128_init;
  state_->add = functions().gmac128_update;
  state_->end = functions().gmac128_finalize;
  IMB_AES128_GCM_PRE(&functions(), key.data(), &state_->key);
}

Gmac::~Gmac() = default;

/// GMAC is GCM without a plaintext: all bytes are only authenticated. One call of GCM takes less
/// time than the library's functions for GMAC, which take a message in pieces.
Gmac::Tag Gmac::tag(const Nonce& nonce, std::span<const std::byte> bytes,
                    std::span<const std::byte> more) const {
  gcm_context_data context;
  Tag tag;
  if (more.empty()) {
    state_->seal(&state_->key, &context, nullptr, nullptr, 0, octets(nonce.data()),
                 octets(bytes.data()), bytes.size(), octets(tag.data()), tag.size());
    return tag;
  }
  state_->begin(&state_->key, &context, octets(nonce.data()), nonce.size());
  state_->add(&state_->key, &context, octets(bytes.data()), bytes.size());
  state_->add(&state_->key, &context, octets(more.data()), more.size());
  state_->end(&state_->key, &context, octets(tag.data()), tag.size());
  return tag;
}

}  // namespace gradplane::wire
