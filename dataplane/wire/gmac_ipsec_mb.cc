// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
// libipsec-mb has all instruction sets in one library and chooses among them when a manager is
// made. A manager only holds the functions: all keys share it.
#include <intel-ipsec-mb.h>

#include "dataplane/base/assert.h"
#include "dataplane/wire/gmac.h"

namespace gradplane::wire {
namespace {

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
  aes_gcm_enc_dec_t seal;  // not looked up for each packet
};

Gmac::Gmac(const Key& key) : state_(std::make_unique<State>()) {
  state_->seal = functions().gcm128_enc;
  IMB_AES128_GCM_PRE(&functions(), key.data(), &state_->key);
}

Gmac::~Gmac() = default;

/// GMAC is GCM without a text: all bytes are only authenticated. In one call this takes less time
/// than the library's functions for GMAC, which take a message in pieces.
Gmac::Tag Gmac::tag(const Nonce& nonce, std::span<const std::byte> bytes) const {
  gcm_context_data context;
  Tag tag;
  state_->seal(&state_->key, &context, nullptr, nullptr, 0,
               reinterpret_cast<const std::uint8_t*>(nonce.data()),
               reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
               reinterpret_cast<std::uint8_t*>(tag.data()), tag.size());
  return tag;
}

}  // namespace gradplane::wire
