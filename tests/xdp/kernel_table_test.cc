// SPDX-License-Identifier: Apache-2.0
// State of the kernel program: jobs, counters, copies of control messages, pins, and additions of two processors.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "job_in_the_kernel.h"
#include "processors.h"
#include "support/control_messages.h"
#include "wire/message_code.h"

namespace atp::test {
namespace {

TEST_F(SwitchInTheKernel, CountersArePerJobAndRestartWithAnIncarnation) {
    if (machine == nullptr) return;
    ASSERT_TRUE(machine->admit(8, token, 0));
    send(gradient(0), {1, 2, 3});
    EXPECT_EQ(machine->job_counters({job, token})->packets.events[ATP_EVENT_CLAIMED], 1U);
    EXPECT_EQ(machine->job_counters({8, token})->packets.events[ATP_EVENT_CLAIMED], 0U);
    machine->dismiss({job, token});
    EXPECT_EQ(machine->job_counters({job, token}), std::nullopt);
    ASSERT_TRUE(machine->admit(job, token + 1, 0));
    EXPECT_EQ(machine->job_counters({job, token + 1})->packets.events[ATP_EVENT_CLAIMED], 0U);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_CLAIMED], 1U);
}

TEST_F(SwitchInTheKernel, JobBeyondTheTableOrWithAnotherLevelIsRefused) {
    if (machine == nullptr) return;
    EXPECT_FALSE(machine->admit(8, 0, 0)) << "token 0 is invalid";
    EXPECT_TRUE(machine->admit(job, token, 0)) << "the same job and token may be admitted again";
    EXPECT_FALSE(machine->admit(job, token, 1));
    for (std::uint32_t other = 8; other < 11; ++other) EXPECT_TRUE(machine->admit(other, token, 0));
    EXPECT_FALSE(machine->admit(11, token, 0));
    machine->dismiss({8, token});
    EXPECT_TRUE(machine->admit(11, token, 1));
}

TEST_F(SwitchInTheKernel, GroupNumbersLeaveRoomForTheTokensOfAllJobs) {
    if (machine == nullptr) return;
    unsigned learnt = 0;
    for (std::uint64_t number = 1000; number < 1600; ++number)
        learnt += machine->learn_group({job, token}, number) ? 1U : 0U;
    EXPECT_EQ(learnt, 7U * 4U);
    for (std::uint32_t other = 8; other < 11; ++other) EXPECT_TRUE(machine->admit(other, token, 0));
    machine->forget_group({8, token}, 1000);
    EXPECT_FALSE(machine->learn_group({job, token}, 2000)) << "the number of another job was not forgotten";
    machine->forget_group({job, token}, 1000);
    EXPECT_TRUE(machine->learn_group({job, token}, 2000));
    machine->dismiss({job, token});
    EXPECT_TRUE(machine->learn_group({8, token}, 2000)) << "its numbers ended with the job";
}

std::vector<Bytes> control_messages_of(xdp::KernelTable& machine) {
    std::vector<Bytes> messages;
    machine.read_queued_messages(std::chrono::milliseconds(0), [&](const control::PassingMessage& message) {
        messages.emplace_back(message.bytes.begin(), message.bytes.end());
    });
    return messages;
}

static_assert(ATP_XDP_QUEUED_MESSAGE_BYTES >= testing::longest_unit_join_bytes + wire::longest_code_bytes,
              "the longest JOIN of a unit and its code");

TEST_F(SwitchInTheKernel, CopiesOfControlMessagesTellTheirSenderAndReceiver) {
    if (machine == nullptr) return;
    const Bytes message{std::byte{ATP_CONTROL_VERSION}, std::byte{ATP_TYPE_CONTROL}};
    for (const int ip : {4, 6}) {
        const Wrapping wrapping{.ip = ip};
        expect_untouched(wrap(message, wrapping));
        unsigned copies = 0;
        machine->read_queued_messages(std::chrono::milliseconds(0), [&](const control::PassingMessage& passed) {
            ++copies;
            EXPECT_EQ(to_string(passed.from),
                      ip == 4 ? "10.10.10.10:50000" : "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:50000");
            EXPECT_EQ(to_string(passed.to),
                      ip == 4 ? "20.20.20.20:4790" : "[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe]:4790");
        });
        EXPECT_EQ(copies, 1U);
    }
}

