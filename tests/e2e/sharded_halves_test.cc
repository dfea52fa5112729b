// SPDX-License-Identifier: Apache-2.0
// Reduce-scatters and reduces of 16-bit types, which are sent as int16: over a switch, in shared memory, and with
// several ranks on each of several hosts.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "numeric/half.h"
#include "sharded.h"

namespace atp::test {
namespace {

using Halves = std::vector<std::uint16_t>;

void run_on_one_channel(std::uint32_t world, const comm::Options& options, const JobBody& body) {
    const auto node = start(small_switch());
    Job(world, {address_of(*node)}, options).run(body);
}

Halves halves_of(ElementType type, const std::vector<float>& values) {
    Halves halves(values.size());
    const auto narrow = type == ElementType::float16 ? numeric::floats_to_halves : numeric::floats_to_bfloats;
    narrow(values.data(), values.size(), halves.data());
    return halves;
}

std::vector<float> floats_of(ElementType type, const Halves& halves) {
    std::vector<float> floats(halves.size());
    const auto widen = type == ElementType::float16 ? numeric::halves_to_floats : numeric::bfloats_to_floats;
    widen(halves.data(), halves.size(), floats.data());
    return floats;
}

Halves input_of(ElementType type, std::uint32_t rank, std::size_t elements, float magnitude) {
    std::vector<float> values(elements);
    for (std::size_t at = 0; at < elements; ++at) {
        values[at] = magnitude * std::sin(static_cast<float>(at * 3 + rank)) * (at % 512 < 200 ? 1.0F : 0.25F);
    }
    return halves_of(type, values);
}

const Sizes sizes = {700, 6000, 0, 301};  // 6,000 elements are two spans
constexpr std::size_t all_elements = 7001;

// One reduce-scatter of four ranks. Appends the own sums to `sums`, each of which is near the exact one.
bool scatter(Communicator& communicator, ElementType type, float magnitude, Halves& sums, double tolerance = 0x1p-5) {
    const std::uint32_t rank = communicator.rank();
    const Halves input = input_of(type, rank, all_elements, magnitude);
    Halves part(sizes[rank]);
    if (!succeeds(communicator.reduce_scatter(input.data(), part.data(), sizes, type, Reduction::sum))) return false;
    const std::size_t begin = first_of(sizes, rank);
    std::vector<double> exact(part.size());
    for (std::uint32_t other = 0; other < 4; ++other) {
        const auto values = floats_of(type, input_of(type, other, all_elements, magnitude));
        for (std::size_t at = 0; at < part.size(); ++at) exact[at] += static_cast<double>(values[begin + at]);
    }
    const std::vector<float> found = floats_of(type, part);
    for (std::size_t at = 0; at < part.size(); ++at) {
        EXPECT_NEAR(found[at], exact[at], tolerance * static_cast<double>(magnitude)) << at;
    }
    sums.insert(sums.end(), part.begin(), part.end());
    return true;
}

// The sums of all ranks and rounds.
std::vector<Halves> sums_on(const Run& run, ElementType type, const comm::Options& options) {
    std::vector<Halves> sums(4);
    run(4, options, [&](Communicator& communicator) {
        for (const float magnitude : {1.0F, 3.0F, 0.3F, 300.0F, 1e-2F, 0.0F, 1.0F, 1.0F}) {
            if (!scatter(communicator, type, magnitude, sums[communicator.rank()])) return;
        }
    });
    return sums;
}

comm::Options usual() { return dynamic_options(tensor::LaneType::automatic); }

TEST(ShardedHalves, SumsHaveEqualBitsInEveryPlacement) {
    comm::Options long_packets = usual();
    long_packets.lanes = 352;
    for (const ElementType type : {ElementType::bfloat16, ElementType::float16}) {
        const auto expected = sums_on(run_on_one_channel, type, usual());
        EXPECT_EQ(sums_on(run_on_one_channel, type, long_packets), expected);
        for (const Placement& place : placements())
            EXPECT_EQ(sums_on(place.run, type, usual()), expected) << place.name;
    }
}

// Fragments of four steady reduce-scatters, of all ranks.
std::uint64_t fragments_of(ElementType type, tensor::LaneType lane_type) {
    std::vector<std::uint64_t> fragments(4);
    run_on_one_channel(4, dynamic_options(lane_type), [&](Communicator& communicator) {
        Halves sums;
        for (int round = 0; round < 4; ++round) {
            if (!scatter(communicator, type, 1.0F, sums, lane_type == tensor::LaneType::int8 ? 1.0 : 0x1p-5)) return;
        }
        std::uint64_t seen = 0;  // until a published count does not change
        EXPECT_TRUE(eventually([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1100));
            const std::uint64_t before = std::exchange(seen, counters_of(communicator).acks);
            return before == seen && seen != 0;
        }));
        EXPECT_EQ(counters_of(communicator).float_fragments, 0U);
        fragments[communicator.rank()] = seen;
        EXPECT_TRUE(succeeds(communicator.barrier()));
    });
    return std::reduce(fragments.begin(), fragments.end());
}

TEST(ShardedHalves, FragmentsHoldTwiceTheElements) {
    const std::uint64_t wide = fragments_of(ElementType::bfloat16, tensor::LaneType::int32);
    EXPECT_LT(fragments_of(ElementType::bfloat16, tensor::LaneType::automatic), wide * 6 / 10);
    EXPECT_LT(fragments_of(ElementType::bfloat16, tensor::LaneType::int8), wide * 4 / 10);
}

TEST(ShardedHalves, LostPacketsChangeNothing) {
    const auto lossy = [](std::uint32_t world, const comm::Options& options, const JobBody& body) {
        const auto node = start(with_ports(small_switch(), {.loss = 0.02}));
        Job(world, {address_of(*node)}, options).run(body);
    };
    EXPECT_EQ(sums_on(lossy, ElementType::bfloat16, usual()),
              sums_on(run_on_one_channel, ElementType::bfloat16, usual()));
}

TEST(ShardedHalves, AReduceOfEachRootHasTheScaleOfItsOwnSums) {
    for (const Placement& place : placements()) {
        place.run(4, usual(), [](Communicator& communicator) {
            for (const std::uint32_t root : {2U, 0U, 2U, 0U, 2U}) {
                const float number = root == 0 ? 1e3F : 3e-3F;
                const Halves input = halves_of(ElementType::bfloat16, std::vector<float>(2000, number));
                Halves sums(2000);
                void* const out = communicator.rank() == root ? sums.data() : nullptr;
                if (!succeeds(communicator.reduce({input.data(), out, input.size()}, ElementType::bfloat16,
                                                  Reduction::sum, root)))
                    return;
                if (communicator.rank() == root) {
                    EXPECT_NEAR(floats_of(ElementType::bfloat16, sums).back() / (4 * number), 1, 0x1p-7);
                }
            }
        });
    }
}

}  // namespace
}  // namespace atp::test
