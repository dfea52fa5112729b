// SPDX-License-Identifier: Apache-2.0
// Hazards 18, 62, 63 and 65 of docs/spec/hazards.md at a pipeline (pipeline/decide_pipeline.h): packets pass
// several times, and between two passes of a packet anything may happen. Packets and passes are lost, repeated and
// delayed in any order. Each gradient that leaves must have the sum of exactly the workers that its bitmap names. Four
// faults are injected, and the same test finds each of them.
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
#include "pipeline/decide_pipeline.h"
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

atp_header header_of(std::uint8_t level, std::uint32_t job, std::uint32_t seq) {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.hop = level;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = window_log2;
    header.job = job;
    header.token = 7;
    header.seq = seq;
    header.argument = 9;
    header.mask0 = level == 0 ? all_workers : 1U;
    header.mask1 = level == 0 ? 1U : all_workers;
    header.bitmap0 = header.bitmap1 = 1;
    return header;
}

Packet gradient_of(std::uint8_t level, std::uint32_t job, std::uint32_t seq, unsigned worker, unsigned flags) {
    Packet packet;
    packet.header = header_of(level, job, seq);
    packet.header.flags = static_cast<std::uint16_t>(flags);
    (level == 0 ? packet.header.bitmap0 : packet.header.bitmap1) = 1U << worker;
    for (std::size_t lane = 0; lane < lanes; ++lane) packet.words[lane] = number_of(job, worker, seq, lane);
    return packet;
}

std::uint32_t workers_in(const Packet& packet) {
    return packet.header.mask0 == all_workers ? packet.header.bitmap0 : packet.header.bitmap1;
}

// True if the lanes are the sum of exactly the workers that the packet names.
bool sum_is_right(const Packet& packet) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        std::uint32_t sum = 0;
        for (unsigned worker = 0; worker < workers; ++worker) {
            if ((workers_in(packet) >> worker & 1U) != 0) {
                sum += number_of(packet.header.job, worker, packet.header.seq, lane);
            }
        }
        if (packet.words[lane] != sum) return false;
    }
    return true;
}

// One aggregator.
class Cells {
  public:
    Cells() { words_.tag = ATP_TAG_FREE; }

    // One pass of the packet, which is afterwards as it left, or as it passes again.
    std::uint8_t pass(Packet& packet, std::uint32_t now_us, bool admitted = true) {
        const Packet arrived = packet;
        atp_pass pass{};
        pass.kind = packet.kind;
        pass.seen = packet.seen;
        if (admitted) pass.place = {.stream = 1 + packet.header.job, .place = 1, .mask = all_workers};
        pass.full_lanes = lanes;
        pass.now_us = now_us;
        pass.ageing_us = ageing_us;
        const atp_pipeline_outcome outcome = atp_pipeline_pass(&packet.header, lanes, &pass, &words_);
        move(outcome.lanes, packet.words);
        if (outcome.packet == ATP_PIPELINE_RESUBMIT) packet = arrived;
        packet.kind = outcome.next;
        packet.seen = outcome.seen;
        return outcome.packet;
    }
    [[nodiscard]] bool is_free() const { return words_.tag == ATP_TAG_FREE; }

  private:
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

    atp_pipeline_words words_{};
    LanesOfPacket held_{};
};

// What the server and the workers of a job know.
struct Job {
    std::uint32_t next = 0;                  // first fragment not yet sent
    std::uint32_t acknowledged = 0;          // fragments before it have results
    std::vector<std::uint32_t> included{0};  // by fragment: workers that the server has
};

class Race {
  public:
    Race(std::uint8_t level, std::uint32_t seed) : level_(level), random_(seed) {}

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
    void send_gradient(std::uint32_t job, std::uint32_t seq, unsigned worker, unsigned flags) {
        send(gradient_of(level_, job, seq, worker, flags));
    }
    void send(const Packet& packet) {
        in_flight_.push_back(packet);
        sent_.push_back(packet);
    }
    void send_down(std::uint32_t job, std::uint32_t seq, std::uint8_t type, unsigned flags) {
        Packet packet;
        packet.header = header_of(level_, job, seq);
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
        // The control plane may dismiss a job between two passes, and admit it again.
        const bool admitted = !random_.chance(0.02);
        const std::uint8_t outcome = cells_.pass(packet, now_us_, admitted);
        if (outcome >= ATP_PIPELINE_RESUBMIT) {
            in_flight_.push_back(packet);
        } else if (outcome != ATP_PACKET_DROP && packet.header.type == ATP_TYPE_GRADIENT) {
            arrive(packet);
        }
    }
    // A gradient reaches the server.
    void arrive(const Packet& packet) {
        const std::uint32_t set = workers_in(packet);
        std::uint32_t& included = jobs_[packet.header.job].included[packet.header.seq];
        // The server drops packets of a fragment that is complete: what they carry can do no harm.
        if (!sum_is_right(packet) && included != all_workers) ++wrong_;
        if ((set & (set - 1)) != 0) ++sums_;
        if ((included & set) == 0) included |= set;
    }

