// SPDX-License-Identifier: Apache-2.0
// Proof words in a whole network: every result has each rank's words exactly once. No worker sends proof words yet, so
// the links of the workers add them to gradients, check them in results, and turn results into those of a worker.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "support/network.h"
#include "support/packets.h"

namespace atp::testing {
namespace {

using protocol::Membership;
using Words = std::array<std::uint32_t, ATP_PROOF_LANES>;

constexpr std::size_t elements = 4;
constexpr std::size_t fragments = 60;

Words words_of(std::uint32_t seq, std::uint32_t rank) {
    Words words{};
    for (std::uint32_t at = 0; at < words.size(); ++at) words[at] = mix(mix(mix(seq + 1) + rank) + at);
    return words;
}

class ProofWords {
  public:
    explicit ProofWords(Network& network)
        : ranks_(network.config().membership.workers()), scale_(network.config().scale) {
        network.set_rule([this](Flight& flight) {
            if (flight.from.kind == Node::Kind::worker && flight.is(ATP_TYPE_GRADIENT)) add(flight);
            if (flight.to.kind == Node::Kind::worker && flight.is(ATP_TYPE_ACK)) take(flight);
            return Network::Disposition::deliver;
        });
    }
    [[nodiscard]] std::size_t results() const { return results_; }

  private:
    static void add(Flight& flight) {
        atp_header header = flight.header();
        header.flags |= ATP_FLAG_PROOF;
        Lanes lanes = lanes_in(flight.bytes);
        for (const std::uint32_t word : words_of(header.seq, flight.from.number)) {
            lanes.push_back(static_cast<std::int32_t>(word));
        }
        flight.bytes = make_packet(header, lanes);
    }
    void take(Flight& flight) {
        atp_header header = flight.header();
        const Lanes lanes = lanes_in(flight.bytes);
        ASSERT_EQ(header.flags & ATP_FLAG_PROOF, ATP_FLAG_PROOF);
        ASSERT_EQ(header.lanes, ATP_INT32_LANES);
        ASSERT_EQ(lanes.size(), elements + ATP_PROOF_LANES);
        Words expected{};
        for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
            const Words own = words_of(header.seq, rank);
            for (std::size_t at = 0; at < own.size(); ++at) expected[at] += own[at];
        }
        for (std::size_t at = 0; at < expected.size(); ++at) {
            EXPECT_EQ(static_cast<std::uint32_t>(lanes[elements + at]), expected[at]) << "fragment " << header.seq;
        }
        std::vector<float> sums;
        for (std::size_t at = 0; at < elements; ++at) sums.push_back(static_cast<float>(lanes[at] / scale_));
        header.flags = static_cast<std::uint16_t>(header.flags & ~unsigned{ATP_FLAG_PROOF});
        header.lanes = ATP_FLOAT32_LANES;
        flight.bytes = make_float_packet(header, sums);
        ++results_;
    }

    std::uint32_t ranks_;
    double scale_;
    std::size_t results_ = 0;
};

// Each tensor is one fragment, which leaves room for the proof words.
void submit_fragments(Network& network) {
    for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
        network.submit_all(elements, [fragment](unsigned rank, std::size_t element) {
            return static_cast<float>(rank + 1) * 0.25F + static_cast<float>(element) * 0.5F +
                   static_cast<float>(fragment) / 64;
        });
    }
}

NetworkConfig config_of(const Membership& membership, std::uint32_t aggregators) {
    NetworkConfig config;
    config.channel.audit = false;
    config.channel.lanes = elements + ATP_PROOF_LANES;
    config.membership = membership;
    config.aggregators = aggregators;
    config.scale = 1U << 24U;  // a power of two: the division below is exact
    return config;
}

TEST(ProofWords, AreAddedOnceByBothLevels) {
    Network network(config_of(*Membership::racks(3, 2), 1024));
    const ProofWords words(network);
    submit_fragments(network);
    ASSERT_TRUE(network.finish());
    EXPECT_TRUE(network.sums_are_right());
    EXPECT_EQ(words.results(), fragments * 6);
    EXPECT_EQ(network.server().counters().added_here, 0U) << "the switches have added all gradients";
}

// Few aggregators collide, so partial sums leave by FLUSHes and resends, and meet single gradients at the server.
TEST(ProofWords, AreAddedOnceAmongLossDuplicatesAndCollisions) {
    std::uint64_t flushes = 0;
    std::uint64_t collided = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t replaced = 0;
    for (const auto& membership : {*Membership::star(4), *Membership::racks(2, 2), *Membership::racks(3, 2)}) {
        for (std::uint32_t seed = 1; seed <= 20; ++seed) {
            Network network(config_of(membership, 3 + seed % 4));
            const ProofWords words(network);
            submit_fragments(network);
            const Faults faults{.loss = 0.03, .duplication = 0.05, .reordering = 0.2, .marking = 0.02};
            ASSERT_TRUE(network.finish_among(faults, seed)) << "seed " << seed;
            ASSERT_TRUE(network.sums_are_right()) << "seed " << seed;
            EXPECT_GE(words.results(), fragments * membership.workers());
            const protocol::ServerCounters& counters = network.server().counters();
            flushes += counters.flushes;
            collided += counters.collided;
            duplicates += counters.duplicates;
            replaced += counters.replaced;
            EXPECT_EQ(counters.mismatched, 0U);
        }
    }
    EXPECT_GT(flushes, 0U);
    EXPECT_GT(collided, 0U);
    EXPECT_GT(duplicates, 0U);
    EXPECT_GT(replaced, 0U);
}

}  // namespace
}  // namespace atp::testing
