// SPDX-License-Identifier: Apache-2.0
// Properties of the kernel program that the vectors do not cover: packets of every length, frames that are no packets
// of ATP, and counters.
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
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
constexpr std::uint32_t members_mask = 0x7;

atp_header gradient(unsigned member, std::uint32_t seq = 1) {
    atp_header header{};
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 8;
    header.job = job;
    header.token = token;
    header.worker = static_cast<std::uint16_t>(member);
    header.seq = seq;
    header.index = seq % 16;
    header.bitmap0 = 1U << member;
    header.mask0 = members_mask;
    header.bitmap1 = 1;
    header.mask1 = 3;
    return header;
}

atp_header gradient_with(unsigned member, unsigned flags) {
    atp_header header = gradient(member);
    header.flags = static_cast<std::uint16_t>(flags);
    return header;
}

atp_header down(atp_type type) {
    atp_header header = gradient(0);
    header.type = static_cast<std::uint8_t>(type);
    header.lanes = ATP_DTYPE_NONE;
    return header;
}

atp_header flush() {
    atp_header header = down(ATP_TYPE_FLUSH);
    header.bitmap0 = members_mask;
    return header;
}

// Elements of `width` bits of a lane, the first in the upper bits.
std::vector<std::int64_t> elements_of(std::int32_t lane, unsigned width) {
    std::vector<std::int64_t> elements;
    for (unsigned done = 0; done < 32; done += width) {
        const std::uint32_t upper = static_cast<std::uint32_t>(lane) << done;
        elements.push_back(static_cast<std::int32_t>(upper) >> (32 - width));
    }
    return elements;
}

std::int32_t lane_of_elements(const std::vector<std::int64_t>& elements, unsigned width) {
    std::uint64_t lane = 0;
    for (const std::int64_t element : elements) {
        lane = lane << width | (static_cast<std::uint64_t>(element) & ((1ULL << width) - 1));
    }
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(lane));
}

// How the lanes of a fragment are added. `tail`: lanes at the end that wrap: the audit lane or the proof words.
struct Shape {
    unsigned flags = 0;
    std::uint8_t type = ATP_INT32_LANES;
    unsigned width = 32;

    std::size_t tail() const {
        if ((flags & ATP_FLAG_PROOF) != 0) return ATP_PROOF_LANES;
        return (flags & ATP_FLAG_AUDIT) != 0 ? 1 : 0;
    }
};

// Adds lanes as the protocol requires. Returns true if an element leaves its width.
bool add(const Lanes& addends, const Shape& shape, Lanes& sums) {
    const std::int64_t highest = (std::int64_t{1} << (shape.width - 1)) - 1;
    bool overflowed = false;
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
        if (lane + shape.tail() >= sums.size()) {
            sums[lane] =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(std::int64_t{sums[lane]} + addends[lane]));
            continue;
        }
        std::vector<std::int64_t> elements = elements_of(sums[lane], shape.width);
        const std::vector<std::int64_t> others = elements_of(addends[lane], shape.width);
        for (std::size_t at = 0; at < elements.size(); ++at) {
            const std::int64_t exact = elements[at] + others[at];
            elements[at] = std::clamp(exact, -highest - 1, highest);
            overflowed |= elements[at] != exact;
        }
        sums[lane] = lane_of_elements(elements, shape.width);
    }
    return overflowed;
}

class SwitchInTheKernel : public LoadedSwitch {
  protected:
    void SetUp() override {
        load({.aggregators = 16, .jobs = 4, .ageing = std::chrono::hours(1)});
        if (machine == nullptr) return;
        ASSERT_TRUE(machine->admit(job, token, 0));
    }

