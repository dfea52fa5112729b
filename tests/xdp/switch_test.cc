// SPDX-License-Identifier: Apache-2.0
// What the kernel program does to frames that arrive, as far as the vectors do not cover it.
#include <algorithm>
#include <stdexcept>

#include "job_in_the_kernel.h"

namespace atp::test {
namespace {

TEST_F(SwitchInTheKernel, H38_FlushIsReturnedAsThePartialSumWithAValidChecksum) {
    if (machine == nullptr) return;
    for (const int ip : {4, 6}) {
        for (const Checksum checksum : {Checksum::full, Checksum::none, Checksum::partial}) {
            ASSERT_TRUE(machine->write(1, {}));
            Lanes lanes(ATP_XDP_LANES);
            for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<std::int32_t>(i * 1'000'003);
            EXPECT_EQ(send(gradient(2), lanes).disposition, xdp::Disposition::dropped);
            const Wrapping wrapping{.ip = ip, .vlan_tags = 1, .checksum = checksum, .padding = 4};
            const Unwrapped sent = unwrap(wrap(conformance::bytes_of(flush(), {}), wrapping));
            const xdp::Outcome outcome = send(flush(), {}, wrapping);
            ASSERT_EQ(outcome.disposition, xdp::Disposition::sent_back);
            Unwrapped back = unwrap(outcome.frame);
            wire::Packet packet;
            ASSERT_EQ(wire::decode(back.payload, packet), wire::DecodeError::none);
            EXPECT_EQ(packet.header.type, ATP_TYPE_GRADIENT);
            EXPECT_EQ(packet.header.bitmap0, 4U);
            EXPECT_EQ(back.payload, conformance::bytes_of(packet.header, lanes));
            // No network card completes the checksum of a frame that XDP_TX returns, so the program must write the
            // whole checksum.
            EXPECT_EQ(back.checksum, checksum == Checksum::partial ? Checksum::full : checksum);
            EXPECT_TRUE(back.network_checksum_holds);
            EXPECT_EQ(back.hop_limit, 64);
            EXPECT_EQ(back.padding, 0U);
            EXPECT_TRUE(std::equal(back.ethernet.begin(), back.ethernet.begin() + 6, sent.ethernet.begin() + 6));
            EXPECT_TRUE(std::equal(sent.ethernet.begin(), sent.ethernet.begin() + 6, back.ethernet.begin() + 6));
            EXPECT_EQ(back.source, sent.destination);
            EXPECT_EQ(back.destination, sent.source);
        }
    }
}

TEST_F(SwitchInTheKernel, H65_MulticastFlushIsDroppedAndKeepsThePartialSum) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    EXPECT_EQ(send(flush(), {}, {.to_many = true}).disposition, xdp::Disposition::dropped);
    EXPECT_EQ(machine->counters().packets.no_room, 1U);
    EXPECT_EQ(machine->occupied(), 1U) << "the partial sum waits for a unicast FLUSH";
}

TEST_F(SwitchInTheKernel, H65_MulticastFlushWithoutAPartialSumIsAbsorbed) {
    if (machine == nullptr) return;
    EXPECT_EQ(send(flush(), {}, {.to_many = true}).disposition, xdp::Disposition::dropped);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_CLOSED], 1U);
    EXPECT_EQ(send(gradient(0), {1, 2, 3}).disposition, xdp::Disposition::passed)
        << "the FLUSH left a tombstone, so the gradient goes to the server";
    EXPECT_EQ(send(gradient(0, 17), {1, 2, 3}).disposition, xdp::Disposition::dropped)
        << "another fragment claims the aggregator";
    EXPECT_EQ(send(flush(), {}, {.to_many = true}).disposition, xdp::Disposition::dropped);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_PASSED], 1U);
    EXPECT_EQ(machine->counters().packets.no_room, 0U);
    EXPECT_EQ(machine->occupied(), 1U);
}

TEST_F(SwitchInTheKernel, OtherTrafficPassesUnchanged) {
    if (machine == nullptr) return;
    const Bytes payload = conformance::bytes_of(gradient(0), {1, 2, 3});
    Bytes control = payload;
    control[ATP_OFFSET_VERSION] = std::byte{ATP_CONTROL_VERSION};
    control[ATP_OFFSET_TYPE] = std::byte{ATP_TYPE_CONTROL};
    expect_untouched(wrap(payload, {.destination = 4791}));
    expect_untouched(wrap(payload, {.fragment = 0x2000}));
    expect_untouched(wrap(payload, {.fragment = 0x0001}));
    expect_untouched(wrap(payload, {.protocol = 6}));
    expect_untouched(wrap(payload, {.ip = 6, .protocol = 6}));
    expect_untouched(wrap(payload, {.vlan_tags = 3}));
    expect_untouched(wrap(control, {}));
    Bytes arp = wrap(payload, {});
    arp[13] = std::byte{6};
    expect_untouched(arp);
    EXPECT_EQ(events(), 0U);
    EXPECT_EQ(machine->occupied(), 0U);
    EXPECT_EQ(machine->counters().packets.forged, 0U);
}

