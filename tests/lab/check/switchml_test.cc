// SPDX-License-Identifier: Apache-2.0
// Results of the model checker for each of SwitchML's modes, and a check that it sees the machines' whole state.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "check/configuration.h"
#include "check/explore.h"
#include "check/explorer.h"
#include "check/switchml_machines.h"
#include "support/byte_archive.h"

namespace atp::check {
namespace {

using switchml::JobConfig;
using switchml::Mode;
using switchml::Route;
using switchml::Switch;
using switchml::Worker;

Configuration pair_with(const FaultBudget& budget) {
    Configuration configuration = *find_configuration("switchml2", Extent::quick);
    configuration.budget = budget;
    return configuration;
}

Report explore(const Configuration& configuration, Mode mode) {
    return Explorer(configuration, std::make_unique<SwitchMlMachines>(configuration, mode), {}).run();
}

TEST(SwitchMlModel, LosslessModeIsRightInEveryOrderWithoutFaults) {
    for (const std::uint8_t window_log2 : std::vector<std::uint8_t>{0, 1}) {
        Configuration configuration = pair_with({});
        configuration.window_log2 = window_log2;
        configuration.units = {{.workers = 3}};
        const Report report = explore(configuration, Mode::lossless);
        EXPECT_TRUE(report.exhausted);
        EXPECT_FALSE(report.violation);
    }
}

TEST(SwitchMlModel, LosslessModeStopsAfterALossAndCountsADuplicateTwice) {
    const Report lost = explore(pair_with(Budget{.losses = 1}), Mode::lossless);
    ASSERT_TRUE(lost.violation);
    EXPECT_EQ(lost.violation->what, "without further faults, the job never completes");
    const Report twice = explore(pair_with(Budget{.duplicates = 1}), Mode::lossless);
    ASSERT_TRUE(twice.violation);
    EXPECT_EQ(twice.violation->what, "a result is 4, the sum is 202");
}

TEST(SwitchMlModel, FaithfulModeIsRightWithoutLatePackets) {
    const Report report = explore(pair_with(Budget{.losses = 3}), Mode::faithful);
    EXPECT_TRUE(report.exhausted);
    EXPECT_FALSE(report.violation) << report.violation->what;
}

TEST(SwitchMlModel, H37_DuplicateOrSpuriousResendBreaksTheFaithfulModeOnly) {
    for (const Budget& budget : {Budget{.duplicates = 1}, Budget{.timeouts = 1}}) {
        const Report faithful = explore(pair_with(budget), Mode::faithful);
        ASSERT_TRUE(faithful.violation);
        EXPECT_TRUE(faithful.violation->what.starts_with("a result is ")) << faithful.violation->what;
        const Report ours = explore(pair_with(budget), Mode::compares_offsets);
        EXPECT_TRUE(ours.exhausted);
        EXPECT_FALSE(ours.violation);
    }
}

TEST(SwitchMlModel, H37_ShortestTraceToAWrongSumHasNineSteps) {
    const Report report = explore(pair_with(Budget{.duplicates = 1}), Mode::faithful);
    ASSERT_TRUE(report.violation);
    EXPECT_EQ(report.violation->trace.size(), 9U);
    EXPECT_EQ(report.violation->healed_from, 9U) << "no further fault, and no healing";
    EXPECT_EQ(report.violation->what, "a result is 204, the sum is 404") << "worker 1's 200 of phase 0, not its 400";
}

// --- states

// Two workers and a switch in a random network, each with a shadow. Before every step, the state of the original is
// restored into a newly constructed machine, the shadow. After the step, both must have the same state and output.
class Shadowed {
  public:
    explicit Shadowed(unsigned seed) : random_(seed) {
        for (std::uint8_t rank = 0; rank < 2; ++rank) {
            tensors_.push_back(std::make_unique<ModelTensor>(truth_, false, rank, 0, std::uint8_t{8}));
            workers_.push_back(std::make_unique<Worker>(config_of(rank)));
            EXPECT_TRUE(workers_[rank]->submit(*tensors_[rank], now_, now_ + std::chrono::hours(1)));
            for (Bytes& sent : drain(*workers_[rank])) flights_.emplace_back(2, std::move(sent));
        }
        EXPECT_TRUE(switch_.admit(job_config()));
    }

