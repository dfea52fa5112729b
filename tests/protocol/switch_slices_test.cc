// SPDX-License-Identifier: Apache-2.0
// Which aggregators a job reaches on a table that tenants share, also while their slices change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "protocol/switch.h"
#include "support/gradients.h"
#include "support/packets.h"

namespace atp::protocol {
namespace {

using testing::Bytes;
using testing::Lanes;
using testing::lanes_in;
using testing::make_packet;

constexpr std::uint32_t aggregators = 16;

class SwitchSlices : public ::testing::Test {
  protected:
    SwitchSlices() {
        EXPECT_TRUE(machine.admit(mine.job, mine.token, 0));
        EXPECT_TRUE(machine.admit(other.job, other.token, 0));
    }

    void set(const ChannelConfig& channel, std::uint32_t base, std::uint32_t size) {
        machine.set_slice(channel.job, channel.token, {base, size}, 1);
    }
    [[nodiscard]] atp_header gradient(const ChannelConfig& channel, std::uint16_t rank, std::uint32_t seq,
                                      std::uint32_t index) const {
        atp_header header = testing::gradient_of(channel, members, rank, seq);
        header.index = index;
        return header;
    }
    struct Result {
        Verdict verdict;
        Bytes bytes;
    };
    Result handle(const atp_header& header, const Lanes& lanes = {1, 1, 1}) {
        Bytes bytes = make_packet(header, lanes);
        const auto size = static_cast<std::uint32_t>(bytes.size());
        bytes.resize(512);
        PacketBuffer buffer{.data = bytes.data(), .size = size, .capacity = 512, .verdict = {}};
        machine.handle_packet(buffer, now);
        bytes.resize(buffer.size);
        return {buffer.verdict, bytes};
    }
    std::uint8_t send(const ChannelConfig& channel, std::uint16_t rank, std::uint32_t seq, std::uint32_t index) {
        return handle(gradient(channel, rank, seq, index)).verdict.event;
    }
    std::uint8_t acknowledge(const ChannelConfig& channel, std::uint32_t seq, std::uint32_t index) {
        atp_header header = gradient(channel, 0, seq, index);
        header.type = ATP_TYPE_ACK;
        header.lanes = testing::lanes_field(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32);
        header.worker = ATP_WORKER_ALL;
        return handle(header).verdict.event;
    }
    // Where a fragment is held.
    [[nodiscard]] std::optional<std::uint32_t> place(const ChannelConfig& channel, std::uint32_t seq) const {
        for (std::uint32_t at = 0; at < aggregators; ++at) {
            const atp_aggregator& a = machine.aggregator(at);
            if (a.status != ATP_AGGREGATOR_FREE && a.token == channel.token && a.seq == seq) return at;
        }
        return std::nullopt;
    }

