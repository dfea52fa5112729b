// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fabric.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Reduction;
using numeric::ElementType;

// Sizes around one fragment, and a size of several windows.
constexpr std::size_t sizes[] = {
    1, 7, small_lanes - 1, small_lanes, small_lanes + 1, std::size_t{small_lanes} * small_window * 3 + 5};

class EveryType : public testing::TestWithParam<ElementType> {};

TEST_P(EveryType, IsSummedToTheLastBitAtEverySize) {
    const auto node = start(small_switch());
    Job(3, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::uint32_t seed = 0;
        for (const std::size_t size : sizes) {
            for (const bool in_place : {false, true}) {
                expect_sum(communicator, GetParam(), Reduction::sum, size, ++seed, in_place);
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(AllReduce, EveryType, testing::ValuesIn(numeric::element_types),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(AllReduce, EveryTypeOfFloatsIsAveragedToTheLastBit) {
    const auto node = start(small_switch());
    Job(3, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::uint32_t seed = 100;
        for (const ElementType type : numeric::element_types) {
            if (numeric::is_integer(type)) continue;
            for (const std::size_t size : sizes) {
                for (const bool in_place : {false, true}) {
                    expect_sum(communicator, type, Reduction::average, size, ++seed, in_place);
                }
            }
        }
    });
}

class Worlds : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Worlds, EverySizeOfAJobSumsExactly) {
    const auto node = start(small_switch());
    Job(GetParam(), {address_of(*node)}).run([](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < 3; ++round) expect_sum(communicator, 3000, round);
    });
}

INSTANTIATE_TEST_SUITE_P(AllReduce, Worlds, testing::Values(1, 2, 4, 5, 8, 16));

class Channels : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Channels, TensorOfEveryTypeIsSummedOverChannelsUnderAudit) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.channels = GetParam();
    options.audit = true;
    Job(2, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        std::uint32_t seed = 0;
        for (const ElementType type : numeric::element_types) {
            for (const std::size_t size : {std::size_t{1}, std::size_t{5000}}) {
                expect_sum(communicator, type, Reduction::sum, size, ++seed, true);
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(AllReduce, Channels, testing::Values(1, 2, 3));

TEST(AllReduce, UnsetLanesAndWindowAreChosen) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.lanes = 0;
    options.window = 0;
    Job(2, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        EXPECT_GE(communicator.formation().lanes, 8U);
        EXPECT_GE(communicator.formation().window, 16U);
        expect_sum(communicator, 100'000, 1);
    });
}

TEST(AllReduce, OddLanesAndAWindowOfOneSumExactly) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.lanes = 3;
    options.window = 1;
    options.audit = true;
    Job(2, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        for (const ElementType type : {ElementType::float32, ElementType::int64}) {
            expect_sum(communicator, type, Reduction::sum, 50, 1, true);
        }
    });
}

// ----------------------------------------------------------------------------------------------- Numbers at the limits

template <class Value>
std::vector<Value> sum_on_each(const std::vector<std::vector<Value>>& inputs, ElementType type) {
    const auto node = start(small_switch());
    std::vector<std::vector<Value>> outputs(inputs.size());
    Job(static_cast<std::uint32_t>(inputs.size()), {address_of(*node)}).run([&](comm::Communicator& communicator) {
        std::vector<Value> values = inputs[communicator.rank()];
        EXPECT_TRUE(
            succeeds(communicator.all_reduce({values.data(), values.data(), values.size()}, type, Reduction::sum)));
        outputs[communicator.rank()] = values;
    });
    for (const auto& output : outputs) {
        EXPECT_EQ(std::memcmp(output.data(), outputs[0].data(), output.size() * sizeof(Value)), 0);
    }
    return outputs[0];
}

TEST(Numbers, InfinitiesNanAndHugeFloatsFollowIeee) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float most = std::numeric_limits<float>::max();
    const std::vector<std::vector<float>> inputs{{infinity, infinity, nan, most, most, 1e30F, 1e-30F, -0.0F, 3.5F},
                                                 {1, -infinity, 2, most, -most, 1e30F, 1e-30F, -0.0F, -1.25F},
                                                 {2, 0, 3, most, 1, 1e30F, 1e-30F, -0.0F, 0.75F}};
    const std::vector<float> sums = sum_on_each(inputs, ElementType::float32);
    EXPECT_EQ(sums[0], infinity);
    EXPECT_TRUE(std::isnan(sums[1]));
    EXPECT_TRUE(std::isnan(sums[2]));
    EXPECT_EQ(sums[3], infinity);
    EXPECT_EQ(sums[4], 1.0F) << "a float sum is exact: nothing is lost beside what cancels";
    EXPECT_EQ(sums[5], static_cast<float>(3.0 * double{1e30F}));
    // Both have integers at the scale of the job, so their neighbours do not matter.
    EXPECT_EQ(sums[6], 0.0F);
    EXPECT_EQ(sums[7], 0.0F);
    EXPECT_FALSE(std::signbit(sums[7]));
    EXPECT_EQ(sums[8], 3.0F);
}

