// SPDX-License-Identifier: Apache-2.0
#include "seal_vectors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "crypto/linear_code.h"
#include "packet_seal.h"
#include "tensor/operation_seal.h"
#include "vector_file.h"
#include "wire/packet.h"

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

SealVector key(std::string purpose) {
    SealVector vector{
        .description = "the key for " + purpose + " without a round", .function = "key", .purpose = std::move(purpose)};
    vector.result = text_of_bytes(seal_after({}).key(vector.purpose).bytes());
    return vector;
}

SealVector code(std::string description, std::uint64_t operation, std::uint64_t first, bool is_natural,
                std::vector<std::uint32_t> words) {
    SealVector vector{.description = std::move(description), .function = "code"};
    vector.numbers = {{"operation", operation},
                      {"first", first},
                      {"natural", is_natural ? 1U : 0U},
                      {"value", code_of(operation, first, is_natural, words)}};
    vector.words = {std::move(words)};
    return vector;
}

SealVector word() {
    SealVector vector{.description = "the word of rank 2 about an all_reduce of three elements", .function = "word"};
    vector.numbers = {{"operation", 9}, {"rank", 2}, {"kind", 12}, {"detail", 0x01020304}, {"elements", 3}};
    tensor::SealWord content{.sent = 0x0123456789ABCDEF, .got = 42, .largest = 7, .misfits = true};
    content.runs = {{.first = 1, .count = 2, .value = tensor::Extreme::infinity}};
    std::array<std::byte, tensor::SealWord::plain_bytes> plain{};
    content.encode(plain);
    vector.plain = text_of_bytes(plain);
    vector.result = sealed_word(vector);
    return vector;
}

SealVector packet(std::string description, const PacketSeal& seal, std::vector<std::vector<std::uint32_t>> words) {
    SealVector vector{.description = std::move(description), .function = "packet"};
    vector.numbers = {{"channel", seal.channel}, {"number", seal.number},   {"form", seal.form},
                      {"scale", seal.scale},     {"purpose", seal.purpose}, {"mask_of_sum", mask_of(seal, 0)}};
    for (std::uint32_t worker = 0; worker < words.size(); ++worker) {
        vector.proof.push_back(proof_of(seal, worker, static_cast<std::uint32_t>(words.size()), words[worker]));
    }
    vector.words = std::move(words);
    return vector;
}

std::uint64_t number_of(const SealVector& vector, std::string_view name) {
    const auto found = std::ranges::find(vector.numbers, name, &std::pair<std::string, std::uint64_t>::first);
    return found->second;
}

}  // namespace

std::uint64_t code_of(std::uint64_t operation, std::uint64_t first, bool is_natural,
                      const std::vector<std::uint32_t>& words) {
    const crypto::LinearCode code(seal_after({}).key("factors"), operation);
    crypto::LinearCode::Factors factors;
    code.read(first, words.size(), factors);
    std::vector<std::byte> bytes(words.size() * 4);
    for (std::size_t at = 0; at < words.size(); ++at) wire::store_u32(bytes.data() + 4 * at, words[at]);
    return crypto::LinearCode::code(factors, bytes,
                                    is_natural ? crypto::WordKind::natural : crypto::WordKind::balanced);
}

std::string sealed_word(const SealVector& vector) {
    crypto::Nonce nonce{};
    wire::store_u64(nonce.data(), number_of(vector, "operation"));
    wire::store_u32(nonce.data() + 8, static_cast<std::uint32_t>(number_of(vector, "rank")));
    std::array<std::byte, 16> call{};
    wire::store_u32(call.data(), static_cast<std::uint32_t>(number_of(vector, "kind")));
    wire::store_u32(call.data() + 4, static_cast<std::uint32_t>(number_of(vector, "detail")));
    wire::store_u64(call.data() + 8, number_of(vector, "elements"));
    std::vector<std::byte> sealed(vector.plain.size() + crypto::seal_bytes);
    crypto::seal(seal_after({}).key("words"), nonce, call, crypto::bytes_of(vector.plain), sealed);
    return text_of_bytes(sealed);
}

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
    vectors.push_back(key("factors"));
    vectors.push_back(key("words"));
    vectors.push_back(code("words of an all_reduce", 9, 0, false, {1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0}));
    vectors.push_back(
        code("the same words as natural numbers", 9, 0, true, {1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0}));
    vectors.push_back(code("words that begin in the middle of a block", 1ULL << 40U, 1234567891, false, {5, 6, 7}));
    vectors.push_back(word());
    vectors.push_back(packet("one worker of int32", {.channel = 0, .number = 0, .form = 1}, {{1, 0xFFFFFFFF}}));
    vectors.push_back(packet("three workers of int32",
                             {.channel = 3, .number = 1ULL << 33U, .form = 1, .scale = 130, .purpose = 0xABCD},
                             {{5, 0xFFFFFFF0, 0}, {0x00FFFFFF, 0x10, 7}, {0xFF000001, 9, 0xFFFFFFFF}}));
    vectors.push_back(packet("two workers of int16", {.channel = 1, .number = 5, .form = 3, .scale = 140, .purpose = 7},
                             {{0xFFFF0001, 0x0001FFFF}, {0x0002FFFE, 0xFFFE0002}}));
    vectors.push_back(packet("two workers of int8", {.channel = 1, .number = 5, .form = 4, .scale = 140, .purpose = 7},
                             {{0xFF01FF01}, {0x02FE03FD}}));
    return vectors;
}

nlohmann::ordered_json to_json(const SealVector& vector) {
    nlohmann::ordered_json json{{"description", vector.description}, {"function", vector.function}};
    if (!vector.purpose.empty()) json["purpose"] = vector.purpose;
    if (vector.function == "derive") {
        json["name"] = vector.name;
    } else if (vector.numbers.empty()) {
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
    if (vector.function == "word") json["plain"] = hex_of(vector.plain);
    for (const auto& [name, number] : vector.numbers) json[name] = number;
    if (!vector.words.empty()) json["words"] = vector.words;
    if (!vector.proof.empty()) json["proof"] = vector.proof;
    if (!vector.result.empty()) json["result"] = hex_of(vector.result);
    return json;
}

}  // namespace atp::conformance
