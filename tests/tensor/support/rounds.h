// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks fit the scales of their tensors, with all state machines.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/scenes.h"
#include "tensor/number_fitter.h"
#include "tensor/tensors.h"

namespace atp::testing {

using tensor::NumberFitter;
using tensor::NumberForm;
using tensor::NumberTally;
using Values = std::vector<float>;

inline constexpr std::size_t even_elements = 4;  // elements of a fragment, an even number

// A tensor of one rank, and what it became.
struct FittedRound {
    Values in, out;
    NumberFitter::Fitted fitted;
};
struct FittingRank {
    std::unique_ptr<NumberFitter> fitter;
    std::vector<std::unique_ptr<FittedRound>> rounds;

    // Of the sums of all rounds.
    [[nodiscard]] std::vector<std::uint32_t> bits() const {
        std::vector<std::uint32_t> bits;
        for (const auto& round : rounds) {
            for (const float sum : round->out) bits.push_back(std::bit_cast<std::uint32_t>(sum));
        }
        return bits;
    }
};

// Packets of scaled numbers that were delivered.
inline std::size_t count_numbers(const Network& network, std::uint8_t dtype, atp_type type = ATP_TYPE_GRADIENT) {
    return network.count_delivered([=](const Flight& flight) {
        return flight.is(type) && !flight.has(ATP_FLAG_PLAIN) && (flight.header().lanes & ATP_LANES_TYPE_MASK) == dtype;
    });
}

// A job that sums one tensor in each round, as training does.
class Rounds {
  public:
    // Tensors of up to `exact` elements are summed exactly.
    Rounds(const NetworkConfig& config, const NumberForm& form, std::size_t elements, std::size_t exact = 0)
        : network(at_scale(config, form.scale)), form_(form), elements_(elements), ranks_(config.membership.workers()) {
        for (FittingRank& rank : ranks_) {
            rank.fitter = std::make_unique<NumberFitter>(
                NumberFitter::Config{.form = form,
                                     .ranks = config.membership.workers(),
                                     .feed = std::make_shared<protocol::SilentWaker>(),
                                     .report = [this](const NumberTally& tally) { tallies_.push_back(tally); },
                                     .exact = exact});
        }
    }

    // Submits the tensor of the next round: rank r contributes value(r, element).
    template <class Value>
    void submit(const Value& value) {
        for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
            FittingRank& own = ranks_[rank];
            FittedRound& round = *own.rounds.emplace_back(std::make_unique<FittedRound>());
            for (std::size_t element = 0; element < elements_; ++element) round.in.push_back(value(rank, element));
            round.out.assign(elements_, 0);
            auto tensor = tensor::make_sum_tensor(numeric::ElementType::float32, round.in.data(), round.out.data(),
                                                  elements_, static_cast<float>(form_.scale), 1);
            round.fitted = own.fitter->fit(std::move(tensor), numeric::ElementType::float32, {.elements = elements_});
            for (const auto& before : round.fitted.before) network.submit(rank, *before);
            network.submit(rank, *round.fitted.tensor);
        }
    }
    template <class Value>
    const Values& sum(const Value& value) {
        submit(value);
        EXPECT_TRUE(network.finish());
        EXPECT_TRUE(all_ranks_agree());
        return ranks_[0].rounds.back()->out;
    }

    [[nodiscard]] bool all_ranks_agree() const {
        for (const FittingRank& rank : ranks_) {
            if (rank.bits() != ranks_[0].bits()) return false;
        }
        return true;
    }
    [[nodiscard]] std::vector<std::uint32_t> bits() const { return ranks_[0].bits(); }
    [[nodiscard]] std::size_t count(std::uint8_t dtype, atp_type type = ATP_TYPE_GRADIENT) const {
        return count_numbers(network, dtype, type);
    }
    // The tally of rank 0 for its first round, which ends here.
    [[nodiscard]] NumberTally end_first_round() {
        tallies_.clear();
        ranks_[0].rounds.front()->fitted.tensor.reset();
        return tallies_.at(0);
    }

    Network network;

  private:
    [[nodiscard]] static NetworkConfig at_scale(NetworkConfig config, double scale) {
        config.scale = scale;
        return config;
    }

    std::vector<NumberTally> tallies_;
    NumberForm form_;
    std::size_t elements_;
    std::vector<FittingRank> ranks_;
};

inline constexpr NumberForm dynamic{.scaling = tensor::Scaling::dynamic};
inline constexpr NumberForm dynamic_shorts{.scaling = tensor::Scaling::dynamic, .lane_type = tensor::LaneType::int16};
inline constexpr NumberForm fixed_shorts{.scale = 1024, .lane_type = tensor::LaneType::int16};

inline NetworkConfig with_even_fragments(NetworkConfig config) {
    config.channel.lanes = even_elements + 1;  // with the audit lane
    return config;
}

inline double relative_error(float sum, double expected) { return std::abs(sum - expected) / std::abs(expected); }

// The first packet of worker 0 with scaled numbers.
inline Flight numbers_sent(const Rounds& rounds) {
    for (const Flight& flight : rounds.network.delivered()) {
        if (is_gradient_of(flight, 0) && !flight.has(ATP_FLAG_PLAIN)) return flight;
    }
    throw std::logic_error("nothing was sent");
}

}  // namespace atp::testing
