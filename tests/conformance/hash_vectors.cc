// SPDX-License-Identifier: Apache-2.0
#include "hash_vectors.h"

#include <array>
#include <nlohmann/json.hpp>

#include "comm/communicator.h"
#include "protocol/aggregator_index.h"
#include "protocol/audit.h"
#include "protocol/slot_indices.h"

namespace atp::conformance {
namespace {

HashVector index(std::uint32_t job, std::uint64_t token, std::uint16_t channel, std::uint32_t slot,
                 std::uint32_t attempt, std::uint32_t aggregators) {
    return {.function = "index",
            .arguments = {{"job", job},
                          {"token", token},
                          {"channel", channel},
                          {"slot", slot},
                          {"attempt", attempt},
                          {"aggregators", aggregators}},
            .value = protocol::aggregator_index(protocol::index_seed(job, token, channel), slot, attempt, aggregators)};
}

HashVector first_index(std::uint64_t token, std::uint8_t window_log2, std::uint32_t slot, std::uint32_t aggregators) {
    const protocol::ChannelConfig channel{
        .job = 1, .token = token, .channel = 3, .window_log2 = window_log2, .aggregators = aggregators};
    return {.function = "first_index",
            .arguments = {{"job", channel.job},
                          {"token", channel.token},
                          {"channel", channel.channel},
                          {"window_log2", channel.window_log2},
                          {"slot", slot},
                          {"aggregators", channel.aggregators}},
            .value = protocol::SlotIndices(channel).index(slot)};
}

HashVector audit(std::uint32_t job, std::uint64_t token, std::uint16_t channel, std::uint32_t seq,
                 std::uint32_t worker) {
    return {.function = "audit",
            .arguments = {{"job", job}, {"token", token}, {"channel", channel}, {"seq", seq}, {"worker", worker}},
            .value = protocol::audit_word(job, token, channel, seq, worker)};
}

HashVector purpose(Operation operation, std::uint64_t elements, std::uint32_t detail) {
    return {
        .function = "purpose",
        .arguments = {{"operation", static_cast<std::uint64_t>(operation)}, {"elements", elements}, {"detail", detail}},
        .value = comm::purpose_of(operation, elements, detail)};
}

void add_indices(std::vector<HashVector>& vectors) {
    constexpr std::uint64_t token = 0x0123456789ABCDEF;
    for (std::uint32_t slot = 0; slot < 8; ++slot) vectors.push_back(index(1, token, 0, slot, 0, 4096));
    for (std::uint32_t attempt = 1; attempt < 5; ++attempt) vectors.push_back(index(1, token, 0, 3, attempt, 4096));
    for (const std::uint32_t aggregators : {0U, 1U, 2U, 1000U, 44'000U, 0x80000000U, 0xFFFFFFFFU}) {
        vectors.push_back(index(0xDEADBEEF, token, 3, 255, 0, aggregators));
    }
    for (const std::uint32_t job : {0U, 0x9E3779B9U, 0xFFFFFFFFU}) {
        vectors.push_back(index(job, token, 0, 0, 0, 1U << 20U));
    }
    for (const std::uint64_t other : {std::uint64_t{1}, token << 32U, ~std::uint64_t{0}}) {
        vectors.push_back(index(1, other, 0, 0, 0, 1U << 20U));
    }
    vectors.push_back(index(0x01020304, token, 0xFFFF, 65'535, 2, 65'536));
}

void add_first_indices(std::vector<HashVector>& vectors) {
    constexpr std::uint64_t token = 0x0123456789ABCDEF;
    for (const std::uint32_t slot : {0U, 20U, 109U, 127U, 128U, 148U, 255U, 511U})
        vectors.push_back(first_index(token, 9, slot, 4096));
    // In a small table, a base slot takes attempt 1, 2 or 3, or finds all four indices in use.
    for (const std::uint32_t slot : {103U, 104U, 116U, 119U, 127U, 244U})
        vectors.push_back(first_index(token, 9, slot, 200));
    for (const std::uint32_t slot : {43U, 62U, 63U}) vectors.push_back(first_index(token, 8, slot, 100));
    for (const std::uint8_t window_log2 : {std::uint8_t{0}, std::uint8_t{3}, std::uint8_t{4}, std::uint8_t{12}})
        vectors.push_back(first_index(token, window_log2, (1U << window_log2) - 1U, 1000));
    for (const std::uint32_t aggregators : {0U, 1U}) vectors.push_back(first_index(token, 3, 5, aggregators));
}

void add_audit_words(std::vector<HashVector>& vectors) {
    for (std::uint32_t worker = 0; worker < 4; ++worker) vectors.push_back(audit(1, 2, 0, 0, worker));
    vectors.push_back(audit(0x01020304, 0x5EEDFACE, 0x0A0B, 1000, 7));
    vectors.push_back(audit(0x01020304, 0x5EEDFACE, 0xFFFF, 0xFFFFFFFF, 1023));
    vectors.push_back(audit(5, 5, 0, 0, 0));
    vectors.push_back(audit(1, 0x5EEDFACE01234567, 0x0A0B, 1000, 7));
    vectors.push_back(audit(1, 0x0123456700000000, 0, 0, 0));
    vectors.push_back(audit(1, ~std::uint64_t{0}, 0, 0, 0));
}

void add_purposes(std::vector<HashVector>& vectors) {
    using comm::Reduction;
    using numeric::ElementType;
    for (const ElementType type : numeric::element_types) {
        const std::uint32_t detail = comm::detail_of(type, Reduction::sum);
        const std::uint32_t lanes = type == ElementType::int64 ? 3000 : 1000;
        vectors.push_back(purpose(Operation::all_reduce, 1000, mix(detail + lanes)));
    }
    const std::uint32_t average = comm::detail_of(ElementType::float32, Reduction::average);
    vectors.push_back(purpose(Operation::all_reduce, 1000, mix(average + 1000)));
    vectors.push_back(purpose(Operation::all_reduce, 30, mix(mix(average + 10) + 20)));
    vectors.push_back(purpose(Operation::all_reduce, 5'000'000'000, mix(average + 705'032'704)));
    vectors.push_back(purpose(Operation::broadcast, 100, 0));
    vectors.push_back(purpose(Operation::broadcast, 100, 3));
    vectors.push_back(purpose(Operation::barrier, 1, 0));
    vectors.push_back(purpose(Operation::push, 1000, mix(7)));
}

}  // namespace

std::vector<HashVector> hash_vectors() {
    std::vector<HashVector> vectors;
    add_indices(vectors);
    add_first_indices(vectors);
    add_audit_words(vectors);
    add_purposes(vectors);
    return vectors;
}

nlohmann::ordered_json to_json(const HashVector& vector) {
    nlohmann::ordered_json row{{"function", vector.function}};
    for (const auto& [name, argument] : vector.arguments) row[std::string(name)] = argument;
    row["value"] = vector.value;
    return row;
}

}  // namespace atp::conformance
