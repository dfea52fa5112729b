// SPDX-License-Identifier: Apache-2.0
#include "tensor/dealt_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
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

    Scattered() {
        std::vector<DealtTensor::Block> blocks;
        const std::array<std::size_t, 3> sizes{3, 0, 5};
        std::size_t first = 0;
        for (std::uint16_t owner = 0; owner < 3; ++owner) {
            void* const result = owner == 2 ? out.data() : nullptr;
            blocks.push_back(
                {make_sum_tensor(ElementType::int32, in.data() + first, result, sizes[owner], 1, 1), owner});
            first += sizes[owner];
        }
        tensor = std::make_unique<DealtTensor>(std::move(blocks), DealtTensor::Rules{.rank = 2, .longest = 3});
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

// Numbers of a block in spans of 6. The scale of each span is its number, counted over all blocks.
class SpannedTensor final : public protocol::Tensor {
  public:
    static constexpr std::uint64_t span = 6;

    SpannedTensor(std::uint64_t size, std::uint8_t first_scale) : size_(size), first_scale_(first_scale) {}

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] std::uint8_t form() const override { return ATP_DTYPE_INT16; }
    [[nodiscard]] protocol::Spans spans() const override { return {.length = span}; }
    [[nodiscard]] std::uint8_t scale(std::uint64_t first) const override {
        EXPECT_LT(first, size_);
        return static_cast<std::uint8_t>(first_scale_ + first / span);
    }
    // The numbers count the elements of the block from 1.
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        EXPECT_EQ(first / span, (first + lanes.size() / 2 - 1) / span);
        for (std::size_t at = 0; at < lanes.size(); at += 2) {
            lanes[at] = std::byte{0};
            lanes[at + 1] = std::byte(++first);
        }
        return true;
    }
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {}
    void store(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) override {}
    void store_narrow(std::uint64_t first, std::span<const std::byte> lanes) override {
        stored.emplace_back(first, lanes.size() / 2);
    }
    std::vector<std::pair<std::uint64_t, std::size_t>> stored;

  private:
    std::uint64_t size_;
    std::uint8_t first_scale_;
};

// Blocks of 14 and 8 elements; this rank is 1.
struct Spanned {
    SpannedTensor* own = nullptr;
    std::unique_ptr<DealtTensor> tensor;

    explicit Spanned(std::uint64_t longest, bool in_memory = false) {
        std::vector<DealtTensor::Block> blocks;
        blocks.push_back({std::make_unique<SpannedTensor>(14, 1), 0});
        auto second = std::make_unique<SpannedTensor>(8, 4);
        own = second.get();
        blocks.push_back({std::move(second), 1});
        tensor = std::make_unique<DealtTensor>(
            std::move(blocks), DealtTensor::Rules{.rank = 1, .longest = longest, .in_memory = in_memory});
    }
    // Of each fragment: its scale, then its numbers.
    [[nodiscard]] std::vector<std::vector<int>> fragments() const {
        std::vector<std::vector<int>> all;
        const std::uint64_t length = tensor->spans().length;
        for (std::uint64_t first = 0; first < tensor->size(); first += length) {
            EXPECT_EQ(tensor->delivery(first).owner, first / length % 2);
            std::vector<std::byte> lanes(length * 2);
            EXPECT_TRUE(tensor->load_integers(first, lanes));
            std::vector<int> fragment{tensor->scale(first)};
            for (std::size_t at = 1; at < lanes.size(); at += 2) fragment.push_back(std::to_integer<int>(lanes[at]));
            all.push_back(fragment);
        }
        return all;
    }
};

TEST(DealtTensor, AFragmentHasElementsOfOneSpan) {
    const Spanned spanned(5);
    EXPECT_EQ(spanned.tensor->form(), ATP_DTYPE_INT16);
    EXPECT_EQ(spanned.fragments(), (std::vector<std::vector<int>>{{1, 1, 2, 3},
                                                                  {4, 1, 2, 3},
                                                                  {1, 4, 5, 6},
                                                                  {4, 4, 5, 6},
                                                                  {2, 7, 8, 9},
                                                                  {5, 7, 8, 0},
                                                                  {2, 10, 11, 12},
                                                                  {0, 0, 0, 0},
                                                                  {3, 13, 14, 0},
                                                                  {0, 0, 0, 0}}));
}

TEST(DealtTensor, ZerosFillTheLastFragmentOfASpan) {
    const Spanned spanned(4);
    EXPECT_EQ(spanned.tensor->spans().length, 3U) << "two fragments of a span, not one of 4 and one of 2";
    const Spanned odd(5);
    EXPECT_EQ(odd.tensor->spans().length, 3U);
    const Spanned whole(6);
    EXPECT_EQ(whole.fragments().front(), (std::vector<int>{1, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(whole.fragments().back(), (std::vector<int>{0, 0, 0, 0, 0, 0, 0}));
}

TEST(DealtTensor, AShortBlockIsCutEquallyWhateverItsSpans) {
    std::vector<DealtTensor::Block> blocks;
    blocks.push_back({std::make_unique<SpannedTensor>(5, 1), 0});
    const DealtTensor tensor(std::move(blocks), {.longest = 4});
    EXPECT_EQ(tensor.spans().length, 3U);
    EXPECT_EQ(tensor.size(), 6U);
}

TEST(DealtTensor, InMemoryAFragmentHasWholeSpans) {
    EXPECT_EQ(Spanned(13, true).tensor->spans().length, 12U) << "spans of two rounds";
    EXPECT_EQ(Spanned(13, true).tensor->size(), 2 * 2 * 12U);
    EXPECT_EQ(Spanned(100, true).tensor->spans().length, 14U);
    EXPECT_EQ(Spanned(100, true).tensor->size(), 2 * 14U);
}

// Packets of 64 KiB have room for several spans, but one scale.
TEST(DealtTensor, InALongPacketAFragmentHasOneSpan) {
    for (const std::uint64_t longest : {6U, 13U, 100U}) {
        const Spanned spanned(longest);
        EXPECT_EQ(spanned.tensor->spans().length, 6U) << longest;
        EXPECT_EQ(spanned.fragments().at(2), (std::vector<int>{2, 7, 8, 9, 10, 11, 12})) << longest;
    }
}

TEST(DealtTensor, NarrowSumsGoToTheOwnBlock) {
    const Spanned spanned(4);
    spanned.tensor->store_narrow(0, std::vector<std::byte>(spanned.tensor->size() * 2));
    EXPECT_EQ(spanned.own->stored, (std::vector<std::pair<std::uint64_t, std::size_t>>{{0, 3}, {3, 3}, {6, 2}}));
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
