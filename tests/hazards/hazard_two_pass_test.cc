// SPDX-License-Identifier: Apache-2.0
// Hazard 18 of docs/spec/hazards.md: a target that adds one half of the lanes in a first pass and the other half in
// a second pass. The test runs atp_decide() as such a target would. One variant carries the decision into the second
// pass. The other variant decides again in the second pass.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "protocol/decide.h"
#include "support/packets.h"
#include "support/random.h"

namespace atp::testing {
namespace {

enum class SecondPass : std::uint8_t { carries_decision, decides_again };

constexpr unsigned jobs = 2;
constexpr std::uint16_t workers = 3;
constexpr std::uint32_t all_workers = (1U << workers) - 1;
constexpr std::uint32_t ageing_us = 1'000'000'000;

// A different power of two for each worker of each job, so every set of workers has a different sum.
std::int32_t weight(unsigned job, unsigned worker) { return 1 << (workers * job + worker); }

std::int32_t sum_of(const atp_header& packet) {
    std::int32_t sum = 0;
    for (unsigned worker = 0; worker < workers; ++worker) {
        if ((packet.bitmap0 >> worker & 1U) != 0) sum += weight(packet.job - 1, worker);
    }
    return sum;
}

// A target with one aggregator. A packet with lanes makes two passes, and such packets leave in the order of arrival. A
// packet without lanes makes one pass and updates both states.
class TwoPassTarget {
  public:
    explicit TwoPassTarget(SecondPass second) : second_(second) {}

    void first_pass(const atp_header& header, std::int32_t value) {
        InFlight packet{.arrived = header, .header = header, .decision = {}, .lanes = {value, value}};
        packet.decision = decide(packet.header, states_[0]);
        move(packet.decision, packet.lanes[0], held_[0]);
        in_flight_.push_back(packet);
    }
    [[nodiscard]] bool has_second_pass() const { return !in_flight_.empty(); }
    void second_pass() {
        InFlight packet = in_flight_.front();
        in_flight_.pop_front();
        atp_decision decision = packet.decision;
        if (second_ == SecondPass::decides_again) {
            atp_header again = packet.arrived;
            decision = decide(again, states_[1]);
        }
        move(decision, packet.lanes[1], held_[1]);
        if (packet.decision.packet == ATP_PACKET_FORWARD) leave(packet);
    }
    void release(atp_header ack) {
        for (atp_aggregator& state : states_) (void)decide(ack, state);
    }

    [[nodiscard]] unsigned torn() const { return torn_; }
    [[nodiscard]] unsigned complete() const { return complete_; }
    [[nodiscard]] unsigned collided() const { return collided_; }

  private:
    struct InFlight {
        atp_header arrived;
        atp_header header;
        atp_decision decision;
        std::array<std::int32_t, 2> lanes;
    };

    static atp_decision decide(atp_header& header, atp_aggregator& state) {
        return atp_decide(&header, 2, 0, &state, 0, ageing_us);
    }
    static void move(const atp_decision& decision, std::int32_t& lane, std::int32_t& held) {
        if (decision.lanes == ATP_LANES_STORE) held = lane;
        if (decision.lanes == ATP_LANES_ADD || decision.lanes == ATP_LANES_ADD_EMIT) held += lane;
        if (decision.lanes == ATP_LANES_EMIT || decision.lanes == ATP_LANES_ADD_EMIT) lane = held;
    }
    void leave(const InFlight& packet) {
        const std::int32_t expected = sum_of(packet.header);
        torn_ += packet.lanes[0] != expected || packet.lanes[1] != expected ? 1U : 0U;
        complete_ += packet.header.bitmap0 == all_workers ? 1U : 0U;
        collided_ += packet.decision.event == ATP_EVENT_COLLIDED ? 1U : 0U;
    }

    SecondPass second_;
    std::array<atp_aggregator, 2> states_{};  // the second state is used only if the second pass decides again
    std::array<std::int32_t, 2> held_{};
    std::deque<InFlight> in_flight_;
    unsigned torn_ = 0, complete_ = 0, collided_ = 0;
};

atp_header gradient(unsigned job, unsigned worker, std::uint32_t seq) {
    return {.version = ATP_VERSION,
            .type = ATP_TYPE_GRADIENT,
            .flags = 0,
            .hop = 0,
            .lanes = ATP_INT32_LANES,
            .window_log2 = 8,
            .scale = 0,
            .job = job + 1,
            .channel = 0,
            .worker = static_cast<std::uint16_t>(worker),
            .token = 7,
            .seq = seq,
            .index = 0,
            .argument = 0,
            .peer = ATP_WORKER_ALL,
            .sending = 0,
            .part = 0,
            .bitmap0 = 1U << worker,
            .mask0 = all_workers,
            .bitmap1 = 1,
            .mask1 = 1};
}

atp_header ack(unsigned job, std::uint32_t seq) {
    atp_header header = gradient(job, 0, seq);
    header.type = ATP_TYPE_ACK;
    header.lanes = ATP_FLOAT32_LANES;
    return header;
}

// Two jobs that share the aggregator, in random order. Each fragment gets its ACK after all of its gradients made their
// first pass. The test assumes that the server added a gradient that collided, so the ACK is possible.
TwoPassTarget run_jobs(SecondPass second, std::uint32_t seed) {
    TwoPassTarget target(second);
    Random random(seed);
    std::array<std::uint32_t, jobs> seq{};
    std::array<unsigned, jobs> sent{};
    for (int step = 0; step < 2000; ++step) {
        if (random.chance(0.5)) {
            if (target.has_second_pass()) target.second_pass();
            continue;
        }
        const unsigned job = random.below(jobs);
        if (sent[job] < workers) {
            target.first_pass(gradient(job, sent[job], seq[job]), weight(job, sent[job]));
            ++sent[job];
        } else {
            target.release(ack(job, seq[job]));
            ++seq[job];
            sent[job] = 0;
        }
    }
    while (target.has_second_pass()) target.second_pass();
    return target;
}

TEST(Hazard, H18_CarriedDecisionTearsNoPacket) {
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
        const TwoPassTarget target = run_jobs(SecondPass::carries_decision, seed);
        ASSERT_EQ(target.torn(), 0U) << seed;
        ASSERT_GT(target.complete(), 0U) << seed;
        ASSERT_GT(target.collided(), 0U) << seed;
    }
}

TEST(Hazard, H18_DecidingAgainInTheSecondPassTearsSums) {
    unsigned torn = 0;
    for (std::uint32_t seed = 0; seed < 50; ++seed) torn += run_jobs(SecondPass::decides_again, seed).torn();
    EXPECT_GT(torn, 0U) << "without the carried decision, at least one sum must be torn";
}

}  // namespace
}  // namespace atp::testing
