// SPDX-License-Identifier: Apache-2.0
// Narrow integers that are sent as int32, because a switch on the path adds only int32 lanes
// (docs/spec/numbers.md#int32-paths): the bits are those of the narrow form.
#include <gtest/gtest.h>

#include <cstdint>

#include "support/narrow_job.h"
#include "support/scenes.h"

namespace atp::testing {
namespace {

constexpr std::uint8_t narrow_types[] = {ATP_DTYPE_INT16, ATP_DTYPE_INT8};

NetworkConfig of_pipelines(NetworkConfig config) {
    config.bounded = true;
    config.pipelines = ~0U;
    config.root_is_pipeline = true;
    return config;
}

NetworkConfig in_int32(NetworkConfig config) {
    config.int32_lanes = true;
    return config;
}

std::size_t gradients_at_server(const Network& network) {
    return network.count_delivered(
        [](const Flight& flight) { return flight.to == server_node && flight.is(ATP_TYPE_GRADIENT); });
}

TEST(Int32Lanes, PipelinesAddNarrowIntegersThatTravelAsInt32) {
    constexpr std::size_t fragments = 12;
    for (const std::uint8_t form : narrow_types) {
        NarrowJob plain(racks(2, 3), form, fragments * elements_each, narrow_value);
        EXPECT_TRUE(plain.network.finish());
        NarrowJob job(in_int32(of_pipelines(racks(2, 3))), form, fragments * elements_each, narrow_value);
        EXPECT_TRUE(job.network.finish());
        EXPECT_EQ(job.bits(), plain.bits());
        EXPECT_EQ(gradients_at_server(job.network), fragments) << "the root sends one sum of each fragment";
        EXPECT_EQ(job.count(form), 0U);
        for (const Flight& flight : job.network.delivered()) {
            if (flight.is(ATP_TYPE_GRADIENT)) {
                EXPECT_EQ(flight.header().lanes, ATP_INT32_LANES);
            }
        }
    }
}

TEST(Int32Lanes, PipelinesForwardNarrowLanesAlone) {
    NarrowJob job(of_pipelines(racks(2, 3)), ATP_DTYPE_INT16, 2 * elements_each, narrow_value);
    EXPECT_TRUE(job.network.finish());
    EXPECT_EQ(gradients_at_server(job.network), 6U) << "one of each worker";
}

TEST(Int32Lanes, BitsAreThoseOfTheNarrowForm) {
    constexpr std::size_t elements = 200;
    for (const std::uint8_t form : narrow_types) {
        NarrowJob calm(star(6), form, elements, any_width, {.length = 24});
        EXPECT_TRUE(calm.network.finish());
        const Bits expected = calm.bits();
        for (std::uint32_t seed = 1; seed <= 60; ++seed) {
            NetworkConfig config = in_int32(seed % 2 == 0 ? star(6) : racks(2, 3));
            // Not only pipelines: the job's other paths may have any switch.
            config.bounded = true;
            config.pipelines = seed;
            config.root_is_pipeline = seed % 3 == 0;
            config.aggregators = seed % 5 == 0 ? 2 : 1024;
            config.channel.window_log2 = static_cast<std::uint8_t>(seed % 4);
            NarrowJob job(config, form, elements, any_width, {.length = 24});
            const Faults faults{.loss = seed % 4 * 0.03, .duplication = seed % 3 * 0.05, .reordering = seed % 5 * 0.2};
            ASSERT_TRUE(job.network.finish_among(faults, seed)) << seed;
            ASSERT_EQ(job.bits(), expected) << seed;
            ASSERT_EQ(job.network.server().counters().mismatched, 0U) << seed;
            ASSERT_EQ(job.network.server().counters().audit_failures, 0U) << seed;
        }
    }
}

}  // namespace
}  // namespace atp::testing