TEST(Numbers, HugeFloatLeavesTheBitsOfItsNeighbours) {
    std::vector<std::vector<float>> inputs(3, std::vector<float>(300));
    for (std::size_t at = 0; at < inputs[0].size(); ++at) {
        for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
            inputs[rank][at] = std::sin(static_cast<float>(at * 7 + rank)) * 1e-3F;
        }
    }
    std::vector<float> expected = sum_on_each(inputs, ElementType::float32);
    inputs[1][17] = 1e20F;
    expected[17] = 1e20F;
    EXPECT_EQ(sum_on_each(inputs, ElementType::float32), expected);
}

TEST(Numbers, FragmentWithAHugeFloatLeavesOtherFragmentsExact) {
    std::vector<std::vector<float>> inputs(2, std::vector<float>(std::size_t{small_lanes} * 40, 0.5F));
    const std::size_t at = std::size_t{small_lanes} * 21 + 3;
    inputs[0][at] = 1e20F;
    inputs[1][at] = 2e20F;
    std::vector<float> expected(inputs[0].size(), 1.0F);
    expected[at] = static_cast<float>(double{1e20F} + double{2e20F});
    EXPECT_EQ(sum_on_each(inputs, ElementType::float32), expected);
}

TEST(Numbers, SumsBeyond32BitsOfTheScaleAreExact) {
    // Each value fits an integer of the scale, but the sum does not: 3 * 20 * 1e8 > 2^31.
    const std::vector<std::vector<float>> inputs(3, std::vector<float>(200, 20.0F));
    EXPECT_EQ(sum_on_each(inputs, ElementType::float32), std::vector<float>(200, 60.0F));
}

// The magnitude of a lane is at most (2^31 - 1) / 4, so no sum leaves 32 bits in a switch:
// docs/spec/numbers.md#bounded-lanes.
TEST(Numbers, FragmentsWhoseSumCouldLeave32BitsBypassSwitches) {
    const auto node = start(small_switch());
    Job(4, {address_of(*node)}).run([](comm::Communicator& communicator) {
        std::vector<float> values(std::size_t{small_lanes} * 10, 5.25F);
        const bool large = communicator.rank() % 2 == 0;
        values[small_lanes * 3 + 1] = large ? 5.5F : -5.5F;
        values[small_lanes * 7] = large ? -20.0F : 20.0F;
        EXPECT_TRUE(succeeds(sum_in_place(communicator, values)));
        EXPECT_EQ(values[0], 4 * 5.25F);
        EXPECT_EQ(values[small_lanes * 3 + 1], 0.0F);
        EXPECT_EQ(values[small_lanes * 7], 0.0F);
        EXPECT_TRUE(eventually([&] { return counters_of(communicator).bypassed == 2; }))
            << counters_of(communicator).bypassed;
    });
}

TEST(Numbers, DoublesAreRoundedToFloatAndHugeOnesBecomeInfinite) {
    const std::vector<std::vector<double>> inputs{{1e300, 0.1, -1e300}, {1, 0.2, 5}};
    const std::vector<double> sums = sum_on_each(inputs, ElementType::float64);
    EXPECT_EQ(sums[0], std::numeric_limits<double>::infinity());
    EXPECT_EQ(sums[1], double{0.3F});
    EXPECT_EQ(sums[2], -std::numeric_limits<double>::infinity());
}

TEST(Numbers, IntegersWrapAround) {
    constexpr std::int32_t most32 = std::numeric_limits<std::int32_t>::max();
    constexpr std::int32_t least32 = std::numeric_limits<std::int32_t>::min();
    const std::vector<std::vector<std::int32_t>> narrow{
        {most32, least32, -1, most32, least32}, {1, -1, 1, most32, least32}, {0, 0, 0, most32, least32}};
    EXPECT_EQ(sum_on_each(narrow, ElementType::int32),
              (std::vector<std::int32_t>{least32, most32, 0, most32 - 2, least32}));
    constexpr std::int64_t most64 = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t least64 = std::numeric_limits<std::int64_t>::min();
    const std::vector<std::vector<std::int64_t>> wide{{most64, least64, -1, std::int64_t{1} << 40U, most64},
                                                      {1, -1, 1, std::int64_t{1} << 41U, most64},
                                                      {0, 0, 0, -5, most64}};
    EXPECT_EQ(sum_on_each(wide, ElementType::int64),
              (std::vector<std::int64_t>{least64, most64, 0, (std::int64_t{3} << 40U) - 5, most64 - 2}));
}

}  // namespace
}  // namespace atp::test
