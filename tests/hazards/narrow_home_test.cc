// SPDX-License-Identifier: Apache-2.0
// Sums of narrow fragments whose owners add their own numbers at home. The bits are those of an all-reduce.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "support/narrow_job.h"
#include "support/narrow_tensor.h"
#include "support/scenes.h"

namespace atp::testing {
namespace {

using protocol::Membership;

// Fragments dealt over the workers in turn.
class OwnedNarrow final : public NarrowTensor {
  public:
    OwnedNarrow(std::uint8_t form, std::vector<float> values, unsigned workers, std::size_t fragment)
        : NarrowTensor(form, std::move(values)), workers_(workers), fragment_(fragment) {}

    [[nodiscard]] std::uint16_t owner_at(std::uint64_t element) const {
        return static_cast<std::uint16_t>(element / fragment_ % workers_);
    }
    [[nodiscard]] protocol::Delivery delivery(std::uint64_t first) const override { return {.owner = owner_at(first)}; }

  private:
    unsigned workers_;
    std::size_t fragment_;
};

std::vector<NetworkConfig> narrow_homes() {
    std::vector<NetworkConfig> all{star(2), star(3), racks(2, 2),
                                   network_of(*Membership::make({{.ranks = {0, 1}}, {.ranks = {2}, .direct = true}}))};
    for (NetworkConfig& config : all) config.scale = 1;
    return all;
}

// A reduce-scatter, and an all-reduce of the same numbers.
class NarrowHome {
  public:
    template <class Value>
    NarrowHome(const NetworkConfig& config, std::uint8_t form, std::size_t elements, const Value& value)
        : network(config), other_(config) {
        const unsigned workers = config.membership.workers();
        const std::size_t fragment = config.channel.payload_lanes() * atp_elements_per_word(form);
        for (unsigned rank = 0; rank < workers; ++rank) {
            std::vector<float> values;
            for (std::size_t at = 0; at < elements; ++at) values.push_back(value(rank, at));
            all_.push_back(std::make_unique<NarrowTensor>(form, values));
            other_.submit(rank, *all_.back());
            owned_.push_back(std::make_unique<OwnedNarrow>(form, std::move(values), workers, fragment));
            network.submit(rank, *owned_.back());
        }
    }
    void expect_bits_of_all_reduce() {
        ASSERT_TRUE(other_.finish());
        for (unsigned rank = 0; rank < owned_.size(); ++rank) {
            const OwnedNarrow& own = *owned_[rank];
            for (std::size_t at = 0; at < own.size(); ++at) {
                const bool is_owner = own.owner_at(at) == rank;
                ASSERT_EQ(own.stored()[at], is_owner ? 1U : 0U);
                if (!is_owner) continue;
                ASSERT_EQ(std::bit_cast<std::uint32_t>(own.sums()[at]),
                          std::bit_cast<std::uint32_t>(all_[rank]->sums()[at]))
                    << "rank " << rank << " element " << at;
            }
        }
    }

    Network network;

  private:
    Network other_;
    std::vector<std::unique_ptr<NarrowTensor>> all_;
    std::vector<std::unique_ptr<OwnedNarrow>> owned_;
};

TEST(NarrowHome, BitsAreThoseOfAnAllReduceWhateverTheNumbersAndTheNetwork) {
    for (const NetworkConfig& config : narrow_homes()) {
        for (const std::uint8_t form : {ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
            for (std::uint32_t seed = 1; seed <= 20; ++seed) {
                SCOPED_TRACE(seed);
                NetworkConfig each = config;
                each.int32_lanes = seed % 4 == 0;  // narrow integers are then sent as int32
                NarrowHome job(each, form, 150 + seed, any_width);
                const Faults faults{.loss = 0.05, .duplication = 0.05, .reordering = 0.2, .marking = 0.02};
                ASSERT_TRUE(job.network.finish_among(faults, seed));
                job.expect_bits_of_all_reduce();
                EXPECT_EQ(job.network.server().counters().audit_failures, 0U);
            }
        }
    }
}

TEST(NarrowHome, SumsOfOthersComeInTheFormOfTheFragment) {
    for (const NetworkConfig& config : narrow_homes()) {
        const unsigned workers = config.membership.workers();
        NarrowHome job(config, ATP_DTYPE_INT16, std::size_t{6} * elements_each * workers, [](unsigned rank, auto) {
            return rank == 0 ? 32767.0F : 0.0F;  // fits alone, and with the others
        });
        ASSERT_TRUE(job.network.finish(0));
        job.expect_bits_of_all_reduce();
        const auto is_wide = [](const Flight& flight) {
            const atp_header header = flight.header();
            return header.lanes != 0 && atp_lanes_type(&header) != ATP_DTYPE_INT16;
        };
        EXPECT_EQ(job.network.count_delivered(is_wide), 0U);
    }
}

// The owner would get a sum that does not fit. So its numbers go to the server, which sends the whole sum as floats.
TEST(NarrowHome, H57_SumOfAllOthersBeyondTheFormNeedsTheOwner) {
    for (const std::uint8_t form : {ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
        const float near_limit = form == ATP_DTYPE_INT16 ? 30000.0F : 120.0F;
        const NetworkConfig config = narrow_homes()[1];
        const std::size_t fragment = elements_each * atp_elements_per_word(form);
        NarrowHome job(config, form, 9 * fragment, [&](unsigned rank, std::size_t at) {
            return at == 3 * fragment && rank != 0 ? near_limit : 1.0F;
        });
        ASSERT_TRUE(job.network.finish());
        job.expect_bits_of_all_reduce();
        const std::uint64_t own = job.network.count_delivered(
            [](const Flight& flight) { return is_gradient_of(flight, 0, 3) && flight.header().peer == 0; });
        EXPECT_GE(own, 1U) << "the first fragment of the operation is another one";
        EXPECT_EQ(job.network.server().counters().float_fragments, 0U);
    }
}

}  // namespace
}  // namespace atp::testing
