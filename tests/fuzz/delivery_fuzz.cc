// SPDX-License-Identifier: Apache-2.0
// For any order of calls, losses, duplicates and expiries, fragments with an owner give right results: a sum at its
// owner alone, whose own numbers stay at home, and the lanes of one sender at all others. Each operation completes once
// the network delivers again.
//
// An input chooses the placement of the workers, the operations, when each worker calls them, and what happens to each
// packet.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "input.h"
#include "require.h"
#include "support/owned_floats.h"
#include "support/owned_tensor.h"
#include "support/scenes.h"

namespace atp::fuzz {
namespace {

constexpr std::size_t most_operations = 6;
constexpr std::size_t most_steps = 200;
constexpr float unfit = 0x1p40F;  // has no integer at scale 1

testing::NetworkConfig some_config(Input& input) {
    testing::NetworkConfig config;
    switch (input.below(4)) {
        case 0: config = testing::star(2); break;
        case 1: config = testing::star(3); break;
        case 2: config = testing::racks(2, 2); break;
        default:
            config = testing::network_of(*protocol::Membership::make(
                {protocol::Unit{.ranks = {0, 1}}, protocol::Unit{.ranks = {2}, .direct = true}}));
            break;
    }
    config.scale = 1;
    return config;
}

// One operation of all workers: a sum of floats or of integers, or an all-gather.
class Operation {
  public:
    Operation(Input& input, const testing::NetworkConfig& config, std::uint16_t purpose)
        : workers_(config.membership.workers()), kind_(input.below(3)) {
        const std::size_t fragment = config.channel.payload_lanes();
        const std::size_t elements = 1 + input.below(12 * static_cast<std::uint32_t>(fragment));
        const std::size_t unfit_at = input.byte();
        const std::uint8_t unfit_rank = input.byte();
        for (unsigned rank = 0; rank < workers_; ++rank) {
            if (kind_ == 0) {
                std::vector<float> values(elements);
                for (std::size_t at = 0; at < elements; ++at) values[at] = static_cast<float>(value_of(rank, at));
                if (unfit_rank == rank && unfit_at < elements) values[unfit_at] = unfit;
                inputs_.push_back(values);
                floats_.push_back(std::make_unique<testing::OwnedFloats>(
                    testing::OwnedFloats::Form{
                        .workers = workers_, .fragment = fragment, .scale = 1, .purpose = purpose},
                    std::move(values)));
            } else {
                std::vector<std::int32_t> values(elements);
                for (std::size_t at = 0; at < elements; ++at) values[at] = value_of(rank, at);
                integers_.push_back(std::make_unique<testing::OwnedTensor>(
                    testing::OwnedTensor::Form{
                        .workers = workers_, .fragment = fragment, .one_sender = kind_ == 2, .purpose = purpose},
                    std::move(values)));
            }
        }
    }

    [[nodiscard]] protocol::Tensor& tensor(unsigned rank) {
        if (kind_ == 0) return *floats_[rank];
        return *integers_[rank];
    }

    // `ended`: everything has arrived. Before, a result may be missing, but it is never wrong.
    void verify(bool ended) const {
        for (unsigned rank = 0; rank < workers_; ++rank) {
            if (kind_ == 0) {
                verify_floats(rank, ended);
            } else {
                verify_integers(rank, ended);
            }
        }
    }

  private:
    static std::int32_t value_of(unsigned rank, std::size_t at) {
        return static_cast<std::int32_t>(1000 * (rank + 1) + at);
    }

    void verify_floats(unsigned rank, bool ended) const {
        const testing::OwnedFloats& own = *floats_[rank];
        for (std::size_t at = 0; at < own.size(); ++at) {
            const float found = own.output()[at];
            if (found == testing::OwnedFloats::untouched && !ended) continue;
            if (own.owner_at(at) != rank) {
                require(found == testing::OwnedFloats::untouched, "only the owner has a sum");
                continue;
            }
            double sum = 0;
            for (const std::vector<float>& input : inputs_) sum += static_cast<double>(input[at]);
            require(found == static_cast<float>(sum), "a sum is that of all workers");
        }
    }

    void verify_integers(unsigned rank, bool ended) const {
        const testing::OwnedTensor& own = *integers_[rank];
        for (std::size_t at = 0; at < own.size(); ++at) {
            const std::int32_t found = own.output()[at];
            if (found == testing::OwnedTensor::untouched && !ended) continue;
            const unsigned owner = own.owner_at(at);
            std::int32_t expected = testing::OwnedTensor::untouched;
            if (kind_ == 2 && owner != rank) expected = value_of(owner, at);
            if (kind_ == 1 && owner == rank) {
                expected = 0;
                for (unsigned each = 0; each < workers_; ++each) expected += value_of(each, at);
            }
            require(found == expected, "a worker has the results that are for it, and no others");
        }
    }

    unsigned workers_;
    std::uint32_t kind_;
    std::vector<std::vector<float>> inputs_;
    std::vector<std::unique_ptr<testing::OwnedFloats>> floats_;
    std::vector<std::unique_ptr<testing::OwnedTensor>> integers_;
};

class Story {
  public:
    explicit Story(Input& input) : input_(input), network_(some_config(input)), called_(workers()) {
        const std::size_t count = 1 + input_.below(most_operations);
        for (std::size_t number = 0; number < count; ++number) {
            operations_.push_back(
                std::make_unique<Operation>(input_, network_.config(), static_cast<std::uint16_t>(number + 1)));
        }
    }

    void run() {
        network_.set_rule([this](const testing::Flight&) { return fate(); });
        for (std::size_t step = 0; !input_.empty() && step < most_steps; ++step) {
            switch (input_.below(8)) {
                case 0: network_.release(); break;
                case 1: (void)network_.expire(); break;
                case 2: repeat_a_packet(); break;
                default: call_next(input_.below(workers())); break;
            }
            network_.run();
        }
        for (const auto& operation : operations_) operation->verify(false);
        finish();
    }

  private:
    [[nodiscard]] unsigned workers() const { return network_.config().membership.workers(); }

    testing::Network::Disposition fate() {
        const std::uint8_t draw = input_.byte();
        if (draw == 1) return testing::Network::Disposition::hold;
        if (draw == 2) return testing::Network::Disposition::duplicate;
        return draw % 8 == 7 ? testing::Network::Disposition::drop : testing::Network::Disposition::deliver;
    }

    void call_next(unsigned rank) {
        if (called_[rank] < operations_.size()) network_.submit(rank, operations_[called_[rank]++]->tensor(rank));
    }

    // As a very late duplicate.
    void repeat_a_packet() {
        const std::vector<testing::Flight>& delivered = network_.delivered();
        if (!delivered.empty()) network_.inject(testing::Flight(delivered[input_.word() % delivered.size()]));
    }

    void finish() {
        network_.clear_rule();
        for (unsigned rank = 0; rank < workers(); ++rank) {
            for (std::size_t left = called_[rank]; left < operations_.size(); ++left) call_next(rank);
        }
        network_.release();
        require(network_.finish(), "every operation completes");
        for (const auto& operation : operations_) operation->verify(true);
        for (unsigned rank = 0; rank < workers(); ++rank) {
            for (const auto& event : network_.events(rank)) {
                require(event.kind == protocol::WorkerEvent::Kind::completed, "no operation fails");
            }
        }
    }

    Input& input_;
    testing::Network network_;
    std::vector<std::unique_ptr<Operation>> operations_;
    std::vector<std::size_t> called_;  // by rank: operations
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
