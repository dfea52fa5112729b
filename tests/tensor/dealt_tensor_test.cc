// SPDX-License-Identifier: Apache-2.0
#include "tensor/dealt_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

std::vector<std::int32_t> lanes_of(const std::vector<std::byte>& bytes) {
    std::vector<std::int32_t> lanes;
    for (std::size_t at = 0; at < bytes.size(); at += ATP_LANE_BYTES) {
        lanes.push_back(static_cast<std::int32_t>(wire::load_u32(bytes.data() + at)));
    }
    return lanes;
}

// Blocks of 3, 0 and 5 integers; this rank is 2.
struct Scattered {
    std::array<std::int32_t, 8> in{1, 2, 3, 11, 12, 13, 14, 15};
    std::array<std::int32_t, 5> out{};
    std::unique_ptr<DealtTensor> tensor;

    explicit Scattered(bool delivers = true) {
        std::vector<DealtTensor::Block> blocks;
        const std::array<std::size_t, 3> sizes{3, 0, 5};
        std::size_t first = 0;
        for (std::uint16_t owner = 0; owner < 3; ++owner) {
            void* const result = owner == 2 ? out.data() : nullptr;
            blocks.push_back(
                {make_sum_tensor(ElementType::int32, in.data() + first, result, sizes[owner], 1, 1), owner});
            first += sizes[owner];
        }
        tensor = std::make_unique<DealtTensor>(std::move(blocks),
                                               DealtTensor::Rules{.rank = 2, .longest = 3, .delivers = delivers});
    }
    [[nodiscard]] std::vector<std::int32_t> loaded(std::uint64_t first, std::size_t count) const {
        std::vector<std::byte> bytes(count * ATP_LANE_BYTES);
        EXPECT_TRUE(tensor->load_integers(first, bytes));
        return lanes_of(bytes);
    }
};

TEST(DealtTensor, MemberThatStandsForTheOwnerIsNamed) {
    std::array<std::int32_t, 4> values{1, 2, 3, 4};
    std::vector<DealtTensor::Block> blocks;
    for (std::uint16_t owner = 0; owner < 2; ++owner) {
        std::int32_t* const block = values.data() + 2 * owner;
        blocks.push_back({make_sum_tensor(ElementType::int32, block, owner == 1 ? block : nullptr, 2, 1, 1), owner,
                          static_cast<std::uint16_t>(owner + 5)});
    }
    DealtTensor tensor(std::move(blocks), {.rank = 1, .longest = 2});
    EXPECT_EQ(tensor.delivery(0).owner, 5U);
    EXPECT_EQ(tensor.delivery(2).owner, 6U);
    // the rank itself still owns its block
    tensor.store(0, std::vector<std::byte>(4 * ATP_LANE_BYTES, std::byte{0}));
    EXPECT_EQ(values, (std::array<std::int32_t, 4>{1, 2, 0, 0}));
}

TEST(DealtTensor, FragmentsAreEqualAndTheirOwnersTakeTurns) {
    const Scattered scattered;
    EXPECT_EQ(scattered.tensor->spans().length, 3U);
    EXPECT_EQ(scattered.tensor->size(), 2U * 3U * 3U);
    for (std::uint64_t fragment = 0; fragment < 6; ++fragment) {
        const protocol::Delivery delivery = scattered.tensor->delivery(3 * fragment);
        EXPECT_EQ(delivery.owner, fragment % 3);
        EXPECT_FALSE(delivery.one_sender);
    }
}

TEST(DealtTensor, ShorterBlocksEndInZeros) {
    const Scattered scattered;
    EXPECT_EQ(scattered.loaded(0, 18),
              (std::vector<std::int32_t>{1, 2, 3, 0, 0, 0, 11, 12, 13, 0, 0, 0, 0, 0, 0, 14, 15, 0}));
    EXPECT_EQ(scattered.loaded(15, 2), (std::vector<std::int32_t>{14, 15}));
}

TEST(DealtTensor, OnlyTheOwnBlockIsStored) {
    Scattered scattered;
    std::vector<std::byte> sums(18 * ATP_LANE_BYTES);
    for (std::uint32_t at = 0; at < 18; ++at) wire::store_u32(sums.data() + std::size_t{at} * ATP_LANE_BYTES, at);
    scattered.tensor->store(0, sums);
    EXPECT_EQ(scattered.out, (std::array<std::int32_t, 5>{6, 7, 8, 15, 16}));
}

TEST(DealtTensor, WithoutDeliveryBlocksFollowEachOther) {
    const Scattered scattered(false);
    EXPECT_EQ(scattered.tensor->spans().length, 0U);
    EXPECT_FALSE(scattered.tensor->delivery(0).is_owned());
    EXPECT_EQ(scattered.loaded(0, 15), (std::vector<std::int32_t>{1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 11, 12, 13, 14, 15}));
}

TEST(DealtTensor, AGatheringRankLoadsItsBlockAndStoresTheOthers) {
    std::array<std::byte, 6> out{};
    const std::array<std::byte, 2> own{std::byte{7}, std::byte{8}};
    std::vector<DealtTensor::Block> blocks;
    for (std::uint16_t owner = 0; owner < 3; ++owner) {
        blocks.push_back({make_broadcast_tensor(owner == 1 ? own.data() : nullptr,
                                                owner == 1 ? nullptr : out.data() + std::size_t{owner} * 2, 2),
                          owner});
    }
    DealtTensor tensor(std::move(blocks), {.rank = 1, .gathers = true, .longest = 4});
    EXPECT_TRUE(tensor.delivery(0).one_sender);
    std::vector<std::byte> lanes(3 * ATP_LANE_BYTES, std::byte{0xEE});
    EXPECT_TRUE(tensor.load_integers(0, lanes));
    EXPECT_EQ(lanes_of(lanes), (std::vector<std::int32_t>{0, 0x07080000, 0}));
    std::ranges::fill(lanes, std::byte{5});
    tensor.store(0, lanes);
    EXPECT_EQ(out, (std::array<std::byte, 6>{std::byte{5}, std::byte{5}, {}, {}, std::byte{5}, std::byte{5}}));
}

TEST(DealtTensor, HasNativeElementsIfEachHasOneLane) {
    for (const auto& [type, native] : {std::pair{ElementType::bfloat16, true}, std::pair{ElementType::int64, false}}) {
        std::array<std::uint64_t, 4> memory{};
        std::vector<DealtTensor::Block> blocks;
        blocks.push_back({make_sum_tensor(type, memory.data(), memory.data(), 4, 1, 1), 0});
        const DealtTensor tensor(std::move(blocks), {.longest = 3});
        EXPECT_EQ(tensor.native().count, native ? tensor.size() : 0U);
    }
}

}  // namespace
}  // namespace atp::tensor
