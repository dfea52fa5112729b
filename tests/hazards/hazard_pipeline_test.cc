// SPDX-License-Identifier: Apache-2.0
// Hazard 18 of docs/protocol.md#hazards at a pipeline (protocol/decide_pipeline.h): packets pass several times, and
// between two passes of a packet anything may happen. Packets and passes are lost, repeated and delayed in any order.
// Each gradient that leaves must have the sum of exactly the workers that its bitmap names. Four faults are injected,
// and the same test finds each of them.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {
enum class Fault : std::uint8_t { none, free_before_harvest, harvest_unchecked, claim_unchecked, pass_decides_again };
Fault injected = Fault::none;  // the test has one thread
}  // namespace
#define ATP_PIPELINE_BREAK(name) (injected == Fault::name)
#include "protocol/decide_pipeline.h"
#include "support/random.h"

namespace atp::testing {
namespace {

constexpr unsigned jobs = 2;
constexpr unsigned workers = 3;
constexpr std::uint32_t all_workers = (1U << workers) - 1;
constexpr std::uint32_t window_log2 = 2;
constexpr std::uint32_t window = 1U << window_log2;
constexpr std::uint32_t ageing_us = 1000;
constexpr std::size_t lanes = 4;
using LanesOfPacket = std::array<std::uint32_t, lanes>;

// Every worker has other numbers in each fragment and lane, so that a half of another sum never looks right.
std::uint32_t number_of(std::uint32_t job, unsigned worker, std::uint32_t seq, std::size_t lane) {
    std::uint32_t number = job * 0x9E3779B9U + worker * 0x85EBCA6BU + seq * 0xC2B2AE35U;
    number += static_cast<std::uint32_t>(lane) * 0x27D4EB2FU;
    number ^= number >> 15U;
    number *= 0x2C1B3C6DU;
    return number ^ number >> 12U;
}

// A packet on its way to the switch, or between two of its passes.
struct Packet {
    atp_header header{};
    LanesOfPacket words{};
    std::uint8_t kind = ATP_PASS_FIRST;
    std::uint32_t seen = 0;
};

// What the server and the workers of a job know.
struct Job {
    std::uint32_t next = 0;                  // first fragment not yet sent
    std::uint32_t acknowledged = 0;          // fragments before it have results
    std::vector<std::uint32_t> included{0};  // by fragment: workers that the server has
};

class Race {
  public:
    Race(std::uint8_t level, std::uint32_t seed) : level_(level), random_(seed) { words_.tag = ATP_TAG_FREE; }

    void run(unsigned steps) {
        for (unsigned step = 0; step < steps; ++step) {
            if (random_.chance(0.1)) now_us_ += random_.below(2 * ageing_us);
            if (!in_flight_.empty() && random_.chance(0.6)) {
                deliver();
            } else {
                act(random_.below(jobs));
            }
        }
    }
    [[nodiscard]] unsigned wrong() const { return wrong_; }
    [[nodiscard]] unsigned sums() const { return sums_; }

  private:
    [[nodiscard]] atp_header header_of(std::uint32_t job, std::uint32_t seq) const {
        atp_header header{};
        header.version = ATP_VERSION;
        header.type = ATP_TYPE_GRADIENT;
        header.hop = level_;
        header.lanes = ATP_INT32_LANES;
        header.window_log2 = window_log2;
        header.job = job;
        header.token = 7;
        header.seq = seq;
        header.argument = 9;
        header.mask0 = level_ == 0 ? all_workers : 1U;
        header.mask1 = level_ == 0 ? 1U : all_workers;
        header.bitmap0 = header.bitmap1 = 1;
        return header;
    }
    void send_gradient(std::uint32_t job, std::uint32_t seq, unsigned worker, unsigned flags) {
        Packet packet;
        packet.header = header_of(job, seq);
        packet.header.flags = static_cast<std::uint16_t>(flags);
        (level_ == 0 ? packet.header.bitmap0 : packet.header.bitmap1) = 1U << worker;
        for (std::size_t lane = 0; lane < lanes; ++lane) packet.words[lane] = number_of(job, worker, seq, lane);
        send(packet);
    }
    void send(const Packet& packet) {
        in_flight_.push_back(packet);
        sent_.push_back(packet);
    }
    void send_down(std::uint32_t job, std::uint32_t seq, std::uint8_t type, unsigned flags) {
        Packet packet;
        packet.header = header_of(job, seq);
        packet.header.type = type;
        packet.header.lanes = ATP_DTYPE_NONE;
        packet.header.flags = static_cast<std::uint16_t>(flags);
        send(packet);
    }

    // Something that a worker or the server of the job may do now.
    void act(std::uint32_t number) {
        Job& job = jobs_[number];
        const std::uint32_t open = job.next - job.acknowledged;
        if (!sent_.empty() && random_.chance(0.1)) {
            in_flight_.push_back(sent_[random_.below(static_cast<std::uint32_t>(sent_.size()))]);  // a copy
        } else if (open < window && random_.chance(0.4)) {
            for (unsigned worker = 0; worker < workers; ++worker) send_gradient(number, job.next, worker, 0);
            ++job.next;
            job.included.push_back(0);
        } else if (open > 0) {
            act_on(number, job.acknowledged + random_.below(open));
        }
    }
    void act_on(std::uint32_t number, std::uint32_t seq) {
        Job& job = jobs_[number];
        if (job.included[seq] == all_workers) {
            send_down(number, seq, ATP_TYPE_ACK, 0);
            while (job.acknowledged < job.next && job.included[job.acknowledged] == all_workers) ++job.acknowledged;
            return;
        }
        switch (random_.below(8)) {
            case 0: send_down(number, seq, ATP_TYPE_FLUSH, 0); break;
            case 1: send_down(number, seq, ATP_TYPE_NACK, ATP_FLAG_BYPASS); break;
            case 2: send_gradient(number, seq, random_.below(workers), ATP_FLAG_BYPASS); break;
            default: send_gradient(number, seq, random_.below(workers), ATP_FLAG_RESEND); break;
        }
    }