    xdp::Outcome run(const Bytes& frame) {
        auto outcome = machine->run(frame);
        EXPECT_TRUE(outcome) << to_string(outcome.error());
        return outcome ? *outcome : xdp::Outcome{};
    }
    xdp::Outcome leave(const Bytes& frame, std::uint32_t segment_bytes = 0) {
        auto outcome = machine->run_egress(frame, segment_bytes);
        EXPECT_TRUE(outcome) << to_string(outcome.error());
        return outcome ? *outcome : xdp::Outcome{};
    }
    void expect_to_leave_untouched(const Bytes& frame, std::uint32_t segment_bytes = 0) {
        const xdp::Outcome outcome = leave(frame, segment_bytes);
        EXPECT_EQ(outcome.disposition, xdp::Disposition::passed);
        EXPECT_EQ(outcome.frame, frame);
    }
    xdp::Outcome send(const atp_header& header, const Lanes& lanes, const Wrapping& wrapping = {}) {
        return run(wrap(conformance::bytes_of(header, lanes), wrapping));
    }
    void expect_untouched(const Bytes& frame) {
        const xdp::Outcome outcome = run(frame);
        EXPECT_EQ(outcome.disposition, xdp::Disposition::passed);
        EXPECT_EQ(outcome.frame, frame);
    }
    std::uint64_t events() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : machine->counters().packets.events) sum += count;
        return sum;
    }
};

// Sends packets of every length from three members, and compares the sum with plain arithmetic.
class EveryLength : public SwitchInTheKernel {
  protected:
    // `limit`: the largest magnitude of an element.
    Lanes draw(std::size_t lanes, std::int32_t limit, unsigned width) {
        std::uniform_int_distribution<std::int64_t> any(-limit, limit);
        Lanes drawn(lanes);
        std::vector<std::int64_t> elements(32 / width);
        for (std::int32_t& lane : drawn) {
            for (std::int64_t& element : elements) element = any(random_);
            lane = lane_of_elements(elements, width);
        }
        return drawn;
    }

    void expect_sum(std::size_t lanes, std::int32_t limit, const Shape& shape) {
        Lanes sums(lanes);
        bool overflowed = false;
        xdp::Outcome outcome;
        ++seq_;
        for (unsigned member = 0; member < 3; ++member) {
            const Lanes addends = draw(lanes, limit, shape.width);
            if (member == 0) sums = addends;
            if (member != 0) overflowed |= add(addends, shape, sums);
            atp_header header = gradient(member, seq_);
            header.index = 3;
            header.window_log2 = 0;  // window of 1: each fragment supersedes the previous one in the aggregator
            header.flags = static_cast<std::uint16_t>(shape.flags);
            header.lanes = shape.type;
            outcome = send(header, addends, {.padding = seq_ % 3});
            EXPECT_EQ(outcome.disposition, member == 2 ? xdp::Disposition::passed : xdp::Disposition::dropped);
        }
        Unwrapped after = unwrap(outcome.frame);
        wire::Packet packet;
        ASSERT_EQ(wire::decode(after.payload, packet), wire::DecodeError::none);
        EXPECT_EQ((packet.header.flags & ATP_FLAG_OVERFLOW) != 0, overflowed);
        EXPECT_EQ(packet.header.hop, 1);
        EXPECT_EQ(packet.header.bitmap0, members_mask);
        EXPECT_EQ(after.payload, conformance::bytes_of(packet.header, sums));
        EXPECT_EQ(after.checksum, Checksum::full);
        EXPECT_EQ(after.padding, seq_ % 3);
    }

    void expect_sums_of_every_length(std::int32_t limit, const Shape& shape) {
        if (machine == nullptr) return;
        for (std::size_t lanes = 1 + shape.tail() - (shape.flags == ATP_FLAG_AUDIT); lanes <= ATP_XDP_LANES; ++lanes) {
            SCOPED_TRACE(lanes);
            expect_sum(lanes, limit, shape);
            if (HasFailure()) return;
        }
    }

  private:
    std::mt19937 random_{1};
    std::uint32_t seq_ = 0;
};

constexpr std::int32_t never_overflows = 1 << 28;
constexpr std::int32_t often_overflows = std::numeric_limits<std::int32_t>::max();

TEST_F(EveryLength, AddsEveryLane) { expect_sums_of_every_length(never_overflows, {}); }

TEST_F(EveryLength, SaturatesEachLaneSeparately) { expect_sums_of_every_length(often_overflows, {}); }

TEST_F(EveryLength, WrapsOnlyTheAuditLane) { expect_sums_of_every_length(often_overflows, {.flags = ATP_FLAG_AUDIT}); }

