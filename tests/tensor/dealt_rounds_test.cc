// SPDX-License-Identifier: Apache-2.0
// Reduce-scatters of scaled numbers in every form, round after round, with all state machines.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "support/rounds.h"
#include "tensor/dealt_tensor.h"

namespace atp::testing {
namespace {

using numeric::ElementType;
using protocol::Membership;
using tensor::DealtTensor;
using Bits = std::vector<std::uint32_t>;

// A job whose ranks own a block of equal length each. Rank r has value(r, element), counted over all blocks.
class DealtRounds {
  public:
    DealtRounds(const NetworkConfig& config, tensor::LaneType lane_type, std::size_t each)
        : network(config), each_(each), ranks_(config.membership.workers()) {
        for (FittingRank& rank : ranks_) {
            rank.fitter = std::make_unique<NumberFitter>(
                NumberFitter::Config{.form = {.scaling = tensor::Scaling::dynamic, .lane_type = lane_type},
                                     .ranks = config.membership.workers(),
                                     .feed = std::make_shared<protocol::SilentWaker>(),
                                     .exact = 0});
        }
    }

    template <class Value>
    void submit(const Value& value) {
        const auto owners = static_cast<std::uint16_t>(ranks_.size());
        for (std::uint16_t number = 0; number < owners; ++number) {
            FittingRank& rank = ranks_[number];
            FittedRound& round = *rank.rounds.emplace_back(std::make_unique<FittedRound>());
            for (std::size_t at = 0; at < owners * each_; ++at) round.in.push_back(value(number, at));
            round.out.assign(each_, 0);
            std::vector<DealtTensor::Block> blocks;
            for (std::uint16_t owner = 0; owner < owners; ++owner) {
                float* const sums = owner == number ? round.out.data() : nullptr;
                blocks.push_back(
                    {tensor::make_sum_tensor(ElementType::float32, &round.in[owner * each_], sums, each_, 1, 1),
                     owner});
            }
            const std::uint8_t form = rank.fitter->form_of(ElementType::float32, owners * each_);
            const std::size_t longest = network.config().channel.payload_lanes() * atp_elements_per_word(form);
            round.fitted = rank.fitter->fit_dealt(std::move(blocks), {.rank = number, .longest = longest},
                                                  ElementType::float32, {.elements = owners * each_});
            for (const auto& before : round.fitted.before) network.submit(number, *before);
            network.submit(number, *round.fitted.tensor);
            network.submit(number, *round.fitted.after);
        }
    }
    // The sums of all blocks.
    template <class Value>
    Values sum(const Value& value) {
        submit(value);
        EXPECT_TRUE(network.finish());
        return sums_of_last();
    }
    [[nodiscard]] Values sums_of_last() const {
        Values sums;
        for (const FittingRank& rank : ranks_) {
            sums.insert(sums.end(), rank.rounds.back()->out.begin(), rank.rounds.back()->out.end());
        }
        return sums;
    }
    [[nodiscard]] Bits bits() const {
        Bits bits;
        for (const FittingRank& rank : ranks_) {
            const Bits of_rank = rank.bits();
            bits.insert(bits.end(), of_rank.begin(), of_rank.end());
        }
        return bits;
    }
    [[nodiscard]] std::size_t count(std::uint8_t dtype, atp_type type = ATP_TYPE_GRADIENT) const {
        return count_numbers(network, dtype, type);
    }

    Network network;

