// SPDX-License-Identifier: Apache-2.0
// Checks the sealed values of a formation against the committed seal.json.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "packet_seal.h"
#include "seal_vectors.h"
#include "vector_file.h"
#include "wire/format.h"

namespace atp::conformance {
namespace {

using nlohmann::json;

std::string bytes_at(const json& row, const char* name) {
    const auto bytes = bytes_of(row.at(name).get<std::string>(), 0);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<json> rows_of(const std::string& function) {
    std::vector<json> rows;
    for (const json& row : json::parse(committed_text("seal.json"))) {
        if (row.at("function") == function) rows.push_back(row);
    }
    EXPECT_GE(rows.size(), function == "notice" ? 1U : 2U);
    return rows;
}

crypto::FormationSeal seal_of(const json& row) {
    Rounds rounds;
    for (const json& round : row.at("rounds")) {
        rounds.emplace_back();
        for (const json& value : round) rounds.back().push_back(bytes_at(json{{"value", value}}, "value"));
    }
    return seal_after(rounds);
}

TEST(SealVectors, DerivedKeysMatchTheFile) {
    for (const json& row : rows_of("derive")) {
        const auto key = crypto::derive(key_of_vectors().key, row.at("purpose").get<std::string>(),
                                        row.at("name").get<std::string>());
        EXPECT_EQ(hex_of({reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()}),
                  row.at("result").get<std::string>());
    }
}

TEST(SealVectors, SealedValuesOfTheFileOpenAndAreSealedAgain) {
    for (const json& row : rows_of("value")) {
        SCOPED_TRACE(row.at("description"));
        const auto seal = seal_of(row);
        const auto place = row.at("place").get<std::string>();
        EXPECT_EQ(seal.open(place, "atp/0", bytes_at(row, "result")), bytes_at(row, "plain"));
        EXPECT_EQ(seal.seal(place, bytes_at(row, "plain"), nonce_from(bytes_at(row, "nonce"))),
                  bytes_at(row, "result"));
    }
    for (const json& row : rows_of("notice")) {
        const auto place = row.at("place").get<std::string>();
        EXPECT_EQ(seal_of(row).open("atp/0/facts/3", place, bytes_at(row, "result")), bytes_at(row, "plain"));
        EXPECT_EQ(seal_of(row).seal_notice(place, bytes_at(row, "plain"), nonce_from(bytes_at(row, "nonce"))),
                  bytes_at(row, "result"));
    }
}

TEST(SealVectors, SecretsMatchTheFile) {
    for (const json& row : rows_of("secret")) {
        const Secret secret =
            seal_of(row).secret(row.at("purpose").get<std::string>(), row.at("rank").get<std::uint32_t>());
        EXPECT_EQ(hex_of(bytes_of_secret(secret)), row.at("result").get<std::string>());
    }
}

TEST(SealVectors, KeysOfAFormationMatchTheFile) {
    for (const json& row : rows_of("key")) {
        const auto key = seal_of(row).key(row.at("purpose").get<std::string>());
        EXPECT_EQ(hex_of({reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()}),
                  row.at("result").get<std::string>());
    }
}

TEST(SealVectors, CodesOfWordsMatchTheFile) {
    for (const json& row : rows_of("code")) {
        EXPECT_EQ(code_of(row.at("operation"), row.at("first"), row.at("natural") == 1, row.at("words")[0]),
                  row.at("value").get<std::uint64_t>())
            << row.at("description");
    }
}

// As a switch adds them. Any other sum has no proof.
TEST(SealVectors, ProofWordsOfAllWorkersProveTheirSumAndNoOther) {
    for (const json& row : rows_of("packet")) {
        SCOPED_TRACE(row.at("description"));
        const PacketSeal seal{.channel = row.at("channel"),
                              .number = row.at("number"),
                              .form = row.at("form"),
                              .scale = row.at("scale"),
                              .purpose = row.at("purpose")};
        EXPECT_EQ(mask_of(seal, 0), row.at("mask_of_sum").get<std::uint64_t>());
        std::vector<std::uint32_t> sum;
        std::vector<std::uint32_t> proof;
        const auto workers = static_cast<std::uint32_t>(row.at("words").size());
        for (std::uint32_t worker = 0; worker < workers; ++worker) {
            const std::vector<std::uint32_t> words = row.at("words")[worker];
            EXPECT_EQ(proof_of(seal, worker, workers, words),
                      row.at("proof")[worker].get<std::vector<std::uint32_t>>());
            add_elements(seal.form, words, sum);
            add_elements(ATP_DTYPE_INT32, row.at("proof")[worker], proof);
        }
        EXPECT_TRUE(proves(seal, sum, proof));
        for (std::uint32_t& word : sum) {
            for (unsigned bit = 0; bit < 32; ++bit) {
                word ^= 1U << bit;
                EXPECT_FALSE(proves(seal, sum, proof)) << bit;
                word ^= 1U << bit;
            }
        }
    }
}

TEST(SealVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_TRUE(committed_text("seal.json") == text_of(seal_vectors()))
        << "a sealed value has changed: if this is intended, run write_seal_vectors > tests/conformance/seal.json";
}

}  // namespace
}  // namespace atp::conformance
