// SPDX-License-Identifier: Apache-2.0
// What the program at tc egress does to frames that leave.
#include "job_in_the_kernel.h"

namespace atp::test {
namespace {

constexpr std::uint16_t port = 4790;
constexpr std::uint16_t port_of_worker = 50'000;

Bytes ack(std::uint32_t seq, const Lanes& lanes = {1, 2, 3}) {
    atp_header header = gradient(0, seq);
    header.type = ATP_TYPE_ACK;
    return conformance::bytes_of(header, lanes);
}

TEST_F(SwitchInTheKernel, LeavingResultFreesItsAggregatorOnce) {
    if (machine == nullptr) return;
    std::uint64_t released = 0;
    for (const int ip : {4, 6}) {
        for (const int tags : {0, 2}) {
            ASSERT_TRUE(machine->write(1, {}));
            EXPECT_EQ(send(gradient(0), {1, 2, 3}).disposition, xdp::Disposition::dropped);
            EXPECT_EQ(machine->occupied(), 1U);
            const Wrapping wrapping{.ip = ip, .vlan_tags = tags, .source = port, .destination = port_of_worker};
            expect_to_leave_untouched(wrap(ack(1), wrapping));
            EXPECT_EQ(machine->occupied(), 0U);
            EXPECT_EQ(machine->job_counters({job, token})->packets.events[ATP_EVENT_RELEASED], ++released);
            const std::uint64_t before = events();
            expect_to_leave_untouched(wrap(ack(1), wrapping));  // a copy of the result for another receiver
            EXPECT_EQ(events(), before);
        }
    }
}

TEST_F(SwitchInTheKernel, ResultsMergedIntoOneFrameFreeTheirAggregators) {
    if (machine == nullptr) return;
    Bytes together;
    for (const std::uint32_t seq : {1U, 2U, 3U}) {
        send(gradient(0, seq), {1, 2, 3});
        const Bytes packet = ack(seq, seq == 3 ? Lanes{1} : Lanes{1, 2, 3});
        together.insert(together.end(), packet.begin(), packet.end());
    }
    send(gradient(0, 4), {1, 2, 3});
    expect_to_leave_untouched(wrap(together, {.source = port, .destination = port_of_worker}),
                              static_cast<std::uint32_t>(ack(1).size()));
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_RELEASED], 3U);
    EXPECT_EQ(machine->occupied(), 1U) << "the aggregator of fragment 4, which has no result yet";
}

TEST_F(SwitchInTheKernel, OtherLeavingTrafficIsUncounted) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    const std::uint64_t before = events();
    const Wrapping from_here{.source = port, .destination = port_of_worker};
    atp_header forged = gradient(0);
    forged.type = ATP_TYPE_ACK;
    forged.token = token + 1;
    atp_header stranger = gradient(0);
    stranger.type = ATP_TYPE_ACK;
    stranger.job = 8;
    expect_to_leave_untouched(wrap(conformance::bytes_of(forged, {1}), from_here));
    expect_to_leave_untouched(wrap(conformance::bytes_of(stranger, {1}), from_here));
    expect_to_leave_untouched(wrap(conformance::bytes_of(gradient(1), {1, 2, 3}), from_here));
    expect_to_leave_untouched(wrap(conformance::bytes_of(flush(), {}), from_here));
    expect_to_leave_untouched(wrap(ack(2), from_here));
    expect_to_leave_untouched(wrap(ack(1), {.source = port_of_worker, .destination = port_of_worker}));
    expect_to_leave_untouched(wrap(ack(1), {.source = port, .fragment = 0x2000}));
    const Bytes whole = wrap(ack(1), from_here);
    for (std::size_t size = 34; size < whole.size();
         ++size) {  // from the end of the IPv4 header: the kernel passes no shorter frame
        expect_to_leave_untouched(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    EXPECT_EQ(machine->occupied(), 1U);
    EXPECT_EQ(events(), before);
    EXPECT_EQ(machine->counters().packets.forged, 0U);
}

TEST_F(SwitchInTheKernel, LeavingNackClosesItsAggregator) {
    if (machine == nullptr) return;
    atp_header request = gradient_with(0, ATP_FLAG_BYPASS);
    request.type = ATP_TYPE_NACK;
    request.lanes = ATP_DTYPE_INT32;
    request.bitmap0 = 0;
    expect_to_leave_untouched(wrap(conformance::bytes_of(request, {}), {.source = port}));
    EXPECT_EQ(events(), 0U) << "the aggregator was already free";
    EXPECT_EQ(send(gradient(0), {1, 2, 3}).disposition, xdp::Disposition::passed)
        << "the tombstone of the NACK prevents a claim of this fragment";
}

}  // namespace
}  // namespace atp::test
