// SPDX-License-Identifier: Apache-2.0
// The congestion marks of the programs in the kernel.
#include <vector>

#include "job_in_the_kernel.h"

namespace atp::test {
namespace {

constexpr std::uint32_t loopback = 1;  // the kernel runs a program for a test as if it was there
constexpr std::uint64_t slow = 1'000'000;
constexpr std::size_t payload_bytes = 1400;
constexpr unsigned unmarked_frames = 66;  // of 1,442 bytes, fill no more than 96 kB
constexpr unsigned frames_beyond = 200;   // three times as many as fill the queue, so that it may drain meanwhile

class MarksInTheKernel : public SwitchInTheKernel {
  protected:
    // An empty queue.
    void set_rate(std::uint64_t rate, std::uint32_t bytes_per_frame = 0) {
        ASSERT_TRUE(machine->set_port(loopback, rate, bytes_per_frame));
    }
    static Bytes other_traffic(const Wrapping& wrapping = {}) {
        Wrapping elsewhere = wrapping;
        elsewhere.destination = 9000;
        return wrap(Bytes(payload_bytes, std::byte{0xAB}), elsewhere);
    }
    static Bytes payload_of_a_job() {
        Bytes payload(payload_bytes, std::byte{0});
        payload[0] = std::byte{ATP_VERSION};
        return payload;
    }
    void fill_queue(const Bytes& frame) {
        for (unsigned i = 0; i < frames_beyond; ++i) leave(frame);
    }
};

TEST_F(MarksInTheKernel, LeavingFramesBeyondTheRateGetTheMarkInTheirOwnHeader) {
    if (machine == nullptr) return;
    std::uint64_t marked = 0;
    for (const int ip : {4, 6}) {
        const Bytes frame = other_traffic({.ip = ip, .ipv4_option_words = ip == 4 ? 2 : 0});
        set_rate(slow);
        for (unsigned i = 0; i < unmarked_frames; ++i) expect_to_leave_untouched(frame);
        EXPECT_EQ(machine->marked(loopback), marked);
        fill_queue(frame);
        const xdp::Outcome outcome = leave(frame);
        const Unwrapped after = unwrap(outcome.frame);
        EXPECT_EQ(after.ecn, 3U);
        EXPECT_TRUE(after.network_checksum_holds);
        EXPECT_EQ(after.checksum, Checksum::full);
        EXPECT_EQ(after.payload, unwrap(frame).payload);
        EXPECT_EQ(outcome.frame.size(), frame.size());
        const std::uint64_t before = marked;
        marked = machine->marked(loopback);
        EXPECT_GT(marked, before + 10);
    }
}

TEST_F(MarksInTheKernel, OtherEcnCapableCodepointIsMarkedAndOthersStay) {
    if (machine == nullptr) return;
    set_rate(slow);
    fill_queue(other_traffic());
    EXPECT_EQ(unwrap(leave(other_traffic({.ecn = 1})).frame).ecn, 3U);
    const std::uint64_t marked = machine->marked(loopback);
    expect_to_leave_untouched(other_traffic({.ecn = 0}));
    expect_to_leave_untouched(other_traffic({.ip = 6, .ecn = 0}));
    expect_to_leave_untouched(other_traffic({.vlan_tags = 2}));
    EXPECT_EQ(machine->marked(loopback), marked);
}

TEST_F(MarksInTheKernel, FramesThatAreNotEcnCapableFillTheQueueOfOthers) {
    if (machine == nullptr) return;
    set_rate(slow);
    fill_queue(other_traffic({.ecn = 0}));
    EXPECT_EQ(machine->marked(loopback), 0U);
    EXPECT_EQ(unwrap(leave(other_traffic()).frame).ecn, 3U);
}

TEST_F(MarksInTheKernel, FastLinkAndPortWithoutARateMarkNothing) {
    if (machine == nullptr) return;
    fill_queue(other_traffic());
    expect_to_leave_untouched(other_traffic());
    set_rate(ATP_QUEUE_MOST_RATE);
    fill_queue(other_traffic());
    expect_to_leave_untouched(other_traffic());
    ASSERT_TRUE(machine->set_port(loopback + 1, slow, 0)) << "another port's";
    fill_queue(other_traffic());
    expect_to_leave_untouched(other_traffic());
    EXPECT_EQ(machine->marked(loopback), 0U);
}

TEST_F(MarksInTheKernel, HeadersOfTheSegmentsOfAnOffloadCount) {
    if (machine == nullptr) return;
    // 20 segments of 64 bytes have 21 headers of 42 bytes. Without them, 60 packets of 1,322 bytes fill 79 kB only.
    const Bytes packet = wrap(Bytes(1280, std::byte{1}), {.destination = 9000});
    set_rate(slow);
    for (unsigned i = 0; i < 60; ++i) leave(packet, 64);
    EXPECT_EQ(unwrap(leave(packet).frame).ecn, 3U);
    set_rate(slow);
    for (unsigned i = 0; i < 60; ++i) leave(packet);
    EXPECT_EQ(unwrap(leave(packet).frame).ecn, 2U);
}

TEST_F(MarksInTheKernel, BytesBetweenTheFramesOfALinkCount) {
    if (machine == nullptr) return;
    set_rate(slow, 1000);
    for (unsigned i = 0; i < unmarked_frames; ++i) leave(other_traffic());
    EXPECT_EQ(unwrap(leave(other_traffic()).frame).ecn, 3U);
}

TEST_F(MarksInTheKernel, NewRateKeepsTheCountOfMarks) {
    if (machine == nullptr) return;
    set_rate(slow);
    fill_queue(other_traffic());
    const std::uint64_t marked = machine->marked(loopback);
    EXPECT_GT(marked, 0U);
    set_rate(2 * slow);
    EXPECT_EQ(machine->marked(loopback), marked);
    expect_to_leave_untouched(other_traffic());
}

TEST_F(MarksInTheKernel, PacketsOfAJobAreUnmarkedBesideOthersThatUseMoreThanHalf) {
    if (machine == nullptr) return;
    for (const int ip : {4, 6}) {
        const Bytes job = wrap(payload_of_a_job(), {.ip = ip});
        set_rate(slow);
        fill_queue(other_traffic());
        for (unsigned i = 0; i < unmarked_frames / 2; ++i) expect_to_leave_untouched(job);
        EXPECT_EQ(unwrap(leave(other_traffic()).frame).ecn, 3U);
        fill_queue(job);
        EXPECT_EQ(unwrap(leave(job).frame).ecn, 3U);
    }
}

TEST_F(MarksInTheKernel, OnlyTheJobThatTakesMoreThanItsPartIsMarked) {
    if (machine == nullptr) return;
    const control::JobKey mine{job, token};
    const control::JobKey other{job + 1, token};
    ASSERT_TRUE(machine->admit(other.job, other.token, 0));
    machine->set_sender(mine, ATP_SENDER_FIRST);
    machine->set_sender(other, ATP_SENDER_FIRST + 1);
    const auto result_for = [](const control::JobKey& of) {
        atp_header header = down(ATP_TYPE_ACK);
        header.lanes = ATP_INT32_LANES;
        header.job = of.job;
        return wrap(conformance::bytes_of(header, Lanes(300, 5)), {});
    };
    // Their tenants have weights 1 and 30: beside the other, this job may have 3 kB in the queue, and alone 100.
    machine->set_slice(mine, {0, 8}, 1);
    machine->set_slice(other, {8, 8}, 30);
    set_rate(slow);
    for (unsigned i = 0; i < 30; ++i) expect_to_leave_untouched(result_for(mine));
    fill_queue(other_traffic());
    leave(result_for(other));
    EXPECT_EQ(unwrap(leave(result_for(mine)).frame).ecn, 3U);
    EXPECT_EQ(unwrap(leave(result_for(other)).frame).ecn, 2U);
}

// It leaves by XDP_TX, which passes no tc egress.
TEST_F(MarksInTheKernel, GradientThatReturnsToTheServerIsCountedAndMarked) {
    if (machine == nullptr) return;
    for (const int ip : {4, 6}) {
        set_rate(slow);
        const Lanes lanes(300, 5);
        Unwrapped last;
        for (unsigned i = 0; i < frames_beyond; ++i) {
            ASSERT_TRUE(machine->write(1, {}));
            send(gradient(0), lanes, {.ip = ip});
            const xdp::Outcome outcome = send(flush(), {}, {.ip = ip});
            ASSERT_EQ(outcome.disposition, xdp::Disposition::sent_back);
            last = unwrap(outcome.frame);
            if (i < unmarked_frames) {
                EXPECT_EQ(last.ecn, 2U);
            }
        }
        EXPECT_EQ(last.ecn, 3U);
        EXPECT_TRUE(last.network_checksum_holds);
        EXPECT_EQ(last.checksum, Checksum::full);
        EXPECT_EQ(unwrap(leave(wrap(payload_of_a_job(), {})).frame).ecn, 3U) << "both programs fill one queue";
    }
}

TEST_F(MarksInTheKernel, ReturningGradientWithoutEcnIsUnmarked) {
    if (machine == nullptr) return;
    set_rate(slow);
    fill_queue(wrap(payload_of_a_job(), {}));
    send(gradient(0), {1, 2, 3});
    const Unwrapped returned = unwrap(send(flush(), {}, {.ecn = 0}).frame);
    EXPECT_EQ(returned.ecn, 0U);
    EXPECT_TRUE(returned.network_checksum_holds);
}

}  // namespace
}  // namespace atp::test
