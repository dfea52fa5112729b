// SPDX-License-Identifier: Apache-2.0
#include "tensor/chunk_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "numeric/lanes32_worker.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t first = 4;  // of the chunk, in the whole tensor
constexpr double job_scale = 100;

// A tensor of which only the form and the scales matter.
class Whole final : public protocol::Tensor {
  public:
    Whole(std::uint8_t form, bool plain, std::uint8_t scale) : form_(form), plain_(plain), scale_(scale) {}

    [[nodiscard]] std::uint64_t size() const override { return 16; }
    [[nodiscard]] bool plain() const override { return plain_; }
    [[nodiscard]] std::uint8_t form() const override { return form_; }
    [[nodiscard]] protocol::Spans spans() const override { return {.length = plain_ ? 0U : 6U}; }
    [[nodiscard]] std::uint8_t scale(std::uint64_t element) const override {
        return element < first ? protocol::exact_scale : scale_;
    }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t element) const override {
        return element < first ? protocol::Delivery{} : protocol::Delivery{.one_sender = true};
    }
    [[nodiscard]] bool load_integers(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {
        return false;
    }
    void load_floats(std::uint64_t /*first*/, std::span<std::byte> /*lanes*/) const override {}
    void store(std::uint64_t /*first*/, std::span<const std::byte> /*lanes*/) override {}

  private:
    std::uint8_t form_;
    bool plain_;
    std::uint8_t scale_;
};

Bytes words(const std::vector<std::int32_t>& values) {
    Bytes bytes(values.size() * ATP_LANE_BYTES);
    for (std::size_t at = 0; at < values.size(); ++at) {
        wire::store_u32(bytes.data() + at * ATP_LANE_BYTES, static_cast<std::uint32_t>(values[at]));
    }
    return bytes;
}

Bytes bytes_of(const std::vector<int>& values) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

ChunkTensor chunk_of(Bytes& sums, std::uint8_t form, bool plain = false, std::uint8_t scale = protocol::scale_of_job) {
    const auto whole = std::make_shared<Whole>(form, plain, scale);
    return ChunkTensor(*whole, {.sums = sums.data(),
                                .first = first,
                                .count = sums.size() / ATP_LANE_BYTES,
                                .job_scale = job_scale,
                                .keeps = whole});
}

TEST(ChunkTensor, SumsTravelInTheFormOfTheTensorIfTheyFitIt) {
    struct Row {
        std::uint8_t form;
        std::vector<std::int32_t> sums;
        bool fits;
        std::vector<int> lanes;
    };
    const std::vector<Row> rows{
        {ATP_DTYPE_INT16, {32767, -32767, 1}, true, {0x7F, 0xFF, 0x80, 0x01, 0x00, 0x01}},
        {ATP_DTYPE_INT16, {32768}, false, {}},
        {ATP_DTYPE_INT16, {-32768}, false, {}},
        {ATP_DTYPE_INT8, {127, -127, 1}, true, {0x7F, 0x81, 0x01}},
        {ATP_DTYPE_INT8, {-128}, false, {}},
        {ATP_DTYPE_INT32, {INT32_MAX, -1}, true, {0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}},
        {ATP_DTYPE_INT32, {1, INT32_MIN}, false, {}},
    };
    for (const Row& row : rows) {
        Bytes sums = words(row.sums);
        const std::size_t lane_bytes = row.form == ATP_DTYPE_INT8 ? 1 : row.form == ATP_DTYPE_INT16 ? 2 : 4;
        Bytes lanes(row.sums.size() * lane_bytes);
        EXPECT_EQ(chunk_of(sums, row.form).load_integers(0, lanes), row.fits) << row.sums.front();
        EXPECT_TRUE(!row.fits || lanes == bytes_of(row.lanes)) << row.sums.front();
    }
}

TEST(ChunkTensor, PlainSumsAlwaysFitAndElementsWithoutAScaleNeverDo) {
    Bytes sums = words({INT32_MIN, 7});
    Bytes lanes(sums.size());
    EXPECT_TRUE(chunk_of(sums, ATP_DTYPE_INT32, true).load_integers(0, lanes));
    EXPECT_EQ(lanes, sums);
    Bytes fitting = words({7});
    EXPECT_FALSE(
        chunk_of(fitting, ATP_DTYPE_INT32, false, protocol::exact_scale).load_integers(0, std::span(lanes).first(4)));
}

TEST(ChunkTensor, ResultsReplaceTheSumsAsFloats) {
    Bytes sums = words({0, 0, 0});
    chunk_of(sums, ATP_DTYPE_INT32).store(1, words({5}));
    EXPECT_EQ(sums, words({0, 5, 0}));
    for (const std::uint8_t form : {ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
        const Bytes lanes = form == ATP_DTYPE_INT8 ? bytes_of({50, 0x9C}) : bytes_of({0, 50, 0xFF, 0x9C});
        chunk_of(sums, form).store_narrow(1, lanes);
        std::array<float, 2> values{};
        numeric::floats_from_wire(sums.data() + ATP_LANE_BYTES, 2, values.data());
        EXPECT_EQ(values, (std::array{0.5F, -1.0F}));
    }
}

TEST(ChunkTensor, ElementsCountFromTheFirstOfTheChunk) {
    Bytes sums = words({1, 2, 3});
    const Bytes of_rank_1 = words({7, 8, 9});
    ChunkTensor chunk = chunk_of(sums, ATP_DTYPE_INT32);
    EXPECT_EQ(chunk.size(), 3U);
    EXPECT_EQ(chunk.spans().length, 6U);
    EXPECT_EQ(chunk.spans().offset, first);
    EXPECT_EQ(chunk.scale(0), protocol::scale_of_job);
    EXPECT_TRUE(chunk.delivery(0).one_sender);
    EXPECT_EQ(chunk_of(sums, ATP_DTYPE_INT32, true).spans().length, 0U);
    const Whole whole(ATP_DTYPE_INT32, false, 0);
    const ChunkTensor with_ranks(whole, {.sums = sums.data(), .ranks = {sums.data(), of_rank_1.data()}, .count = 3});
    Bytes lanes(4);
    EXPECT_EQ(with_ranks.float_ranks(), 2U);
    with_ranks.load_floats_of(1, 2, lanes);
    EXPECT_EQ(lanes, words({9}));
    with_ranks.load_floats(1, lanes);
    EXPECT_EQ(lanes, words({2}));
}

}  // namespace
}  // namespace atp::tensor