TEST_F(SwitchInTheKernel, H87_PacketOfAnotherVersionPassesUnchanged) {
    if (machine == nullptr) return;
    Bytes other = conformance::bytes_of(gradient(0), {1, 2, 3});
    other[ATP_OFFSET_VERSION] = std::byte{ATP_VERSION + 1};
    expect_untouched(wrap(other, {}));
    EXPECT_EQ(machine->occupied(), 0U);
}

// A READY concerns the server alone: the partial sum of its fragment stays.
TEST_F(SwitchInTheKernel, ReadyAndLanesOfOneSenderPassUnchanged) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    atp_header ready = down(ATP_TYPE_READY);
    ready.argument = 9;
    for (const int ip : {4, 6}) expect_untouched(wrap(conformance::bytes_of(ready, {}), {.ip = ip}));
    atp_header lanes = gradient_with(1, ATP_FLAG_ONE_SENDER | ATP_FLAG_PLAIN | ATP_FLAG_BYPASS);
    lanes.peer = 1;
    expect_untouched(wrap(conformance::bytes_of(lanes, {4, 5, 6}), {}));
    EXPECT_EQ(machine->occupied(), 1U);
    EXPECT_EQ(machine->counters().packets.forged, 0U);
}

// A list acknowledges only fragments that have no aggregator here.
TEST_F(SwitchInTheKernel, H89_AckListPassesUnchangedAndFreesNothing) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    for (const int ip : {4, 6}) {
        const atp_header list = down(ATP_TYPE_ACK_LIST);
        expect_untouched(wrap(conformance::bytes_of(list, {2, 1002, 0x80FFFF, 0, 3, 1003, 0x80FFFF, 0}), {.ip = ip}));
    }
    EXPECT_EQ(machine->occupied(), 1U);
    EXPECT_EQ(machine->counters().packets.refused[ATP_REFUSED_LANES], 0U);
}

// The owner, member 1, stays at home: the others leave it out of the mask.
TEST_F(SwitchInTheKernel, SumWithoutItsOwnerCompletes) {
    if (machine == nullptr) return;
    const auto for_owner = [](unsigned member) {
        atp_header header = gradient(member);
        header.peer = 1;
        header.mask0 = members_mask & ~2U;
        return header;
    };
    EXPECT_EQ(send(for_owner(0), {1, 2, 3}).disposition, xdp::Disposition::dropped);
    const xdp::Outcome outcome = send(for_owner(2), {10, 20, 30});
    ASSERT_EQ(outcome.disposition, xdp::Disposition::passed);
    wire::Packet packet;
    Unwrapped sum = unwrap(outcome.frame);
    ASSERT_EQ(wire::decode(sum.payload, packet), wire::DecodeError::none);
    EXPECT_EQ(packet.header.peer, 1U);
    EXPECT_EQ(packet.header.hop, 1);
    EXPECT_EQ(packet.header.bitmap0, members_mask & ~2U);
    EXPECT_EQ(sum.payload, conformance::bytes_of(packet.header, {11, 22, 33}));
}

TEST_F(SwitchInTheKernel, TruncatedFramesPassUnchanged) {
    if (machine == nullptr) return;
    const Bytes whole = wrap(conformance::bytes_of(gradient(0), {1, 2, 3}), {});
    for (std::size_t size = 14; size < whole.size(); ++size) {
        expect_untouched(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    }
    EXPECT_EQ(events(), 0U);
}

TEST_F(SwitchInTheKernel, PacketsFromTheSwitchPortAreRead) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    atp_header ack = gradient(0);
    ack.type = ATP_TYPE_ACK;
    ack.lanes = ATP_FLOAT32_LANES;
    const Bytes frame = wrap(conformance::bytes_of(ack, {1}), {.source = 4790, .destination = 50'000});
    expect_untouched(frame);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_RELEASED], 1U);
    EXPECT_EQ(machine->occupied(), 0U);
}

