// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "apps/atp/bench_collective.h"

namespace atp::apps {
namespace {

using numeric::ElementType;

comm::Options dynamic() {
    comm::Options options;
    options.scaling = tensor::Scaling::dynamic;
    return options;
}

template <typename T>
std::vector<T> elements_of(const BenchValues& values, std::uint32_t rank, std::size_t first, std::size_t count) {
    std::vector<T> elements(count);
    values.fill(rank, first, std::as_writable_bytes(std::span(elements)));
    return elements;
}

TEST(BenchValues, SumIsThatOfAllRanks) {
    const BenchValues values(dynamic(), ElementType::float32, 0, 1, 3);
    std::vector<float> sums(2 * BenchValues::period);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const auto own = elements_of<float>(values, rank, 7, sums.size());
        for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += own[at];  // exact: 24 bits
    }
    EXPECT_EQ(values.wrong_sum(7, std::as_bytes(std::span(sums))), std::nullopt);
}

TEST(BenchValues, OneWrongBitIsFoundWhereverItIs) {
    for (const ElementType type : numeric::element_types) {
        const BenchValues values(dynamic(), type, 0, 0, 2);
        std::vector<std::byte> elements(10'000 * values.element_bytes());
        values.fill(1, 123, elements);
        EXPECT_EQ(values.wrong_value(1, 123, elements), std::nullopt);
        for (const std::size_t at : {std::size_t{0}, std::size_t{3'970}, BenchValues::period, std::size_t{9'999}}) {
            std::vector<std::byte> wrong = elements;
            wrong[at * values.element_bytes()] ^= std::byte{1};
            EXPECT_EQ(values.wrong_value(1, 123, wrong), at) << to_string(type);
        }
    }
}

TEST(BenchValues, BlockOfAnotherRankOrPlaceIsWrong) {
    const BenchValues values(dynamic(), ElementType::bfloat16, 0, 0, 4);
    std::vector<std::byte> block(512);
    values.fill(2, 1000, block);
    EXPECT_TRUE(values.wrong_value(1, 1000, block));
    EXPECT_TRUE(values.wrong_value(2, 1001, block));
    EXPECT_TRUE(values.wrong_sum(1000, block));
}

TEST(BenchValues, LargestValueIsNearTheMagnitude) {
    for (const double magnitude : {1e-9, 0.02, 65'536.0}) {
        const BenchValues values(dynamic(), ElementType::float32, magnitude, 0, 4);
        float largest = 0;
        for (const float value : elements_of<float>(values, 0, 0, BenchValues::period)) {
            largest = std::max(largest, std::abs(value));
        }
        EXPECT_GT(largest, magnitude * 0.7);
        EXPECT_LT(largest, magnitude * 1.42);
    }
}

TEST(Collectives, NamesAreReadAsTheyArePrinted) {
    for (const Collective collective : collectives) EXPECT_EQ(parse_collective(to_string(collective)), collective);
    EXPECT_EQ(parse_collective("gather"), std::nullopt);
}

}  // namespace
}  // namespace atp::apps
