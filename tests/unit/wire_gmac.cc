// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 The gradplane authors
#include "dataplane/wire/gmac.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

using namespace gradplane;
using namespace gradplane::wire;

namespace {

template <std::size_t kBytes>
std::array<std::byte, kBytes> bytes_of(std::string_view hex) {
  std::array<std::byte, kBytes> out{};
  for (std::size_t i = 0; i < kBytes; ++i) {
    out[i] = static_cast<std::byte>(std::stoi(std::string(hex.substr(2 * i, 2)), nullptr, 16));
  }
  return out;
}

std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
  return out;
}

/// Computes the tag by OpenSSL's interface for message authentication codes, which no product code
/// uses.
Gmac::Tag tag_by_openssl(const Key& key, const Gmac::Nonce& nonce,
                         std::span<const std::byte> bytes) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
      EVP_MAC_fetch(nullptr, "GMAC", nullptr), EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_new(mac.get()), EVP_MAC_CTX_free);
  char cipher[] = "AES-128-GCM";
  std::array<unsigned char, 12> iv;
  std::memcpy(iv.data(), nonce.data(), iv.size());
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("cipher", cipher, 0),
                                   OSSL_PARAM_construct_octet_string("iv", iv.data(), iv.size()),
                                   OSSL_PARAM_construct_end()};
  Gmac::Tag tag;
  std::size_t written = 0;
  REQUIRE(EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()),
                       key.size(), parameters) == 1);
  REQUIRE(EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size()) == 1);
  REQUIRE(EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(tag.data()), &written,
                        tag.size()) == 1);
  REQUIRE(written == tag.size());
  return tag;
}

}  // namespace

TEST_CASE("the tag of NIST's example comes out") {
  // The first count of gcmEncryptExtIV128.rsp without text and with 128 bits of additional data.
  const Gmac key(bytes_of<16>("77be63708971c4e240d1cb79e8d77feb"));
  const auto nonce = bytes_of<12>("e0e00f19fed7ba0136a797f3");
  const auto bytes = bytes_of<16>("7a43ec1d9c0a5a78a0b16533a6213cab");
  CHECK(key.tag(nonce, bytes) == bytes_of<16>("209fcc8d3675ed938e9c7166709dd946"));
}

TEST_CASE("tags are those of another library, whatever the length") {
  const auto raw = bytes_of<16>("000102030405060708090a0b0c0d0e0f");
  const Gmac key(raw);
  auto nonce = bytes_of<12>("f0f1f2f3f4f5f6f7f8f9fafb");
  std::vector<std::size_t> lengths(300);
  for (std::size_t n = 0; n < lengths.size(); ++n) lengths[n] = n + 1;
  lengths.insert(lengths.end(), {1407, 1408, 1456, 1464, 8880, 8964, 65535});
  for (const std::size_t length : lengths) {
    nonce[0] = static_cast<std::byte>(length);
    // The buffer is exactly as long, so AddressSanitizer sees a read past its end.
    const std::vector<std::byte> bytes = counting_bytes(length);
    if (key.tag(nonce, bytes) != tag_by_openssl(raw, nonce, bytes)) FAIL("length " << length);
  }
}

TEST_CASE("two keys beside each other do not meet") {
  const auto nonce = bytes_of<12>("f0f1f2f3f4f5f6f7f8f9fafb");
  const std::vector<std::byte> bytes = counting_bytes(100);
  const auto first_raw = bytes_of<16>("000102030405060708090a0b0c0d0e0f");
  const Gmac first(first_raw);
  const Gmac second(bytes_of<16>("100102030405060708090a0b0c0d0e0f"));
  const Gmac::Tag before = first.tag(nonce, bytes);
  CHECK(second.tag(nonce, bytes) != before);
  CHECK(first.tag(nonce, bytes) == before);
  CHECK(before == tag_by_openssl(first_raw, nonce, bytes));
}

TEST_CASE("bytes in two pieces have the tag of the whole") {
  const auto raw = bytes_of<16>("000102030405060708090a0b0c0d0e0f");
  const Gmac key(raw);
  const auto nonce = bytes_of<12>("f0f1f2f3f4f5f6f7f8f9fafb");
  for (const std::size_t length : {40, 300, 1463, 8880}) {
    const std::vector<std::byte> whole = counting_bytes(length);
    const Gmac::Tag tag = tag_by_openssl(raw, nonce, whole);
    for (std::size_t first = 1; first < std::min<std::size_t>(length, 70); ++first) {
      // Both buffers are exactly as long, so AddressSanitizer sees a read past their ends.
      const std::vector<std::byte> head(whole.begin(), whole.begin() + first);
      const std::vector<std::byte> rest(whole.begin() + first, whole.end());
      if (key.tag(nonce, head, rest) != tag) FAIL("length " << length << ", first " << first);
    }
  }
}