TEST_F(SwitchInTheKernel, ControlMessagesAreCopiedToUserSpaceAndPass) {
    if (machine == nullptr) return;
    Bytes message(ATP_XDP_QUEUED_MESSAGE_BYTES);
    for (std::size_t at = 0; at < message.size(); ++at) message[at] = std::byte(at);
    message[ATP_OFFSET_VERSION] = std::byte{ATP_CONTROL_VERSION};
    message[ATP_OFFSET_TYPE] = std::byte{ATP_TYPE_CONTROL};
    const Bytes shortest(message.begin(), message.begin() + 2);
    Bytes padded = message;
    padded.resize(2 * message.size());
    expect_untouched(wrap(message, {}));
    expect_untouched(wrap(padded, {}));
    expect_untouched(wrap(shortest, {.ip = 6, .padding = 9}));
    expect_untouched(wrap(conformance::bytes_of(down(ATP_TYPE_WAIT), {}), {}));
    EXPECT_EQ(control_messages_of(*machine), (std::vector<Bytes>{message, message, shortest})) << "without the padding";
    EXPECT_EQ(control_messages_of(*machine), std::vector<Bytes>{});
}

TEST_F(SwitchInTheKernel, PinnedStateSurvivesARestart) {
    if (machine == nullptr) return;
    const PinFolder folder;
    if (!folder.mounted()) GTEST_SKIP() << "this machine does not permit to mount a bpffs";
    const xdp::KernelTableConfig config{.aggregators = 16, .jobs = 2, .pins = folder.path()};
    load(config);
    ASSERT_TRUE(machine->admit(job, token, 0));
    send(gradient(0), {1, 2, 3});
    machine.reset();
    load(config);
    ASSERT_EQ(machine->jobs().size(), 1U);
    EXPECT_EQ(machine->jobs().front().token, token);
    ASSERT_TRUE(machine->admit(8, token, 0));
    EXPECT_EQ(machine->job_counters({8, token})->packets.events[ATP_EVENT_CLAIMED], 0U) << "job 8 has its own counters";
    send(gradient(1), {10, 20, 30});
    Unwrapped after = unwrap(send(gradient(2), {100, 200, 300}).frame);
    wire::Packet packet;
    ASSERT_EQ(wire::decode(after.payload, packet), wire::DecodeError::none);
    EXPECT_EQ(after.payload, conformance::bytes_of(packet.header, {111, 222, 333}));

    const auto of_another_size = xdp::KernelTable::load({.aggregators = 32, .jobs = 2, .pins = folder.path()});
    EXPECT_FALSE(of_another_size) << "the pinned table has 16 aggregators, not 32";
    machine->unpin();
    machine.reset();
    load(config);
    EXPECT_TRUE(machine->jobs().empty());
    machine->unpin();
}

// The two packets of a fragment reach their aggregator at the same time. A lost or torn addition would change the sum.
TEST_F(SwitchInTheKernel, PacketsFromTwoProcessorsAreAddedExactly) {
    if (machine == nullptr) return;
    constexpr std::uint32_t fragments = 20'000;
    constexpr std::uint32_t both = 0x3;
    std::atomic<std::uint32_t> right = 0;
    Meeting meeting(2);
    const auto work = [&](unsigned member) {
        take_processor(member);
        const Lanes ones(ATP_XDP_LANES, 1);
        const Lanes sum(ATP_XDP_LANES, 2);
        for (std::uint32_t seq = 1; seq <= fragments; ++seq) {
            atp_header header = gradient(member, seq);
            header.window_log2 = 0;
            header.mask0 = both;
            const Bytes frame = wrap(conformance::bytes_of(header, ones), {});
            meeting.wait();
            const auto outcome = machine->run(frame);
            if (!outcome || outcome->disposition != xdp::Disposition::passed) continue;
            header.bitmap0 = both;
            header.hop = 1;
            if (unwrap(outcome->frame).payload == conformance::bytes_of(header, sum)) ++right;
        }
    };
    std::thread one(work, 0);
    std::thread other(work, 1);
    one.join();
    other.join();
    EXPECT_EQ(right, fragments);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_COMPLETED], fragments);
}

}  // namespace
}  // namespace atp::test