    [[nodiscard]] bool done() const {
        return std::ranges::all_of(workers_, [](const auto& worker) { return worker->idle(); });
    }

    void step() {
        const unsigned dice = random_() % 8;
        now_ += std::chrono::microseconds(random_() % 700);
        if (dice == 0 || flights_.empty()) return timeouts();
        const std::size_t at = random_() % flights_.size();
        const auto [to, packet] = flights_[at];
        if (dice != 1) flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(at));  // 1: a duplicate
        if (dice == 2) return;                                                              // lost
        if (to == 2) {
            to_switch(packet);
        } else {
            to_worker(to, packet);
        }
    }

  private:
    [[nodiscard]] static JobConfig job_config() { return {.job = 1, .workers = 2, .slots_log2 = 1, .lanes = 1}; }
    [[nodiscard]] static switchml::WorkerConfig config_of(std::uint8_t rank) {
        switchml::WorkerConfig config;
        config.job = job_config();
        config.rank = rank;
        config.scale = 1;
        config.tensors = 1;
        return config;
    }

    std::vector<Bytes> drain(Worker& worker) {
        std::vector<Bytes> sent;
        Bytes buffer(worker.packet_bytes());
        while (worker.poll_transmit(buffer, now_)) sent.push_back(buffer);
        while (worker.poll_event()) {
        }
        return sent;
    }

    template <class Act>
    void in_step(unsigned rank, const Act& act) {
        Worker shadow(config_of(static_cast<std::uint8_t>(rank)));
        ASSERT_TRUE(testing::copy_state(*workers_[rank], shadow));
        ASSERT_EQ(shadow.poll_timeout(), workers_[rank]->poll_timeout());
        act(shadow);
        act(*workers_[rank]);
        std::vector<Bytes> sent = drain(*workers_[rank]);
        ASSERT_EQ(drain(shadow), sent);
        ASSERT_EQ(testing::state_of(shadow), testing::state_of(*workers_[rank]));
        for (Bytes& packet : sent) flights_.emplace_back(2, std::move(packet));
    }
    void timeouts() {
        for (unsigned rank = 0; rank < 2; ++rank) {
            now_ = std::max(now_, std::min(workers_[rank]->poll_timeout(), now_ + std::chrono::milliseconds(2)));
            in_step(rank, [&](Worker& worker) { worker.handle_timeout(now_); });
        }
    }
    void to_worker(unsigned rank, const Bytes& packet) {
        in_step(rank, [&](Worker& worker) {
            Bytes copy = packet;
            worker.handle_packet(copy, false, now_);
        });
    }
    void to_switch(Bytes packet) {
        Switch shadow({.slots = 2, .lanes = 1});
        ASSERT_TRUE(shadow.admit(job_config()));
        ASSERT_TRUE(testing::copy_state(switch_, shadow));
        Bytes copy = packet;
        const auto verdict = switch_.handle_packet(packet);
        ASSERT_EQ(shadow.handle_packet(copy).event, verdict.event);
        ASSERT_EQ(copy, packet);
        ASSERT_EQ(testing::state_of(shadow), testing::state_of(switch_));
        for (unsigned rank = 0; rank < 2; ++rank) {
            const bool meant = verdict.route == Route::everybody || verdict.worker == rank;
            if (verdict.route != Route::drop && meant) flights_.emplace_back(rank, packet);
        }
    }

    Configuration configuration_ = pair_with({});
    protocol::Membership membership_ = *protocol::Membership::star(2);
    Truth truth_{configuration_, membership_};
    std::mt19937 random_;
    Time now_ = model_now;
    std::vector<std::unique_ptr<ModelTensor>> tensors_;
    std::vector<std::unique_ptr<Worker>> workers_;
    Switch switch_{{.slots = 2, .lanes = 1}};
    std::vector<std::pair<unsigned, Bytes>> flights_;
};

TEST(SwitchMlModel, RestoredMachinesContinueLikeTheOriginals) {
    for (unsigned seed = 1; seed <= 40 && !::testing::Test::HasFatalFailure(); ++seed) {
        Shadowed system(seed);
        for (unsigned steps = 0; steps < 4000 && !system.done(); ++steps) {
            system.step();
            if (::testing::Test::HasFatalFailure()) return;
        }
        EXPECT_TRUE(system.done()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace atp::check