    std::uint8_t level_;
    Random random_;
    std::uint32_t now_us_ = ageing_us;
    Cells cells_;
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

TEST(Hazard, H63_PipelineThatFreesBeforeTheLastHalfTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::free_before_harvest).wrong, 0U);
}

TEST(Hazard, H63_PipelineThatHarvestsUncheckedTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::harvest_unchecked).wrong, 0U);
}

TEST(Hazard, H63_PipelineThatClaimsUncheckedTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::claim_unchecked).wrong, 0U);
}

TEST(Hazard, H18_PipelineThatDecidesAgainTearsSums) {
    EXPECT_GT(race(0, many_runs, Fault::pass_decides_again).wrong, 0U);
}

// The packet passes until it ends, or until it had so many passes.
std::uint8_t carry(Cells& cells, Packet& packet, std::uint32_t now_us, unsigned passes = 9) {
    std::uint8_t outcome = ATP_PIPELINE_RESUBMIT;
    for (unsigned pass = 0; pass < passes && outcome >= ATP_PIPELINE_RESUBMIT; ++pass) {
        outcome = cells.pass(packet, now_us);
    }
    return outcome;
}

// An aggregator whose sum is complete, but the packet that has half of it is lost between its two passes.
Cells with_lost_half() {
    Cells cells;
    for (unsigned worker = 0; worker < workers; ++worker) {
        Packet packet = gradient_of(0, 0, 5, worker, 0);
        const bool last = worker + 1 == workers;
        EXPECT_EQ(carry(cells, packet, ageing_us, 1) == ATP_PIPELINE_RECIRCULATE, last);
    }
    return cells;
}

TEST(Hazard, H62_ResendTakesTheWholeSumAfterALostPass) {
    Cells cells = with_lost_half();
    Packet copy = gradient_of(0, 0, 5, 0, ATP_FLAG_RESEND);
    EXPECT_EQ(carry(cells, copy, ageing_us), ATP_PACKET_FORWARD);
    EXPECT_EQ(workers_in(copy), all_workers);
    EXPECT_TRUE(sum_is_right(copy));
    EXPECT_TRUE(cells.is_free());
}

TEST(Hazard, H62_ResendWhosePassIsLostLeavesAnAggregatorThatAddsNothing) {
    Cells cells = with_lost_half();
    Packet lost = gradient_of(0, 0, 5, 0, ATP_FLAG_RESEND);
    EXPECT_EQ(carry(cells, lost, ageing_us, 2), ATP_PIPELINE_RECIRCULATE);
    for (unsigned worker = 0; worker < workers; ++worker) {
        Packet copy = gradient_of(0, 0, 5, worker, ATP_FLAG_RESEND);
        EXPECT_EQ(carry(cells, copy, ageing_us), ATP_PACKET_FORWARD);
        EXPECT_EQ(workers_in(copy), 1U << worker) << "the server adds them";
        EXPECT_TRUE(sum_is_right(copy));
    }
}

Packet flush_of(std::uint32_t job, std::uint32_t seq) {
    Packet packet;
    packet.header = header_of(0, job, seq);
    packet.header.type = ATP_TYPE_FLUSH;
    packet.header.lanes = ATP_DTYPE_NONE;
    return packet;
}

// It takes three passes to return a sum.
TEST(Hazard, H63_FlushReturnsNothingIfAnotherFragmentClaimsTheAggregatorMeanwhile) {
    for (const bool is_claimed : {false, true}) {
        Cells cells;
        Packet first = gradient_of(0, 0, 5, 1, 0);
        EXPECT_EQ(carry(cells, first, ageing_us), ATP_PACKET_DROP);
        Packet flush = flush_of(0, 5);
        EXPECT_EQ(carry(cells, flush, ageing_us, 2), ATP_PIPELINE_RECIRCULATE);
        if (is_claimed) {
            Packet other = gradient_of(0, 1, 8, 0, 0);
            EXPECT_EQ(carry(cells, other, 3 * ageing_us), ATP_PACKET_DROP) << "the aggregator is abandoned";
        }
        EXPECT_EQ(carry(cells, flush, 3 * ageing_us), is_claimed ? +ATP_PACKET_DROP : +ATP_PACKET_RETURN);
        EXPECT_TRUE(is_claimed || sum_is_right(flush));
    }
}

TEST(Hazard, H65_FlushThatFindsNothingSendsLateGradientsToTheServer) {
    Cells cells;
    Packet flush = flush_of(0, 5);
    EXPECT_EQ(carry(cells, flush, ageing_us), ATP_PACKET_DROP);
    Packet late = gradient_of(0, 0, 5, 1, 0);
    EXPECT_EQ(carry(cells, late, ageing_us), ATP_PACKET_FORWARD);
    EXPECT_TRUE(cells.is_free());
}

}  // namespace
}  // namespace atp::testing
