// SPDX-License-Identifier: Apache-2.0
#include "seal_vectors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "vector_file.h"

namespace atp::conformance {
namespace {

constexpr std::string_view formation = "atp/0";

std::string text_of_bytes(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string counting(std::size_t size, unsigned first) {
    std::string bytes(size, '\0');
    for (std::size_t at = 0; at < size; ++at) bytes[at] = static_cast<char>(first + at);
    return bytes;
}

SealVector derived(std::string description, std::string purpose, std::string name) {
    const crypto::SecretKey key = crypto::derive(key_of_vectors().key, purpose, name);
    return {.description = std::move(description),
            .function = "derive",
            .purpose = std::move(purpose),
            .name = std::move(name),
            .result = text_of_bytes(key.bytes())};
}

SealVector value(std::string description, const Rounds& rounds, std::string place, unsigned nonce, std::string plain) {
    SealVector vector{.description = std::move(description),
                      .function = "value",
                      .rounds = rounds,
                      .place = std::move(place),
                      .nonce = counting(24, nonce),
                      .plain = std::move(plain)};
    vector.result = seal_after(rounds).seal(vector.place, vector.plain, nonce_from(vector.nonce));
    return vector;
}

SealVector notice(std::string description, std::string plain) {
    SealVector vector{.description = std::move(description),
                      .function = "notice",
                      .place = std::string(formation),
                      .nonce = counting(24, 0x90),
                      .plain = std::move(plain)};
    vector.result = seal_after({}).seal_notice(formation, vector.plain, nonce_from(vector.nonce));
    return vector;
}

SealVector secret(std::string description, const Rounds& rounds, std::uint32_t rank) {
    return {.description = std::move(description),
            .function = "secret",
            .purpose = "memory",
            .rounds = rounds,
            .rank = rank,
            .result = bytes_of_secret(seal_after(rounds).secret("memory", rank))};
}

}  // namespace

crypto::TenantKey key_of_vectors() {
    crypto::TenantKey key{.id = 7, .tenant = "vectors", .at_switch = {}, .key = {}};
    const std::string bytes = counting(crypto::SecretKey::size, 0);
    std::memcpy(key.key.bytes().data(), bytes.data(), bytes.size());
    return key;
}

crypto::FormationSeal seal_after(const Rounds& rounds) {
    crypto::FormationSeal seal(key_of_vectors());
    for (const auto& round : rounds) seal.close_round(round);
    return seal;
}

crypto::Nonce nonce_from(const std::string& bytes) {
    crypto::Nonce nonce{};
    std::memcpy(nonce.data(), bytes.data(), std::min(bytes.size(), nonce.size()));
    return nonce;
}

std::string hex_of(const std::string& bytes) {
    return spell(std::as_bytes(std::span(bytes)), std::size_t{1} << 16U).hex;
}

std::string bytes_of_secret(const Secret& secret) {
    std::string bytes(16, '\0');
    for (unsigned at = 0; at < 16; ++at) bytes[at] = static_cast<char>(secret[at / 8] >> 8 * (7 - at % 8));
    return bytes;
}

std::vector<SealVector> seal_vectors() {
    const std::string world("\0\0\0\2", 4);
    std::vector<SealVector> vectors{derived("the key for values in the store", "store", ""),
                                    derived("the key for joining at one switch", "join", "leaf3"),
                                    value("the first value of rank 0", {}, "atp/0/facts/0", 0x40, world + "rank 0"),
                                    value("the first value of rank 1", {}, "atp/0/facts/1", 0x50, world + "rank 1"),
                                    value("a message without bytes", {}, "atp/0/ready/0", 0x60, world)};
    const Rounds facts{{vectors[2].result, vectors[3].result}};
    vectors.push_back(value("a value after the first round", facts, "atp/0/network-0/1", 0x70, world + "network"));
    vectors.push_back(notice("a rank that gave up", std::string(4, '\0') + "gave up"));
    vectors.push_back(secret("a secret before any round", {}, 0));
    vectors.push_back(secret("the secret of rank 1's memory after the first round", facts, 1));
    return vectors;
}

nlohmann::ordered_json to_json(const SealVector& vector) {
    nlohmann::ordered_json json{{"description", vector.description}, {"function", vector.function}};
    if (!vector.purpose.empty()) json["purpose"] = vector.purpose;
    if (vector.function == "derive") {
        json["name"] = vector.name;
    } else {
        json["rounds"] = nlohmann::ordered_json::array();
        for (const auto& round : vector.rounds) {
            auto values = nlohmann::ordered_json::array();
            for (const std::string& left : round) values.push_back(hex_of(left));
            json["rounds"].push_back(std::move(values));
        }
    }
    if (vector.function == "secret") json["rank"] = vector.rank;
    if (!vector.nonce.empty()) {
        json.update({{"place", vector.place}, {"nonce", hex_of(vector.nonce)}, {"plain", hex_of(vector.plain)}});
    }
    json["result"] = hex_of(vector.result);
    return json;
}

}  // namespace atp::conformance