TEST_F(SwitchInTheKernel, DamagedPacketIsNotAdded) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    expect_untouched(wrap(conformance::bytes_of(gradient(1), {1, 2, 3}), {.checksum = Checksum::wrong}));
    EXPECT_EQ(machine->counters().damaged, 1U);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_ADDED], 0U);
}

// Returns lanes for which the full checksum equals the partial checksum.
Lanes looking_partial(const atp_header& header) {
    for (std::int32_t first = 0; first < 0x10000; ++first) {
        Lanes lanes{first, 2, 3};
        const Bytes packet = conformance::bytes_of(header, lanes);
        if (wrap(packet, {}) == wrap(packet, {.checksum = Checksum::partial})) return lanes;
    }
    throw std::logic_error("no lanes give equal checksums");
}

TEST_F(SwitchInTheKernel, FullChecksumThatEqualsThePartialOneStaysFull) {
    if (machine == nullptr) return;
    for (unsigned member = 0; member < 2; ++member) {
        const Lanes lanes = looking_partial(gradient(member));
        EXPECT_EQ(send(gradient(member), lanes).disposition, xdp::Disposition::dropped);
    }
    const xdp::Outcome complete = send(gradient(2), looking_partial(gradient(2)));
    EXPECT_EQ(unwrap(complete.frame).checksum, Checksum::full);
    atp_header alone = gradient(0);
    alone.index = 16;  // the table has 16 aggregators
    EXPECT_EQ(unwrap(send(alone, looking_partial(alone)).frame).checksum, Checksum::full);
}

TEST_F(SwitchInTheKernel, PacketWithMoreLanesThanAnAggregatorPasses) {
    if (machine == nullptr) return;
    expect_untouched(wrap(conformance::bytes_of(gradient(0), Lanes(ATP_XDP_LANES + 1)), {}));
    EXPECT_EQ(machine->counters().oversized, 1U);
    EXPECT_EQ(machine->job_counters({job, token})->oversized, 1U);
}

TEST_F(SwitchInTheKernel, IndexOutsideTheTableGoesToTheServer) {
    if (machine == nullptr) return;
    atp_header header = gradient(0);
    header.index = 16;
    const xdp::Outcome outcome = send(header, {1, 2, 3});
    EXPECT_EQ(outcome.disposition, xdp::Disposition::passed);
    Unwrapped after = unwrap(outcome.frame);
    wire::Packet packet;
    ASSERT_EQ(wire::decode(after.payload, packet), wire::DecodeError::none);
    EXPECT_EQ(packet.header.flags, ATP_FLAG_BYPASS);
    EXPECT_EQ(packet.header.hop, 1);
    EXPECT_EQ(after.checksum, Checksum::full);
    EXPECT_EQ(machine->counters().packets.events[ATP_EVENT_MISFIT], 1U);
}

TEST_F(SwitchInTheKernel, OtherJobsAndIncarnationsPassUnchanged) {
    if (machine == nullptr) return;
    atp_header stranger = gradient(0);
    stranger.job = 8;
    expect_untouched(wrap(conformance::bytes_of(stranger, {1}), {}));
    EXPECT_EQ(machine->job_counters({job, token})->packets.forged, 0U);
    atp_header forged = gradient(0);
    forged.token = 9;
    expect_untouched(wrap(conformance::bytes_of(forged, {1}), {}));
    EXPECT_EQ(machine->job_counters({job, token})->packets.forged, 0U) << "another token is another job";
    EXPECT_EQ(machine->counters().packets.forged, 2U);
    EXPECT_EQ(machine->occupied(), 0U);
}

TEST_F(SwitchInTheKernel, CongestionMarkOfAnAbsorbedPacketIsOnTheSum) {
    if (machine == nullptr) return;
    for (const int ip : {4, 6}) {
        ASSERT_TRUE(machine->write(1, {}));
        send(gradient(0), {1, 2, 3}, {.ip = ip, .ecn = 3});
        send(gradient(1), {1, 2, 3}, {.ip = ip});
        Unwrapped after = unwrap(send(gradient(2), {1, 2, 3}, {.ip = ip}).frame);
        wire::Packet packet;
        ASSERT_EQ(wire::decode(after.payload, packet), wire::DecodeError::none);
        EXPECT_EQ(packet.header.flags, ATP_FLAG_ECN);
        EXPECT_EQ(after.checksum, Checksum::full);
    }
    EXPECT_EQ(machine->counters().packets.ecn, 2U);
}

}  // namespace
}  // namespace atp::test
