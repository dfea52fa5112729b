// SPDX-License-Identifier: Apache-2.0
// Several processors run the kernel program at the same time, on packets of the same fragments: original, repeated and
// resent gradients, in any order. Every packet that leaves the program must be the sum of exactly the workers that its
// header names.
#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "decide_rows.h"
#include "frames.h"
#include "loaded_switch.h"
#include "processors.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

using Lanes = conformance::DecideLanes;

constexpr std::uint32_t job = 7;
constexpr std::uint32_t token = 0x5EED;
constexpr unsigned workers_a_thread = 2;
constexpr std::uint32_t window_log2 = 1;
constexpr std::uint32_t window = 1U << window_log2;
constexpr std::uint32_t rounds = 3000;

std::int32_t lane_of(unsigned worker, std::uint32_t seq, std::uint32_t lane) {
    const std::uint32_t mixed = ((worker + 1) * 0x9E3779B9U ^ seq * 0x85EBCA6BU ^ lane * 0xC2B2AE35U) * 0x2C1B3C6DU;
    return static_cast<std::int32_t>(mixed) / 16;  // the sum of eight workers fits in 32 bits
}

Lanes sum_of(std::uint32_t bitmap, std::uint32_t seq) {
    Lanes sum(ATP_XDP_LANES);
    for (unsigned worker = 0; bitmap >> worker != 0; ++worker) {
        if ((bitmap >> worker & 1U) == 0) continue;
        for (std::uint32_t lane = 0; lane < ATP_XDP_LANES; ++lane) sum[lane] += lane_of(worker, seq, lane);
    }
    return sum;
}

Bytes frame_of(unsigned worker, std::uint32_t all_workers, std::uint32_t seq, std::uint16_t flags) {
    atp_header header{};
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.flags = flags;
    header.window_log2 = window_log2;
    header.job = job;
    header.token = token;
    header.worker = static_cast<std::uint16_t>(worker);
    header.seq = seq;
    header.index = seq % window;
    header.bitmap0 = 1U << worker;
    header.mask0 = all_workers;
    header.bitmap1 = header.mask1 = 1;
    return wrap(conformance::bytes_of(header, sum_of(header.bitmap0, seq)), {});
}

class Stress : public LoadedSwitch {
  protected:
    void SetUp() override {
        load({.aggregators = window, .jobs = 1, .ageing = std::chrono::hours(1)});
        if (machine == nullptr) return;
        ASSERT_TRUE(machine->admit(job, token, 0));
    }

    void run(bool resends) {
        if (machine == nullptr) return;
        Meeting meeting(threads_);
        std::vector<std::jthread> running;
        for (unsigned thread = 0; thread < threads_; ++thread) {
            running.emplace_back([this, thread, resends, &meeting] { run_thread(thread, resends, meeting); });
        }
        running.clear();
        EXPECT_EQ(wrong_, 0U) << "packets whose sum is not that of the workers in their header";
        EXPECT_EQ(incomplete_, 0U) << "fragments of which a worker was in no forwarded packet";
    }

  private:
    void run_thread(unsigned thread, bool resends, Meeting& meeting) {
        take_processor(thread);
        std::mt19937 random(thread);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const std::vector<Bytes> frames = draw_frames(thread, round * window, resends, random);
            std::vector<xdp::Outcome> outcomes;
            outcomes.reserve(frames.size());
            meeting.wait();
            for (const Bytes& frame : frames) outcomes.push_back(machine->run(frame).value());
            for (const xdp::Outcome& outcome : outcomes) take(outcome);
            meeting.wait();
            if (thread == 0) count_incomplete();
            meeting.wait();
        }
    }

    // The packets of the workers of `thread` for one window, in random order. Some packets occur twice.
    [[nodiscard]] std::vector<Bytes> draw_frames(unsigned thread, std::uint32_t first_seq, bool resends,
                                                 std::mt19937& random) const {
        std::vector<Bytes> frames;
        for (std::uint32_t seq = first_seq; seq < first_seq + window; ++seq) {
            for (unsigned worker = thread; worker < workers_; worker += threads_) {
                frames.push_back(frame_of(worker, all_workers_, seq, 0));
                if (random() % 4 != 0) continue;
                frames.push_back(frame_of(worker, all_workers_, seq, resends ? ATP_FLAG_RESEND : 0));
            }
        }
        std::ranges::shuffle(frames, random);
        return frames;
    }

    void take(const xdp::Outcome& outcome) {
        if (outcome.disposition == xdp::Disposition::dropped) return;
        Unwrapped after = unwrap(outcome.frame);
        wire::Packet packet;
        if (wire::decode(after.payload, packet) != wire::DecodeError::none || after.checksum != Checksum::full) {
            ++wrong_;
            return;
        }
        const atp_header& header = packet.header;
        if (after.payload != conformance::bytes_of(header, sum_of(header.bitmap0, header.seq))) ++wrong_;
        left_[header.seq % window] |= header.bitmap0;
    }

    void count_incomplete() {
        for (auto& bitmap : left_) {
            if (bitmap.exchange(0) != all_workers_) ++incomplete_;
        }
    }

    const unsigned threads_ = std::clamp(std::thread::hardware_concurrency(), 2U, 4U);
    const unsigned workers_ = threads_ * workers_a_thread;
    const std::uint32_t all_workers_ = (1U << workers_) - 1;
    // per slot: workers that are included in packets that left the program
    std::array<std::atomic<std::uint32_t>, window> left_{};
    std::atomic<std::uint32_t> wrong_ = 0;
    std::uint32_t incomplete_ = 0;
};

TEST_F(Stress, H19_RepeatedPacketsFromAllProcessorsAreAddedOnce) {
    run(false);
    if (machine == nullptr) return;
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_COMPLETED], rounds * window);
}

TEST_F(Stress, H19_ResendsFromAllProcessorsFetchWholeSums) {
    run(true);
    if (machine == nullptr) return;
    EXPECT_GT(machine->counters().packets.events[ATP_EVENT_FETCHED], rounds / 10);
}

}  // namespace
}  // namespace atp::test
