// SPDX-License-Identifier: Apache-2.0
// Narrow integers in full packets, and what does not fit them: wide copies in several packets, and wide results.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/narrow_job.h"
#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using Values = std::vector<float>;

constexpr std::uint8_t narrow_types[] = {ATP_DTYPE_INT16, ATP_DTYPE_INT8};

std::vector<NetworkConfig> some_networks() {
    return {star(2), star(4), racks(2, 2),
            network_of(*Membership::make({{.ranks = {0, 1}}, {.ranks = {2}, .direct = true}}))};
}

TEST(NarrowForms, PacketsAreAsFullAsThoseOfInt32) {
    for (const std::uint8_t form : narrow_types) {
        const std::size_t each = elements_each * atp_elements_per_word(form);
        NarrowJob job(racks(2, 2), form, 5 * each, narrow_value);
        EXPECT_TRUE(job.network.finish());
        EXPECT_EQ(job.network.server().counters().completed, 5U);
        for (const Flight& flight : job.network.delivered()) {
            EXPECT_EQ(flight.bytes.size(), ATP_HEADER_BYTES + (elements_each + 1) * ATP_LANE_BYTES);
        }
        EXPECT_EQ(job.count(ATP_DTYPE_FLOAT32) + job.count(ATP_DTYPE_FLOAT32, ATP_TYPE_ACK), 0U);
        EXPECT_EQ(job.network.server().counters().added_here, 0U) << "the switches added all gradients";
        EXPECT_EQ(job.bits().size(), 5 * each);
    }
}

TEST(NarrowForms, EveryFormAndNumberOfElementsGivesTheBitsOfInt32) {
    for (const NetworkConfig& config : some_networks()) {
        for (const std::size_t elements : {1U, 2U, 3U, 4U, 5U, 6U, 11U, 12U, 13U, 100U}) {
            NarrowJob wide(config, ATP_DTYPE_INT32, elements, any_width);
            EXPECT_TRUE(wide.network.finish());
            const Bits expected = wide.bits();
            for (const std::uint8_t form : narrow_types) {
                for (const std::uint64_t span : {0U, 7U, 24U}) {
                    NarrowJob job(config, form, elements, any_width, {.length = span});
                    ASSERT_TRUE(job.network.finish()) << elements;
                    ASSERT_EQ(job.bits(), expected) << elements << " in spans of " << span;
                    EXPECT_EQ(job.network.server().counters().refused, 0U);
                    EXPECT_EQ(job.network.server().counters().mismatched, 0U);
                    EXPECT_EQ(job.network.server().counters().audit_failures, 0U);
                }
            }
        }
    }
}

// docs/spec/hazards.md#h54
TEST(Hazard, H54_LostPartOfAWideCopyIsRecovered) {
    for (const std::uint8_t form : narrow_types) {
        const std::size_t each = elements_each * atp_elements_per_word(form);
        for (unsigned part = 0; part < atp_elements_per_word(form); ++part) {
            NarrowJob job(star(3), form, each, [&](unsigned rank, std::size_t at) {
                return rank == 1 && at == each - 1 ? 1e20F : narrow_value(rank, at);
            });
            job.network.drop_next([part](const Flight& flight) {
                return is_gradient_of(flight, 1) && flight.header().part >> ATP_PART_PACKET_SHIFT == part;
            });
            job.network.run();
            EXPECT_EQ(job.network.server().base(), 0U) << "a part is missing";
            EXPECT_TRUE(job.network.finish());
            (void)job.bits();
            EXPECT_EQ(job.tensors[0]->sums()[0], narrow_value(0, 0) + narrow_value(1, 0) + narrow_value(2, 0));
            EXPECT_EQ(job.network.server().counters().completed, 1U);
        }
    }
}

TEST(Hazard, H54_BitsUnderLossDuplicationAndReorderingEqualThoseWithout) {
    constexpr std::size_t elements = 200;
    for (const std::uint8_t form : narrow_types) {
        NarrowJob calm(star(4), form, elements, any_width);
        EXPECT_TRUE(calm.network.finish());
        const Bits expected = calm.bits();
        for (std::uint32_t seed = 1; seed <= 60; ++seed) {
            NetworkConfig config = seed % 2 == 0 ? star(4) : racks(2, 2);
            config.aggregators = seed % 3 == 0 ? 2 : 1024;
            config.channel.window_log2 = static_cast<std::uint8_t>(seed % 5);
            NarrowJob job(config, form, elements, any_width);
            const Faults faults{.loss = seed % 4 * 0.03, .duplication = seed % 3 * 0.05, .reordering = seed % 5 * 0.2};
            ASSERT_TRUE(job.network.finish_among(faults, seed)) << seed;
            ASSERT_EQ(job.bits(), expected) << seed;
            ASSERT_EQ(job.network.server().counters().audit_failures, 0U) << seed;
            ASSERT_EQ(job.network.server().counters().mismatched, 0U) << seed;
        }
    }
}

// docs/spec/hazards.md#h57
TEST(Hazard, H57_NarrowResultThatDoesNotFitComesAsFloatsInParts) {
    for (const NetworkConfig& config : some_networks()) {
        const unsigned workers = config.membership.workers();
        for (const std::uint8_t form : narrow_types) {
            const std::size_t each = elements_each * atp_elements_per_word(form);
            const float high = form == ATP_DTYPE_INT8 ? 127 : 32767;
            NarrowJob job(config, form, each,
                          [=](unsigned rank, std::size_t at) { return at == 1 ? high : narrow_value(rank, at); });
            EXPECT_TRUE(job.network.finish());
            (void)job.bits();
            EXPECT_EQ(job.tensors[0]->sums()[1], high * static_cast<float>(workers));
            EXPECT_EQ(job.count(ATP_DTYPE_FLOAT32), 0U) << "the elements fit";
            EXPECT_EQ(job.count(form, ATP_TYPE_ACK), 0U);
            EXPECT_GE(job.count(ATP_DTYPE_FLOAT32, ATP_TYPE_ACK), workers * atp_elements_per_word(form));
            EXPECT_EQ(job.network.occupied(), 0U);
        }
    }
}

TEST(Hazard, H57_LostPartOfAResultIsAskedForAgain) {
    for (unsigned part = 0; part < 4; ++part) {
        NarrowJob job(star(2), ATP_DTYPE_INT8, elements_each * 4, [](unsigned, std::size_t) { return 127.0F; });
        job.network.drop_next([part](const Flight& flight) {
            return flight.to == worker_node(1) && flight.is(ATP_TYPE_ACK) &&
                   flight.header().part >> ATP_PART_PACKET_SHIFT == part;
        });
        job.network.run();
        EXPECT_EQ(job.network.events(0).size(), 1U);
        EXPECT_EQ(job.network.events(1).size(), 0U);
        EXPECT_TRUE(job.network.finish());
        (void)job.bits();
        EXPECT_EQ(job.tensors[1]->sums(), Values(elements_each * 4, 254.0F));
    }
}

}  // namespace
}  // namespace atp::testing
