// SPDX-License-Identifier: Apache-2.0
// Narrow lanes and proof words at the server.
#include "protocol/fragment_sum.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "support/server_bench.h"

namespace atp::protocol {
namespace {

using testing::Lanes;
using testing::make_packet;
using testing::ServerAnswer;
using testing::ServerBench;

constexpr std::uint16_t lanes_of_fragment = 8;
using Proof = std::array<std::int32_t, ATP_PROOF_LANES>;

class FragmentSum : public ::testing::Test {
  protected:
    static ChannelConfig channel() {
        ChannelConfig channel = ServerBench::default_channel();
        channel.lanes = lanes_of_fragment;
        return channel;
    }
    [[nodiscard]] atp_header header_of(std::uint16_t rank, std::uint8_t lanes_field, unsigned flags = 0) const {
        atp_header header = testing::gradient_of(bench.channel, bench.members, rank, 0);
        header.lanes = lanes_field;
        header.flags = static_cast<std::uint16_t>(flags);
        return header;
    }
    // A word with four int8 elements, the first in the highest byte.
    static std::int32_t int8_word(int a, int b, int c, int d) {
        std::uint32_t word = 0;
        for (const int element : {a, b, c, d}) word = word << 8U | (static_cast<std::uint32_t>(element) & 0xFFU);
        return static_cast<std::int32_t>(word);
    }
    static Lanes with_proof(Lanes elements, const Proof& proof) {
        elements.insert(elements.end(), proof.begin(), proof.end());
        return elements;
    }
    // The ACK for all workers, which is the only answer.
    ServerAnswer ack() {
        const std::vector<ServerAnswer> answers = bench.answers();
        EXPECT_EQ(answers.size(), 1U);
        EXPECT_EQ(answers.at(0).header.type, ATP_TYPE_ACK);
        return answers.at(0);
    }

    ServerBench bench{*Membership::star(3), channel()};
};

TEST_F(FragmentSum, Int8ElementsAreAddedInWideSumsAndLeaveAsInt8) {
    bench.handle(make_packet(header_of(0, ATP_INT8_LANES), {int8_word(100, -100, 1, 0)}));
    bench.handle(make_packet(header_of(1, ATP_INT8_LANES), {int8_word(100, -100, 2, -1)}));
    bench.handle(make_packet(header_of(2, ATP_INT8_LANES), {int8_word(-100, 80, 3, 1)}));
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, ATP_INT8_LANES);
    EXPECT_EQ(answer.integers, (Lanes{int8_word(100, -120, 6, 0)})) << "partial sums may leave 8 bits";
}

TEST_F(FragmentSum, Int8ResultBeyond8BitsLeavesAsFloats) {
    for (std::uint16_t rank = 0; rank < 3; ++rank)
        bench.handle(make_packet(header_of(rank, ATP_INT8_LANES), {int8_word(100, -1, 0, -100)}));
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32));
    EXPECT_EQ(answer.sums, (std::vector<float>{300, -3, 0, -300}));
}

TEST_F(FragmentSum, Int8SumOfAllWorkersInOnePacketIsTheResult) {
    atp_header header = testing::gradient_of_members(bench.channel, bench.members, 0, 0x7, 0);
    header.lanes = ATP_INT8_LANES;
    bench.handle(make_packet(header, {int8_word(1, -2, 127, -128)}));
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, ATP_INT8_LANES);
    EXPECT_EQ(answer.integers, (Lanes{int8_word(1, -2, 127, -128)}));
}

TEST_F(FragmentSum, WiderIntegersOfAFormAreAddedToIt) {
    bench.handle(make_packet(header_of(0, ATP_INT16_LANES), {0x00010002}));
    bench.handle(make_packet(header_of(1, atp_lanes_of(ATP_DTYPE_INT16, ATP_DTYPE_INT32), ATP_FLAG_BYPASS), {3, 4}));
    bench.handle(make_packet(header_of(2, ATP_INT16_LANES), {0x00050006}));
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, ATP_INT16_LANES);
    EXPECT_EQ(answer.integers, (Lanes{9 << 16 | 12}));
}

TEST_F(FragmentSum, GradientOfAnotherFormIsMismatched) {
    bench.handle(make_packet(header_of(0, ATP_INT16_LANES), {0x00010002}));
    bench.handle(make_packet(header_of(1, ATP_INT32_LANES), {1, 2}));
    EXPECT_EQ(bench.server.counters().mismatched, 1U);
}