TEST_F(EveryLength, WrapsOnlyTheProofWords) { expect_sums_of_every_length(often_overflows, {.flags = ATP_FLAG_PROOF}); }

TEST_F(EveryLength, H53_NarrowElementsSaturateAloneAtEachPlaceOfALane) {
    const std::tuple<std::uint8_t, unsigned, std::int32_t> types[] = {{std::uint8_t{ATP_INT16_LANES}, 16U, 32767},
                                                                      {std::uint8_t{ATP_INT8_LANES}, 8U, 127}};
    for (const auto& [type, width, highest] : types) {
        for (const unsigned flags : {0U, unsigned{ATP_FLAG_AUDIT}, unsigned{ATP_FLAG_PROOF}}) {
            SCOPED_TRACE(width);
            const Shape shape{.flags = flags, .type = type, .width = width};
            expect_sums_of_every_length(highest / 4, shape);
            expect_sums_of_every_length(highest, shape);
        }
    }
}

TEST_F(EveryLength, WrapOfTheAuditLaneIsNoOverflow) {
    if (machine == nullptr) return;
    constexpr std::int32_t big = std::numeric_limits<std::int32_t>::max();
    for (const std::size_t lanes : {1U, 2U, 3U, 16U, 17U, 351U, 352U}) {
        SCOPED_TRACE(lanes);
        Lanes addends(lanes, 1);
        addends.back() = big;
        machine->dismiss({job, token});
        ASSERT_TRUE(machine->admit(job, token, 0));
        ASSERT_TRUE(machine->write(1, {}));
        for (unsigned member = 0; member < 3; ++member) send(gradient_with(member, ATP_FLAG_AUDIT), addends);
        EXPECT_EQ(machine->job_counters({job, token})->packets.overflows, 0U);
        EXPECT_EQ(machine->job_counters({job, token})->packets.events[ATP_EVENT_COMPLETED], 1U);
    }
}

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

TEST_F(SwitchInTheKernel, MulticastFlushIsDroppedAndKeepsThePartialSum) {
    if (machine == nullptr) return;
    send(gradient(0), {1, 2, 3});
    EXPECT_EQ(send(flush(), {}, {.to_many = true}).disposition, xdp::Disposition::dropped);
    EXPECT_EQ(machine->counters().packets.no_room, 1U);
    EXPECT_EQ(machine->occupied(), 1U) << "the partial sum waits for a unicast FLUSH";
}

TEST_F(SwitchInTheKernel, MulticastFlushWithoutAPartialSumIsAbsorbed) {
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
        send(gradient(0), {1, 2, 3}, {.ip = ip, .congested = true});
        send(gradient(1), {1, 2, 3}, {.ip = ip});
        Unwrapped after = unwrap(send(gradient(2), {1, 2, 3}, {.ip = ip}).frame);
        wire::Packet packet;
        ASSERT_EQ(wire::decode(after.payload, packet), wire::DecodeError::none);
        EXPECT_EQ(packet.header.flags, ATP_FLAG_ECN);
        EXPECT_EQ(after.checksum, Checksum::full);
    }
    EXPECT_EQ(machine->counters().packets.ecn, 2U);
}

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

std::vector<Bytes> control_messages_of(xdp::KernelTable& machine) {
    std::vector<Bytes> messages;
    machine.read_queued_messages(std::chrono::milliseconds(0),
                                 [&](auto message) { messages.emplace_back(message.begin(), message.end()); });
    return messages;
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

// A folder for the pinned maps of a program. The destructor removes the folder.
class PinFolder {
  public:
    PinFolder() : mounted_(mkdtemp(path_.data()) != nullptr && mount("bpf", path_.c_str(), "bpf", 0, nullptr) == 0) {}
    ~PinFolder() {
        if (mounted_) umount(path_.c_str());
        rmdir(path_.c_str());
    }
    PinFolder(const PinFolder&) = delete;
    PinFolder& operator=(const PinFolder&) = delete;

    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_ = "/tmp/atp-pins-XXXXXX";
    bool mounted_;
};

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