    ChannelConfig mine{.job = 1, .token = 0x5eed, .lanes = 3, .window_log2 = 2, .aggregators = aggregators};
    ChannelConfig other{.job = 2, .token = 0xbad, .lanes = 3, .window_log2 = 2, .aggregators = aggregators};
    Membership members = *Membership::star(2);
    Switch machine{{.aggregators = aggregators, .lanes = 4, .jobs = 3, .ageing = std::chrono::milliseconds(10)}};
    Time now{std::chrono::seconds(1)};
};

TEST_F(SwitchSlices, WithoutASliceAJobReachesTheWholeTable) {
    for (std::uint32_t index = 0; index < aggregators; ++index) {
        EXPECT_EQ(send(mine, 0, index, index), ATP_EVENT_CLAIMED);
        EXPECT_EQ(place(mine, index), index);
    }
    EXPECT_EQ(send(mine, 0, 99, aggregators), ATP_EVENT_MISFIT);
}

TEST_F(SwitchSlices, H103_NoIndexReachesTheSliceOfAnother) {
    set(mine, 0, 12);
    set(other, 12, 4);
    for (std::uint32_t index = 0; index < aggregators; ++index) {
        static_cast<void>(send(other, 0, index, index));
        if (index < 4) {
            EXPECT_EQ(place(other, index), 12 + index);
        }
    }
    for (std::uint32_t index = 0; index < 12; ++index) {
        EXPECT_EQ(send(mine, 0, index, index), ATP_EVENT_CLAIMED) << index;
        EXPECT_EQ(send(mine, 1, index, index), ATP_EVENT_COMPLETED) << index;
    }
    EXPECT_EQ(send(mine, 0, 100, 13), ATP_EVENT_SUPERSEDED) << "13 mod 12 is 1";
}

TEST_F(SwitchSlices, EmptySlicePassesEachGradientByItself) {
    set(mine, 5, 0);
    EXPECT_EQ(send(mine, 0, 0, 0), ATP_EVENT_MISFIT);
    EXPECT_EQ(machine.occupied(), 0U);
}

TEST_F(SwitchSlices, H104_FragmentOfBeforeAChangeCompletesWhereItBegan) {
    set(mine, 0, 16);
    EXPECT_EQ(send(mine, 0, 7, 3), ATP_EVENT_CLAIMED);
    set(mine, 8, 8);
    EXPECT_EQ(place(mine, 7), 3U) << "an aggregator in use keeps its place";
    const Result last = handle(gradient(mine, 1, 7, 3), {4, 5, 6});
    EXPECT_EQ(last.verdict.event, ATP_EVENT_COMPLETED);
    EXPECT_EQ(lanes_in(last.bytes), (Lanes{5, 6, 7}));
    EXPECT_EQ(acknowledge(mine, 7, 3), ATP_EVENT_RELEASED);
}

TEST_F(SwitchSlices, H104_ChangeAppliesFromTheHighestFragmentPlusTheWindow) {
    set(mine, 0, 8);
    EXPECT_EQ(send(mine, 0, 20, 1), ATP_EVENT_CLAIMED);
    set(mine, 8, 8);
    // W is 4, so a member may have sent 23 by now, and this switch sees it after the change.
    for (std::uint32_t seq = 21; seq < 24; ++seq) {
        EXPECT_EQ(send(mine, 0, seq, seq - 19), ATP_EVENT_CLAIMED);
        EXPECT_EQ(place(mine, seq), seq - 19) << seq;
    }
    EXPECT_EQ(send(mine, 0, 24, 4), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(mine, 24), 12U);
}

TEST_F(SwitchSlices, SequenceNumbersMayWrapDuringAChange) {
    set(mine, 0, 8);
    EXPECT_EQ(send(mine, 0, 0xFFFFFFFE, 1), ATP_EVENT_CLAIMED);
    set(mine, 8, 8);
    EXPECT_EQ(send(mine, 0, 1, 2), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(mine, 1), 2U);
    EXPECT_EQ(send(mine, 0, 2, 3), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(mine, 2), 11U);
}

TEST_F(SwitchSlices, H104_RecalledAggregatorGoesToItsNewOwnerWhenItIsFree) {
    set(mine, 0, 16);
    EXPECT_EQ(send(mine, 0, 0, 12), ATP_EVENT_CLAIMED);
    set(mine, 0, 8);
    set(other, 8, 8);
    EXPECT_EQ(send(other, 0, 0, 4), ATP_EVENT_COLLIDED) << "nobody evicts a fragment";
    EXPECT_EQ(send(mine, 1, 0, 12), ATP_EVENT_COMPLETED);
    EXPECT_EQ(acknowledge(mine, 0, 12), ATP_EVENT_RELEASED);
    EXPECT_EQ(send(other, 0, 1, 4), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(other, 1), 12U);
}

TEST_F(SwitchSlices, H104_AfterTheEndOfAChangeNothingReachesTheSliceOfBefore) {
    set(mine, 0, 16);
    EXPECT_EQ(send(mine, 0, 0, 12), ATP_EVENT_CLAIMED);
    set(mine, 0, 8);
    machine.end_changes();
    // A job that sends old numbers only, to keep what it has to return.
    for (std::uint32_t index = 8; index < 16; ++index) {
        EXPECT_EQ(send(mine, 0, 1, index), ATP_EVENT_CLAIMED);
        EXPECT_EQ(place(mine, 1), index - 8);
        EXPECT_EQ(acknowledge(mine, 1, index), ATP_EVENT_RELEASED);
    }
    // Half of a fragment stays behind. Its other members start anew, and the one that was late resends.
    EXPECT_EQ(send(mine, 1, 0, 12), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(mine, 0), 4U);
    atp_header resend = gradient(mine, 0, 0, 12);
    resend.flags |= ATP_FLAG_RESEND;
    const Result fetched = handle(resend, {1, 1, 1});
    EXPECT_EQ(fetched.verdict.event, ATP_EVENT_FETCHED);
    EXPECT_EQ(lanes_in(fetched.bytes), (Lanes{2, 2, 2}));
}

TEST_F(SwitchSlices, EachStreamOfAJobChangesByItself) {
    ChannelConfig second = mine;
    second.channel = 1;
    set(mine, 0, 8);
    EXPECT_EQ(send(mine, 0, 1000, 1), ATP_EVENT_CLAIMED);
    EXPECT_EQ(send(second, 0, 10, 2), ATP_EVENT_CLAIMED);
    set(mine, 8, 8);
    EXPECT_EQ(send(second, 0, 14, 3), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(second, 14), 11U) << "it is far behind the first";
    ChannelConfig third = mine;
    third.channel = 2;
    EXPECT_EQ(send(third, 0, 0, 4), ATP_EVENT_CLAIMED);
    EXPECT_EQ(place(third, 0), 12U) << "it has no older fragment";
}

// Fragments that are added here while another job claims all that it can reach, twice for each fragment.
std::uint64_t completed_beside_a_thief(bool sliced) {
    constexpr std::uint32_t table = 64;
    constexpr std::uint32_t fragments = 1000;
    const ChannelConfig victim{.job = 1, .token = 0x5eed, .lanes = 1, .window_log2 = 4, .aggregators = table};
    // With this window, each fragment takes the aggregator of the one before.
    const ChannelConfig thief{.job = 2, .token = 0xbad, .lanes = 1, .window_log2 = 0, .aggregators = table};
    const Membership pair = *Membership::star(2);
    Switch machine{{.aggregators = table, .lanes = 1, .jobs = 2}};
    for (const ChannelConfig& channel : {victim, thief}) {
        EXPECT_TRUE(machine.admit(channel.job, channel.token, 0));
        if (sliced) machine.set_slice(channel.job, channel.token, {channel.job == 1 ? 0U : 32U, 32}, 1);
    }
    const auto handle = [&](const atp_header& header) {
        Bytes bytes = make_packet(header, {1});
        const auto size = static_cast<std::uint32_t>(bytes.size());
        PacketBuffer buffer{.data = bytes.data(), .size = size, .capacity = size, .verdict = {}};
        machine.handle_packet(buffer, Time{});
    };
    for (std::uint32_t seq = 0; seq < fragments; ++seq) {
        const std::uint32_t index = victim.index(seq, 0);
        for (std::uint16_t rank = 0; rank < 2; ++rank) {
            for (std::uint32_t at = 0; at < table; ++at) {
                atp_header header = testing::gradient_of(thief, pair, 0, 2 * seq + rank);
                header.index = at;
                handle(header);
            }
            atp_header header = testing::gradient_of(victim, pair, rank, seq);
            header.index = index;
            handle(header);
        }
        atp_header ack = testing::gradient_of(victim, pair, 0, seq);
        ack.type = ATP_TYPE_ACK;
        ack.lanes = testing::lanes_field(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32);
        ack.worker = ATP_WORKER_ALL;
        ack.index = index;
        handle(ack);
    }
    const auto& events = machine.job_counters(victim.job, victim.token)->events;
    EXPECT_LE(events[ATP_EVENT_CLAIMED], fragments);
    return events[ATP_EVENT_COMPLETED];
}

TEST(Theft, H103_TenantThatClaimsEveryIndexTakesNothingFromAnother) {
    EXPECT_EQ(completed_beside_a_thief(true), 1000U);
    EXPECT_LT(completed_beside_a_thief(false), 100U) << "on an open switch";
}

TEST_F(SwitchSlices, EntryHasTheWeight) {
    machine.set_slice(mine.job, mine.token, {0, 8}, 3);
    EXPECT_EQ(machine.slice_of(mine.job, mine.token)->weight, 3U);
    machine.set_slice(mine.job, mine.token, {0, 8}, 5);
    EXPECT_EQ(machine.slice_of(mine.job, mine.token)->weight, 5U);
    EXPECT_EQ(machine.slice_of(mine.job, mine.token)->before.size, 0U) << "no change of the slice";
}

}  // namespace
}  // namespace atp::protocol
