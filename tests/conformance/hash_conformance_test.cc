// SPDX-License-Identifier: Apache-2.0
// Checks the hashes, and the worker and the server that use them, against the committed hash.json.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "hash_vectors.h"
#include "protocol/aggregator_index.h"
#include "protocol/audit.h"
#include "protocol/server.h"
#include "protocol/worker.h"
#include "vector_file.h"

namespace atp::conformance {
namespace {

using nlohmann::json;
using protocol::ChannelConfig;

template <class Number>
Number argument(const json& row, const char* name) {
    return row.at(name).get<Number>();
}

json rows_of(const std::string& function) {
    json rows = json::array();
    for (const json& row : json::parse(committed_text("hash.json"))) {
        if (row.at("function") == function) rows.push_back(row);
    }
    return rows;
}

TEST(HashVectors, IndicesMatchTheFile) {
    for (const json& row : rows_of("index")) {
        SCOPED_TRACE(row.dump());
        EXPECT_EQ(protocol::aggregator_index(
                      protocol::index_seed(argument<std::uint32_t>(row, "job"), argument<std::uint64_t>(row, "token"),
                                           argument<std::uint16_t>(row, "channel")),
                      argument<std::uint32_t>(row, "slot"), argument<std::uint32_t>(row, "attempt"),
                      argument<std::uint32_t>(row, "aggregators")),
                  argument<std::uint32_t>(row, "value"));
    }
}

TEST(HashVectors, AuditWordsMatchTheFile) {
    for (const json& row : rows_of("audit")) {
        SCOPED_TRACE(row.dump());
        EXPECT_EQ(protocol::audit_word(argument<std::uint32_t>(row, "job"), argument<std::uint64_t>(row, "token"),
                                       argument<std::uint16_t>(row, "channel"), argument<std::uint32_t>(row, "seq"),
                                       argument<std::uint32_t>(row, "worker")),
                  argument<std::uint32_t>(row, "value"));
    }
}

TEST(HashVectors, PurposesMatchTheFile) {
    for (const json& row : rows_of("purpose")) {
        SCOPED_TRACE(row.dump());
        const auto operation = static_cast<Operation>(argument<std::uint8_t>(row, "operation"));
        EXPECT_EQ(comm::purpose_of(operation, argument<std::uint64_t>(row, "elements"),
                                   argument<std::uint32_t>(row, "detail")),
                  argument<std::uint32_t>(row, "value"));
    }
}

// A tensor of one element, whose value is 0.
class OneZero final : public protocol::PlainTensor {
  public:
    [[nodiscard]] std::uint64_t size() const override { return 1; }
    void store(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) override {}

  protected:
    void load(std::uint64_t /*first*/, std::span<std::byte> lanes) const override {
        std::ranges::fill(lanes, std::byte{0});
    }
};

// In the first window no ACK has named an index yet, so worker and server must choose the same attempts.
TEST(HashVectors, FirstGradientAndFirstAckOfASlotCarryTheIndexOfTheFile) {
    const auto membership = *protocol::Membership::star(1);
    for (const json& row : rows_of("first_index")) {
        SCOPED_TRACE(row.dump());
        const ChannelConfig channel{.job = argument<std::uint32_t>(row, "job"),
                                    .token = argument<std::uint64_t>(row, "token"),
                                    .channel = argument<std::uint16_t>(row, "channel"),
                                    .lanes = 1,
                                    .window_log2 = argument<std::uint8_t>(row, "window_log2"),
                                    .aggregators = argument<std::uint32_t>(row, "aggregators"),
                                    .first_seq = argument<std::uint32_t>(row, "slot")};
        protocol::Worker worker(
            {.channel = channel, .rank = 0, .place = membership.place(0), .senders = {}, .congestion = {}});
        OneZero tensor;
        ASSERT_TRUE(worker.submit(tensor, Time{}));
        std::vector<std::byte> gradient(worker.packet_bytes());
        ASSERT_TRUE(worker.poll_transmit(gradient, Time{}));
        EXPECT_EQ(wire::load_u32(gradient.data() + ATP_OFFSET_INDEX), argument<std::uint32_t>(row, "value"));

        protocol::Server server({.channel = channel}, membership);
        server.handle_packet(gradient, false, Time{});
        std::vector<std::byte> ack(server.packet_bytes());
        ASSERT_TRUE(server.poll_transmit(ack));
        ASSERT_EQ(wire::load_u8(ack.data() + ATP_OFFSET_TYPE), ATP_TYPE_ACK);
        EXPECT_EQ(wire::load_u32(ack.data() + ATP_OFFSET_INDEX), argument<std::uint32_t>(row, "value"));
        EXPECT_EQ(wire::load_u32(ack.data() + ATP_OFFSET_ARGUMENT), argument<std::uint32_t>(row, "value"));
    }
}

TEST(HashVectors, EveryFunctionHasSevenRows) {
    for (const char* function : {"index", "first_index", "audit", "purpose"})
        EXPECT_GE(rows_of(function).size(), 7U) << function;
}

TEST(HashVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_TRUE(committed_text("hash.json") == text_of(hash_vectors()))
        << "a hash has changed: if this is intended, run write_hash_vectors > tests/conformance/hash.json";
}

}  // namespace
}  // namespace atp::conformance