    void deliver() {
        const std::size_t at = random_.below(static_cast<std::uint32_t>(in_flight_.size()));
        Packet packet = in_flight_[at];
        in_flight_[at] = in_flight_.back();
        in_flight_.pop_back();
        if (random_.chance(0.1)) return;  // lost
        const Packet arrived = packet;
        atp_pass pass{};
        pass.kind = packet.kind;
        pass.seen = packet.seen;
        // The control plane may dismiss a job between two passes, and admit it again.
        if (!random_.chance(0.02)) pass.place = {.stream = 1 + packet.header.job, .place = 1, .mask = all_workers};
        pass.full_lanes = lanes;
        pass.now_us = now_us_;
        pass.ageing_us = ageing_us;
        const atp_pipeline_outcome outcome = atp_pipeline_pass(&packet.header, lanes, &pass, &words_);
        move(outcome.lanes, packet.words);
        if (outcome.packet == ATP_PIPELINE_RESUBMIT) packet = arrived;
        packet.kind = outcome.next;
        packet.seen = outcome.seen;
        if (outcome.packet >= ATP_PIPELINE_RESUBMIT) {
            in_flight_.push_back(packet);
        } else if (outcome.packet != ATP_PACKET_DROP && packet.header.type == ATP_TYPE_GRADIENT) {
            arrive(packet);
        }
    }
    void move(std::uint8_t action, LanesOfPacket& words) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const bool upper = lane % 2 == 0;
            if (action == ATP_PAIRS_STORE) held_[lane] = words[lane];
            if (action == ATP_PAIRS_ADD || action == ATP_PAIRS_ADD_EMIT_UPPER) held_[lane] += words[lane];
            const bool emits = upper ? action == ATP_PAIRS_ADD_EMIT_UPPER || action == ATP_PAIRS_EMIT_UPPER
                                     : action == ATP_PAIRS_EMIT_LOWER;
            if (emits) words[lane] = held_[lane];
        }
    }
    // A gradient reaches the server.
    void arrive(const Packet& packet) {
        const std::uint32_t set = level_ == 0 ? packet.header.bitmap0 : packet.header.bitmap1;
        bool right = true;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            std::uint32_t sum = 0;
            for (unsigned worker = 0; worker < workers; ++worker) {
                if ((set >> worker & 1U) != 0) sum += number_of(packet.header.job, worker, packet.header.seq, lane);
            }
            right = right && packet.words[lane] == sum;
        }
        std::uint32_t& included = jobs_[packet.header.job].included[packet.header.seq];
        // The server drops packets of a fragment that is complete: what they carry can do no harm.
        if (!right && included != all_workers) ++wrong_;
        if ((set & (set - 1)) != 0) ++sums_;
        if ((included & set) == 0) included |= set;
    }

    std::uint8_t level_;
    Random random_;
    std::uint32_t now_us_ = ageing_us;
    atp_pipeline_words words_{};
    LanesOfPacket held_{};
    std::array<Job, jobs> jobs_;
    std::vector<Packet> in_flight_;
    std::vector<Packet> sent_;  // copies of any age may arrive again
    unsigned wrong_ = 0, sums_ = 0;
};

struct Tally {
    unsigned wrong = 0;  // runs with a wrong sum
    unsigned sums = 0;   // sums of several workers that arrived
};

Tally race(std::uint8_t level, unsigned runs, Fault fault) {
    Tally tally;
    injected = fault;
    for (std::uint32_t seed = 0; seed < runs; ++seed) {
        Race one(level, seed);
        one.run(400);
        tally.wrong += one.wrong() > 0 ? 1U : 0U;
        tally.sums += one.sums();
    }
    injected = Fault::none;
    return tally;
}

constexpr unsigned many_runs = 4000;

TEST(Hazard, H18_PipelineSumsAreRightInAnyOrderOfPasses) {
    for (const std::uint8_t level : {std::uint8_t{0}, std::uint8_t{1}}) {
        const Tally tally = race(level, many_runs, Fault::none);
        EXPECT_EQ(tally.wrong, 0U) << int{level};
        EXPECT_GT(tally.sums, many_runs) << int{level};
    }
}

TEST(Hazard, H18_PipelineThatFreesBeforeTheLastHalfTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::free_before_harvest).wrong, 0U);
}

TEST(Hazard, H18_PipelineThatHarvestsUncheckedTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::harvest_unchecked).wrong, 0U);
}

TEST(Hazard, H18_PipelineThatClaimsUncheckedTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::claim_unchecked).wrong, 0U);
}

TEST(Hazard, H18_PipelineThatDecidesAgainTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::pass_decides_again).wrong, 0U);
}

}  // namespace
}  // namespace atp::testing
