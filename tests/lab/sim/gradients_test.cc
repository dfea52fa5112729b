// SPDX-License-Identifier: Apache-2.0
// The simulator's check of sums must accept the right sum of every kind of fragment, and reject any other sum.
#include "sim/gradients.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "numeric/lanes32_sums.h"
#include "numeric/lanes32_worker.h"
#include "wire/packet.h"

namespace atp::sim {
namespace {

constexpr std::uint16_t lanes = 16;
constexpr std::size_t bytes = lanes * ATP_LANE_BYTES;

GradientShape shape_of(unsigned workers, double float_share = 0, double overflow_share = 0) {
    return {.key = 42,
            .workers = workers,
            .payload_lanes = lanes,
            .window = 4,
            .float_share = float_share,
            .overflow_share = overflow_share};
}

// The server's result for the given contributors, each as often as it is listed.
std::vector<std::byte> sum_of(GradientSource& source, const std::vector<unsigned>& ranks, std::uint64_t fragment) {
    std::vector<std::int64_t> sums(lanes, 0);
    std::vector<std::byte> wire(bytes);
    for (const unsigned rank : ranks) {
        EXPECT_TRUE(source.integers(rank, 0, fragment, wire));
        numeric::sums_add(wire.data(), lanes, sums.data());
    }
    numeric::sums_to_floats(sums.data(), lanes, 1.0 / gradient_scale, wire.data());
    return wire;
}

TEST(Gradients, SumOfEveryWorkerOnceIsAccepted) {
    for (const unsigned workers : {1U, 2U, 3U, 32U, 1024U}) {
        GradientSource source(shape_of(workers));
        std::vector<unsigned> all(workers);
        for (unsigned rank = 0; rank < workers; ++rank) all[rank] = rank;
        for (std::uint64_t fragment = 0; fragment < 8; ++fragment) {
            EXPECT_TRUE(source.verify(0, fragment, sum_of(source, all, fragment))) << workers << source.mismatch();
        }
    }
}

TEST(Gradients, MissingRepeatedOrSwappedWorkerIsDetected) {
    GradientSource source(shape_of(4));
    EXPECT_FALSE(source.verify(0, 5, sum_of(source, {0, 1, 2}, 5)));
    EXPECT_FALSE(source.verify(0, 5, sum_of(source, {0, 1, 2, 3, 3}, 5)));
    EXPECT_FALSE(source.verify(0, 5, sum_of(source, {0, 1, 2, 2}, 5)));
    EXPECT_NE(source.mismatch(), "");
}

TEST(Gradients, SumOfAnotherFragmentIsDetected) {
    GradientSource source(shape_of(3));
    for (std::uint64_t other = 1; other < 200; ++other) {
        EXPECT_FALSE(source.verify(0, 0, sum_of(source, {0, 1, 2}, other))) << other;
    }
}

TEST(Gradients, OneWrongBitIsDetected) {
    GradientSource source(shape_of(3));
    for (std::size_t at = 0; at < bytes; ++at) {
        std::vector<std::byte> sum = sum_of(source, {0, 1, 2}, 1);
        sum[at] ^= std::byte{1};
        EXPECT_FALSE(source.verify(0, 1, sum)) << at;
    }
}

TEST(Gradients, FragmentAtTheEndsOfInt32SumsIn64Bits) {
    GradientSource source(shape_of(5, 0, 1.0));
    bool beyond = false;
    for (std::uint64_t fragment = 0; fragment < 20; ++fragment) {
        const std::vector<std::byte> sum = sum_of(source, {4, 2, 0, 1, 3}, fragment);
        EXPECT_TRUE(source.verify(0, fragment, sum)) << source.mismatch();
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const auto value = std::bit_cast<float>(wire::load_u32(sum.data() + lane * ATP_LANE_BYTES));
            beyond |= static_cast<double>(value) * gradient_scale > 2147483647.0;
        }
    }
    EXPECT_TRUE(beyond);
}

TEST(Gradients, FloatFragmentHasAWorkerWithoutIntegers) {
    GradientSource source(shape_of(4, 1.0));
    std::vector<std::byte> wire(bytes);
    for (std::uint64_t fragment = 0; fragment < 50; ++fragment) {
        unsigned refusals = 0;
        for (unsigned rank = 0; rank < 4; ++rank) refusals += source.integers(rank, 0, fragment, wire) ? 0U : 1U;
        EXPECT_GE(refusals, 1U) << fragment;
    }
}

TEST(Gradients, PlainTensorsAreSummedModulo2To32) {
    GradientShape shape = shape_of(5, 0.3, 0.3);
    shape.plain_share = 0.5;
    GradientSource source(shape);
    unsigned plain = 0;
    bool wrapped = false;
    for (std::uint64_t tensor = 0; tensor < 40; ++tensor) {
        if (!source.plain(tensor)) continue;
        ++plain;
        std::vector<std::int64_t> sums(lanes, 0);
        std::vector<std::byte> wire(bytes);
        for (unsigned rank = 0; rank < 5; ++rank) {
            ASSERT_TRUE(source.integers(rank, tensor, 3, wire)) << "a plain tensor always fits integers";
            numeric::sums_add(wire.data(), lanes, sums.data());
        }
        for (const std::int64_t sum : sums) wrapped |= sum != static_cast<std::int32_t>(sum);
        numeric::sums_to_integers(sums.data(), lanes, wire.data());
        EXPECT_TRUE(source.verify(tensor, 3, wire)) << source.mismatch();
        wire[7] ^= std::byte{1};
        EXPECT_FALSE(source.verify(tensor, 3, wire));
    }
    EXPECT_GT(plain, 8U);
    EXPECT_LT(plain, 32U);
    EXPECT_TRUE(wrapped);
}

TEST(Gradients, OwnedTensorsAreScatteredOrGathered) {
    GradientShape shape = shape_of(3);
    shape.owned_share = 0.6;
    GradientSource source(shape);
    unsigned scattered = 0;
    unsigned gathered = 0;
    std::vector<std::byte> wire(bytes);
    for (std::uint64_t tensor = 0; tensor < 60; ++tensor) {
        const protocol::Delivery delivery = source.delivery(tensor, 4);
        if (!delivery.is_owned()) continue;
        EXPECT_EQ(delivery.owner, 1U);
        ++(delivery.one_sender ? gathered : scattered);
        if (!delivery.one_sender) continue;
        EXPECT_TRUE(source.plain(tensor));
        ASSERT_TRUE(source.integers(1, tensor, 4, wire));
        EXPECT_TRUE(source.verify(tensor, 4, wire)) << source.mismatch();
        ASSERT_TRUE(source.integers(2, tensor, 4, wire));
        EXPECT_FALSE(source.verify(tensor, 4, wire));
        // Worker 1 gets the fragments of the others.
        GradientTensor of_worker(source, 1, tensor, 2 * lanes + 1);
        ASSERT_TRUE(source.integers(0, tensor, 0, wire));
        of_worker.store(0, wire);
        EXPECT_FALSE(of_worker.right());
        ASSERT_TRUE(source.integers(2, tensor, 2, wire));
        of_worker.store(2 * lanes, std::span(wire).first(ATP_LANE_BYTES));
        EXPECT_TRUE(of_worker.right());
    }
    EXPECT_GT(scattered, 8U);
    EXPECT_GT(gathered, 8U);
}

TEST(Gradients, FloatsAndIntegersOfOneElementAreEqual) {
    GradientSource source(shape_of(4));
    std::vector<std::byte> integers(bytes);
    std::vector<std::byte> floats(bytes);
    std::vector<float> values(lanes);
    std::vector<std::byte> quantised(bytes);
    for (unsigned rank = 0; rank < 4; ++rank) {
        ASSERT_TRUE(source.integers(rank, 3, 9, integers));
        source.floats(rank, 3, 9, floats);
        numeric::floats_from_wire(floats.data(), lanes, values.data());
        ASSERT_TRUE(numeric::quantise(values.data(), lanes, static_cast<float>(gradient_scale), quantised.data()));
        EXPECT_EQ(quantised, integers);
    }
}

}  // namespace
}  // namespace atp::sim