  private:
    std::size_t each_;
    std::vector<FittingRank> ranks_;
};

constexpr tensor::LaneType lane_types[] = {tensor::LaneType::int32, tensor::LaneType::int16, tensor::LaneType::int8};
constexpr std::size_t block = 300;  // elements: three cells of narrow forms

float wave(unsigned rank, std::size_t element) {
    return std::sin(static_cast<float>(element * 3 + rank)) * (element % 300 < 128 ? 1.0F : 0.3F);
}

double exact_sum(unsigned ranks, std::size_t element, float magnitude) {
    double sum = 0;
    for (unsigned rank = 0; rank < ranks; ++rank) sum += static_cast<double>(magnitude * wave(rank, element));
    return sum;
}

// Magnitudes that rise, fall, fall far and jump.
Bits bits_of_rounds(const NetworkConfig& config, tensor::LaneType lane_type, double precision) {
    DealtRounds rounds(config, lane_type, block);
    for (const float magnitude : {1.0F, 3.0F, 1e-1F, 1e-12F, 1e6F, 0.0F, 1.0F, 1.0F}) {
        const Values sums = rounds.sum([&](unsigned rank, std::size_t at) { return magnitude * wave(rank, at); });
        for (std::size_t at = 0; at < sums.size(); ++at) {
            EXPECT_NEAR(sums[at], exact_sum(4, at, magnitude), precision * static_cast<double>(magnitude)) << at;
        }
    }
    EXPECT_EQ(rounds.network.server().counters().mismatched, 0U);
    return rounds.bits();
}

NetworkConfig with_lanes(NetworkConfig config, std::uint16_t lanes) {
    config.channel.lanes = lanes;
    return config;
}

TEST(DealtRounds, BitsDoNotDependOnSwitchesNorOnTheLengthOfPackets) {
    for (const auto& [lane_type, precision] :
         {std::pair{tensor::LaneType::int32, 0x1p-14}, std::pair{tensor::LaneType::int16, 0x1p-6},
          std::pair{tensor::LaneType::int8, 1.0}}) {
        const Bits expected = bits_of_rounds(star(4), lane_type, precision);
        EXPECT_EQ(bits_of_rounds(racks(2, 2), lane_type, precision), expected);
        EXPECT_EQ(bits_of_rounds(with_lanes(star(4), 12), lane_type, precision), expected);
        EXPECT_EQ(bits_of_rounds(with_lanes(racks(2, 2), 353), lane_type, precision), expected);
        EXPECT_EQ(bits_of_rounds(network_of(*Membership::make({{.ranks = {0, 1, 2}}, {.ranks = {3}, .direct = true}})),
                                 lane_type, precision),
                  expected);
    }
}

TEST(DealtRounds, H58_BitsUnderLossDuplicationAndReorderingEqualThoseWithout) {
    for (const tensor::LaneType lane_type : lane_types) {
        const auto bits = [&](const auto& finish) {
            DealtRounds rounds(racks(2, 2), lane_type, 60);
            for (const float magnitude : {1.0F, 200.0F, 1e-3F}) {
                rounds.submit([&](unsigned rank, std::size_t at) { return magnitude * wave(rank, at); });
                EXPECT_TRUE(finish(rounds.network));
            }
            return rounds.bits();
        };
        const Bits expected = bits([](Network& network) { return network.finish(); });
        for (std::uint32_t seed = 1; seed <= 5; ++seed) {
            const Faults faults{.loss = 0.05, .duplication = 0.05, .reordering = 0.2, .marking = 0.02};
            EXPECT_EQ(bits([&](Network& network) { return network.finish_among(faults, seed); }), expected) << seed;
        }
    }
}

TEST(DealtRounds, SteadyNumbersTravelInTheirFormAndOwnNumbersStayAtHome) {
    for (const auto& [lane_type, form] :
         {std::pair{tensor::LaneType::int16, ATP_DTYPE_INT16}, std::pair{tensor::LaneType::int8, ATP_DTYPE_INT8}}) {
        DealtRounds rounds(star(4), lane_type, block);
        for (int round = 0; round < 4; ++round) rounds.sum(wave);
        rounds.network.forget_delivered();
        rounds.sum(wave);
        const auto dtype = static_cast<std::uint8_t>(form);
        const std::size_t each = elements_each * atp_elements_per_word(dtype);
        const std::size_t fragments = 4 * ((block + each - 1) / each);
        // Each worker sends the fragments of the three others, and one of its own. The switch passes a sum of each on.
        EXPECT_EQ(rounds.count(dtype), 3 * fragments + 4 + fragments + 4);
        EXPECT_EQ(rounds.count(dtype, ATP_TYPE_ACK), 2 * fragments) << "on two links to the owner";
        EXPECT_EQ(rounds.count(ATP_DTYPE_INT32) + rounds.count(ATP_DTYPE_FLOAT32), 0U);
    }
}

TEST(DealtRounds, SmallNumbersKeepTheirDigitsBesideOtherBlocksAndSpans) {
    constexpr std::size_t span = tensor::span_elements(ATP_DTYPE_INT32);
    const NetworkConfig config = with_lanes(star(2), 353);
    DealtRounds rounds(config, tensor::LaneType::int32, span + 100);
    const auto value = [](unsigned rank, std::size_t at) {
        const float part = 1 - static_cast<float>((at + rank) % 97) * 1e-3F;
        return at < span ? 1e6F * part : at < span + 100 ? part : 1e-6F * part;
    };
    for (int round = 0; round < 12; ++round) rounds.sum(value);
    const Values sums = rounds.sum(value);
    for (std::size_t at = 0; at < sums.size(); at += 7) {
        EXPECT_LT(relative_error(sums[at], double{value(0, at)} + double{value(1, at)}), 0x1p-21) << at;
    }
}

TEST(DealtRounds, SumsThatOutgrowTheirFormNeedTheOwnerAndStayRight) {
    DealtRounds rounds(star(4), tensor::LaneType::int16, block);
    for (int round = 0; round < 3; ++round) rounds.sum(wave);
    // The first three ranks outgrow 16 bits together, no number does so alone.
    const auto large = [](unsigned rank, std::size_t at) { return at == 3 * block + 7 ? 4.0F : wave(rank, at); };
    const Values sums = rounds.sum(large);
    EXPECT_EQ(sums[3 * block + 7], 16.0F);
    EXPECT_NEAR(sums[3 * block + 8], exact_sum(4, 3 * block + 8, 1), 0x1p-9);
    EXPECT_EQ(rounds.count(ATP_DTYPE_FLOAT32), 0U) << "integers suffice";
}

}  // namespace
}  // namespace atp::testing