// Docs: docs/spec/numbers.md#result.
TEST_F(FragmentSum, ElementsWithIntegersAreTheirSumAtAScaleOfTheFragmentToo) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        atp_header header = header_of(rank, ATP_FLOAT32_LANES, ATP_FLAG_BYPASS);
        header.scale = scale_byte(2);
        const float large = rank == 0 ? 0x1p30F : 0.3F;
        bench.handle(testing::make_float_packet(header, {0.3F, large, -0.1F, 5}));
    }
    const float exact = 0x1p30F;  // 2^32 is no integer of 32 bits, and 0.6 is less than half of its last place
    EXPECT_EQ(ack().sums, (std::vector<float>{0.75F, exact, 0, 15})) << "0.3 is one quarter, -0.1 is none";
}

TEST_F(FragmentSum, ProofWordsAreAddedModulo32BitsAndTheResultStaysIntegers) {
    const auto flags = ATP_FLAG_PROOF;
    bench.handle(make_packet(header_of(0, ATP_INT32_LANES, flags), with_proof({5, -6}, {0x7fffffff, -1, 1, 10})));
    bench.handle(make_packet(header_of(1, ATP_INT32_LANES, flags), with_proof({1, 1}, {1, -1, 2, 20})));
    bench.handle(make_packet(header_of(2, ATP_INT32_LANES, flags), with_proof({2, 2}, {0, 0, 3, 30})));
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, ATP_INT32_LANES);
    EXPECT_EQ(answer.header.flags, ATP_FLAG_PROOF);
    EXPECT_EQ(answer.integers, with_proof({8, -3}, {static_cast<std::int32_t>(0x80000000), -2, 6, 60}));
}

TEST_F(FragmentSum, ProofWordsOfASetThatReplacesAnotherAreNotAddedTwice) {
    const auto flags = ATP_FLAG_PROOF;
    bench.handle(make_packet(header_of(1, ATP_INT32_LANES, flags), with_proof({1}, {1, 2, 3, 4})));
    atp_header sum = testing::gradient_of_members(bench.channel, bench.members, 0, 0x3, 0);
    sum.flags = flags;
    bench.handle(make_packet(sum, with_proof({11}, {101, 102, 103, 104})));
    bench.handle(make_packet(header_of(1, ATP_INT32_LANES, flags), with_proof({1}, {1, 2, 3, 4})));
    bench.handle(make_packet(header_of(2, ATP_INT32_LANES, flags), with_proof({100}, {1000, 1000, 1000, 1000})));
    EXPECT_EQ(ack().integers, with_proof({111}, {1101, 1102, 1103, 1104}));
    EXPECT_EQ(bench.server.counters().replaced, 1U);
    EXPECT_EQ(bench.server.counters().duplicates, 1U);
}

TEST_F(FragmentSum, NarrowSumWithProofWordsBeyondItsFormLeavesAsInt32) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(make_packet(header_of(rank, ATP_INT8_LANES, ATP_FLAG_PROOF),
                                 with_proof({int8_word(100, -1, 0, -100)}, {1, 2, 3, 4})));
    }
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_INT32));
    EXPECT_EQ(answer.header.flags, ATP_FLAG_PROOF);
    EXPECT_EQ(answer.integers, with_proof({300, -3, 0, -300}, {3, 6, 9, 12}));
}

TEST_F(FragmentSum, SumBeyond32BitsHasNoProof) {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
        bench.handle(
            make_packet(header_of(rank, ATP_INT32_LANES, ATP_FLAG_PROOF), with_proof({0x40000000, 1}, {1, 2, 3, 4})));
    }
    const ServerAnswer answer = ack();
    EXPECT_EQ(answer.header.lanes, ATP_FLOAT32_LANES);
    EXPECT_EQ(answer.header.flags, 0);
    EXPECT_EQ(answer.sums, (std::vector<float>{3.0F * 0x40000000, 3}));
}

TEST_F(FragmentSum, GradientsWithAndWithoutProofWordsAreMismatched) {
    bench.handle(make_packet(header_of(0, ATP_INT32_LANES, ATP_FLAG_PROOF), with_proof({1}, {1, 2, 3, 4})));
    bench.handle(make_packet(header_of(1, ATP_INT32_LANES), {1, 2, 3, 4, 5}));
    EXPECT_EQ(bench.server.counters().mismatched, 1U);
}

}  // namespace
}  // namespace atp::protocol
