// SPDX-License-Identifier: Apache-2.0
// XChaCha20-Poly1305: the vector of draft-irtf-cfrg-xchacha-03, A.3.1. BLAKE2b: computed by another implementation, the
// hashlib of CPython, since RFC 7693 has no vector with a key.
#include "crypto/crypto.h"

#include <gtest/gtest.h>

#include "hex.h"

namespace atp::crypto {
namespace {

TEST(Crypto, KeyedCodesEqualThoseOfAnotherImplementation) {
    const SecretKey key = counting_key();
    std::vector<std::byte> message(300);
    for (std::size_t at = 0; at < message.size(); ++at) message[at] = static_cast<std::byte>(at % 251);
    EXPECT_EQ(hex(code16(key, {})), "3daf97bce7888fd59773c66bf647459c");
    EXPECT_EQ(hex(code16(key, {Bytes(message)})), "707bfdf5c9eb4115916f1c839e168d5d");
    EXPECT_EQ(hex(code32(key, {})), "4e51e7a913fc80137da52880fecca175bf81e117d5c68126dc2774033517ea0d");
    EXPECT_EQ(hex(code32(key, {Bytes(message).first(64)})),
              "7f46f043d63dfb3c9b1102c8824b632cae1fce453e3c0e9dc9e7113f3c1acc36");
    EXPECT_EQ(hex(code32(key, {Bytes(message).first(64), {}, Bytes(message).subspan(64)})),
              "89870f2a4f222ac9406bbfd9b1d8da5a614ae381882d590b9d0bb33de8642c02");
}

constexpr std::string_view published_plain =
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be "
    "it.";
constexpr std::string_view published_sealed =
    "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb"
    "96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff921f9664c97637da9768812f615c68b13b52e"
    "c0875924c1c7987947deafd8780acf49";

struct Published {
    SecretKey key = counting_key(0x80);
    Nonce nonce{};
    std::vector<std::byte> associated = from_hex("50515253c0c1c2c3c4c5c6c7");

    Published() {
        for (std::size_t at = 0; at < nonce.size(); ++at) nonce[at] = static_cast<std::byte>(0x40 + at);
    }
};

TEST(Crypto, SealsAsThePublishedVector) {
    const Published given;
    std::vector<std::byte> sealed(published_plain.size() + seal_bytes);
    seal(given.key, given.nonce, given.associated, bytes_of(published_plain), sealed);
    EXPECT_EQ(hex(sealed), published_sealed);
    std::string plain(published_plain.size(), '\0');
    EXPECT_TRUE(open(given.key, given.nonce, given.associated, sealed, std::as_writable_bytes(std::span(plain))));
    EXPECT_EQ(plain, published_plain);
}

TEST(Crypto, OpensNothingThatDiffersInAnyBit) {
    const Published given;
    const std::vector<std::byte> sealed = from_hex(published_sealed);
    std::vector<std::byte> plain(published_plain.size());
    const auto opens = [&](const SecretKey& key, const Nonce& nonce, Bytes associated, Bytes content) {
        return open(key, nonce, associated, content, plain);
    };
    for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
        auto other = sealed;
        other[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        EXPECT_FALSE(opens(given.key, given.nonce, given.associated, other)) << bit;
    }
    SecretKey key = given.key;
    key.bytes()[31] ^= std::byte{1};
    EXPECT_FALSE(opens(key, given.nonce, given.associated, sealed));
    Nonce nonce = given.nonce;
    nonce[23] ^= std::byte{1};
    EXPECT_FALSE(opens(given.key, nonce, given.associated, sealed));
    EXPECT_FALSE(opens(given.key, given.nonce, Bytes(given.associated).first(11), sealed));
    EXPECT_FALSE(opens(given.key, given.nonce, given.associated, Bytes(sealed).first(seal_bytes - 1)));
}

TEST(Crypto, ComparesAllBytesAndTheLength) {
    const auto one = from_hex("00112233");
    EXPECT_TRUE(are_equal(one, from_hex("00112233")));
    EXPECT_FALSE(are_equal(one, from_hex("00112232")));
    EXPECT_FALSE(are_equal(one, from_hex("80112233")));
    EXPECT_FALSE(are_equal(one, Bytes(one).first(3)));
}

TEST(Crypto, WipedSecretsAreZero) {
    SecretKey key = counting_key(1);
    wipe(key.bytes());
    EXPECT_EQ(hex(key.bytes()), std::string(64, '0'));
    std::string text = "secret";
    const char* const place = text.data();
    wipe(text);
    EXPECT_TRUE(text.empty());
    EXPECT_EQ(std::string_view(place, 6), std::string_view("\0\0\0\0\0\0", 6));
}

}  // namespace
}  // namespace atp::crypto
