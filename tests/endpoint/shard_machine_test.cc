// SPDX-License-Identifier: Apache-2.0
// Packets: who receives them, and what happens without room.
#include "endpoint/shard_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "base/hash.h"
#include "shard_fixture.h"
#include "support/packets.h"

namespace atp::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Of the parent of a leaf.
Bytes parent_is_ready(const Shard& leaf) {
    return encoded(wire::Joined{.nonce = leaf.up_nonce(),
                                .job = job,
                                .token = token,
                                .channel = channel,
                                .epoch = 1,
                                .number = 1,
                                .ready = true});
}

protocol::Membership star(unsigned workers) { return *protocol::Membership::star(workers); }

// One switch with two members, both joined.
struct Star {
    // `at`: where the server runs; no family: on the switch.
    explicit Star(const ShardMachineConfig& config = shard_config(), bool with_group = false,
                  const wire::Address& at = {})
        : has_group(with_group), server(at), shard(config) {
        for (std::uint16_t rank = 0; rank < 2; ++rank) join(rank);
    }
    void join(std::uint16_t rank, bool receives_group = false) {
        wire::Join join = join_of(members.place(rank), rank);
        if (has_group) join.terms.group = control::endpoint_of(group());
        join.terms.server = control::endpoint_of(server);
        join.receives_group = receives_group;
        shard.take(encoded(join), worker_address(rank), now);
    }
    static wire::Address group() { return *wire::Address::parse("239.192.7.8:4792"); }
    [[nodiscard]] std::uint64_t group_number() const {
        std::uint64_t number = 0;
        shard.machine.tree().for_each([&](const control::Branch& branch) { number = branch.group_number; });
        return number;
    }

    // A gradient of one fragment of this rank.
    [[nodiscard]] Bytes gradient(std::uint16_t rank, std::uint16_t of_channel = channel) const {
        const protocol::Place& place = members.place(rank);
        atp_header header{};
        header.type = ATP_TYPE_GRADIENT;
        header.lanes = ATP_INT32_LANES;
        header.window_log2 = 3;
        header.flags = ATP_FLAG_PLAIN;
        header.job = job, header.token = token, header.channel = of_channel;
        header.worker = rank;
        header.index = 5;
        header.peer = ATP_WORKER_ALL;
        header.bitmap0 = 1U << place.member, header.mask0 = place.mask0;
        header.bitmap1 = 1U << place.unit, header.mask1 = place.mask1;
        return testing::make_packet(header, {rank + 1, 2, 3, 4});
    }
    // Of this fragment, for all members.
    [[nodiscard]] Bytes downward(atp_type type) const {
        Bytes bytes = gradient(0);
        bytes.resize(ATP_HEADER_BYTES);
        wire::store_u8(bytes.data() + ATP_OFFSET_TYPE, type);
        wire::store_u8(bytes.data() + ATP_OFFSET_LANES, type == ATP_TYPE_NACK ? ATP_DTYPE_INT32 : 0);
        wire::store_u16(bytes.data() + ATP_OFFSET_WORKER, ATP_WORKER_ALL);
        wire::store_u32(bytes.data() + ATP_OFFSET_BITMAP0, 3);
        return bytes;
    }
    void send(std::uint16_t rank, wire::Ecn ecn = wire::Ecn::capable_0) {
        shard.take(gradient(rank), worker_address(rank), now, ecn);
    }

    protocol::Membership members = star(2);
    bool has_group;
    wire::Address server;
    Shard shard;
    Time now{std::chrono::seconds(100)};
};

TEST(ShardMachine, OneSwitchSumsForItsMembers) {
    Cluster cluster(star(3));
    cluster.add_shard(1, shard_config());
    for (std::uint16_t rank = 0; rank < 3; ++rank) cluster.add_worker(rank, 1);
    cluster.join_all();
    ASSERT_TRUE(cluster.ready(0) && cluster.ready(1) && cluster.ready(2));
    cluster.submit(100);
    ASSERT_TRUE(cluster.finish());
    EXPECT_TRUE(cluster.sums_are_right());
    const protocol::SwitchCounters& counters = cluster.shard(1).machine.table().counters();
    EXPECT_EQ(counters.events[ATP_EVENT_COMPLETED], 25U) << "the switch added every fragment of four lanes";
    EXPECT_EQ(cluster.shard(1).machine.counters().unrouted, 0U);
}

TEST(ShardMachine, LeavesAndRootSumForRacksAndADirectWorker) {
    Cluster cluster(
        *protocol::Membership::make({{.ranks = {0, 1}}, {.ranks = {2, 3}}, {.ranks = {4}, .direct = true}}));
    cluster.add_shard(1, shard_config());
    cluster.add_shard(2, shard_config(host(1)));
    cluster.add_shard(3, shard_config(host(1)));
    for (std::uint16_t rank = 0; rank < 4; ++rank) cluster.add_worker(rank, rank < 2 ? 2 : 3);
    cluster.add_worker(4, 1, 1);
    cluster.join_all();
    ASSERT_TRUE(cluster.ready(0) && cluster.ready(3) && cluster.ready(4));
    cluster.submit(100);
    ASSERT_TRUE(cluster.finish());
    EXPECT_TRUE(cluster.sums_are_right());
    EXPECT_EQ(cluster.shard(2).machine.table().counters().events[ATP_EVENT_COMPLETED], 25U);
    EXPECT_EQ(cluster.shard(1).machine.table().counters().events[ATP_EVENT_COMPLETED], 25U);
    for (const unsigned number : {1U, 2U}) {
        const ShardMachine& machine = cluster.shard(number).machine;
        machine.tree().for_each([&](const control::Branch& branch) {
            EXPECT_EQ(machine.server_of(branch) != nullptr, number == 1) << "the root hosts the server";
        });
    }
}

TEST(ShardMachine, LostPacketsAreFetchedThroughTheSwitches) {
    Cluster cluster(*protocol::Membership::racks(2, 2));
    cluster.add_shard(1, shard_config());
    cluster.add_shard(2, shard_config(host(1)));
    cluster.add_shard(3, shard_config(host(1)));
    for (std::uint16_t rank = 0; rank < 4; ++rank) cluster.add_worker(rank, rank < 2 ? 2 : 3);
    cluster.join_all();
    std::uint32_t packets = 0;
    cluster.arrives = [&](const Bytes& bytes, const wire::Address&, const wire::Address&) {
        const bool is_packet = !wire::control_type(bytes);
        return !is_packet || mix(++packets) % 7 != 0;
    };
    cluster.submit(200);
    ASSERT_TRUE(cluster.finish());
    EXPECT_TRUE(cluster.sums_are_right());
}

TEST(ShardMachine, RackWhoseSwitchIsInThePathGetsFlushesThroughItsFirstMember) {
    Cluster cluster(*protocol::Membership::racks(2, 2));
    cluster.add_shard(1, shard_config());
    cluster.add_shard(2, shard_config(host(1)));
    for (std::uint16_t rank = 0; rank < 2; ++rank) cluster.add_worker(rank, 2);
    for (std::uint16_t rank = 2; rank < 4; ++rank) cluster.add_worker(rank, 1, 1);
    cluster.join_all();
    ASSERT_TRUE(cluster.ready(0) && cluster.ready(2));
    std::uint32_t packets = 0;
    std::vector<wire::Address> flushed;
    cluster.arrives = [&](const Bytes& bytes, const wire::Address&, const wire::Address& to) {
        if (Shard::is_packet(bytes, ATP_TYPE_FLUSH)) flushed.push_back(to);
        return wire::control_type(bytes) || mix(++packets) % 5 != 0;
    };
    cluster.submit(200);
    ASSERT_TRUE(cluster.finish());
    EXPECT_TRUE(cluster.sums_are_right());
    EXPECT_THAT(flushed, ::testing::Contains(worker_address(2)));
    EXPECT_THAT(flushed, ::testing::Not(::testing::Contains(worker_address(3))));
}

TEST(ShardMachine, ResultGoesToEachMemberAsCopiesOfOnePacket) {
    Star star;
    star.send(0);
    EXPECT_THAT(star.shard.sent, IsEmpty()) << "absorbed";
    star.send(1);
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), ElementsAre(worker_address(0), worker_address(1)));
    EXPECT_EQ(star.shard.outbox.repeated(), 1U);
    EXPECT_EQ(testing::lanes_in(star.shard.sent[0].bytes), (testing::Lanes{3, 4, 6, 8}));
    EXPECT_THAT(star.shard.outbox.expected, ::testing::Contains(2U)) << "room for both copies";
}

TEST(ShardMachine, AnswersOfServersWaitForRoom) {
    Star star;
    star.send(0);
    star.shard.outbox.room = 0;
    star.send(1);
    EXPECT_THAT(star.shard.sent, IsEmpty());
    EXPECT_TRUE(star.shard.machine.has_answers());
    star.shard.machine.handle_room(star.shard.outbox, star.now);
    EXPECT_TRUE(star.shard.machine.has_answers()) << "still none";
    star.shard.outbox.room = 2;
    star.shard.machine.handle_room(star.shard.outbox, star.now);
    star.shard.collect();
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), SizeIs(2));
    EXPECT_FALSE(star.shard.machine.has_answers());
    EXPECT_EQ(star.shard.machine.counters().unrouted, 0U);
}

TEST(ShardMachine, CopyWithoutRoomIsCounted) {
    Star star;
    star.send(0);
    star.shard.outbox.room = 1;
    star.send(1);
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), SizeIs(1));
    EXPECT_EQ(star.shard.machine.counters().unrouted, 1U);
}

TEST(ShardMachine, PacketOfAnUnknownChannelIsDroppedAndCounted) {
    Star star;
    star.shard.take(star.gradient(0, channel + 1), worker_address(0), star.now);
    EXPECT_THAT(star.shard.sent, IsEmpty());
    EXPECT_EQ(star.shard.packets().strangers, 1U);
    EXPECT_EQ(star.shard.packets().events[ATP_EVENT_CLAIMED], 0U);
}

TEST(ShardMachine, PacketOfAChannelThatLacksAMemberIsDroppedAndCounted) {
    Star star;
    Shard fresh;
    fresh.take(encoded(join_of(star.members.place(0), 0)), worker_address(0), star.now);
    ASSERT_EQ(fresh.machine.tree().channels(), 1U);
    fresh.take(star.gradient(0), worker_address(0), star.now);
    EXPECT_EQ(fresh.packets().forged, 1U) << "its job has no complete channel";
    wire::Join other = join_of(star.members.place(0), 0);
    other.terms.channel = channel + 1;
    star.shard.take(encoded(other), worker_address(0), star.now);
    star.shard.take(star.gradient(0, channel + 1), worker_address(0), star.now);
    EXPECT_EQ(star.shard.packets().strangers, 1U);
    EXPECT_EQ(star.shard.packets().events[ATP_EVENT_CLAIMED], 0U);
}

TEST(ShardMachine, GradientFromAnotherAddressThanItsWorkersIsNotAdded) {
    Star star;
    for (const wire::Address& from : {host(99), worker_address(1), worker_address(0).with_port(9)}) {
        star.shard.take(star.gradient(0), from, star.now);
    }
    EXPECT_EQ(star.shard.packets().strangers, 3U);
    EXPECT_EQ(star.shard.packets().events[ATP_EVENT_CLAIMED], 0U);
    EXPECT_EQ(star.shard.machine.table().job_counters(job, token)->strangers, 3U);
    for (std::uint16_t rank = 0; rank < 2; ++rank) star.send(rank);
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), SizeIs(2));
}

TEST(ShardMachine, PacketWithAnotherWindowThanTheTermsIsDroppedAndCounted) {
    Star star;
    Bytes gradient = star.gradient(0);
    wire::store_u8(gradient.data() + ATP_OFFSET_WINDOW, 0);
    star.shard.take(gradient, worker_address(0), star.now);
    EXPECT_EQ(star.shard.packets().strangers, 1U);
    EXPECT_EQ(star.shard.packets().events[ATP_EVENT_CLAIMED], 0U);
}

TEST(ShardMachine, SwitchThatHostsTheServerForwardsNoResultOfAnother) {
    Star star;
    star.send(0);
    for (const atp_type type : {ATP_TYPE_ACK, ATP_TYPE_NACK, ATP_TYPE_WAIT, ATP_TYPE_FLUSH}) {
        for (const wire::Address& from : {host(99), worker_address(0)}) {
            star.shard.take(star.downward(type), from, star.now);
            EXPECT_THAT(star.shard.sent, IsEmpty()) << int{type};
        }
    }
    EXPECT_EQ(star.shard.packets().strangers, 8U);
    star.send(1);
    EXPECT_EQ(star.shard.packets().events[ATP_EVENT_COMPLETED], 1U) << "the aggregator was not freed";
}

TEST(ShardMachine, PacketUpwardsBeforeTheParentAnsweredIsDroppedAndCounted) {
    protocol::Membership racks = *protocol::Membership::racks(2, 1);
    Shard leaf(shard_config(host(9)));
    leaf.take(encoded(join_of(racks.place(0), 0)), worker_address(0));
    atp_header header{};
    header.type = ATP_TYPE_PROBE;
    header.window_log2 = 3;
    header.job = job, header.token = token, header.channel = channel;
    header.index = 5;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = 1, header.mask0 = 1, header.bitmap1 = 1, header.mask1 = 3;
    const Bytes probe = testing::make_packet(header);
    leaf.take(probe, worker_address(0));
    EXPECT_EQ(leaf.machine.counters().unrouted, 1U);
    leaf.message(parent_is_ready(leaf), host(9));
    leaf.take(probe, worker_address(0));
    EXPECT_THAT(leaf.receivers(ATP_TYPE_PROBE), ElementsAre(host(9)));
    leaf.outbox.room = 0;
    leaf.take(probe, worker_address(0));
    EXPECT_EQ(leaf.machine.counters().unrouted, 2U) << "no room";
}

TEST(ShardMachine, ResultComesFromTheParentAndKeepsItsMarkInItsIpHeader) {
    Shard leaf(shard_config(host(9)));
    protocol::Membership racks = *protocol::Membership::racks(2, 1);
    leaf.take(encoded(join_of(racks.place(0), 0)), worker_address(0));
    atp_header header{};
    header.type = ATP_TYPE_ACK;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 3;
    header.flags = ATP_FLAG_PLAIN;
    header.job = job, header.token = token, header.channel = channel;
    header.worker = ATP_WORKER_ALL;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = 1, header.mask0 = 1, header.bitmap1 = 3, header.mask1 = 3;
    const Bytes ack = testing::make_packet(header, {1, 2, 3, 4});
    leaf.take(ack, host(9));
    EXPECT_THAT(leaf.sent, IsEmpty()) << "the parent has not answered yet";
    leaf.message(parent_is_ready(leaf), host(9));
    for (const wire::Address& from : {host(99), host(9).with_port(9), worker_address(0)}) {
        leaf.take(ack, from);
        EXPECT_THAT(leaf.sent, IsEmpty()) << to_string(from);
    }
    EXPECT_EQ(leaf.packets().strangers, 4U);
    leaf.take(ack, host(9), {}, wire::Ecn::congested);
    ASSERT_THAT(leaf.receivers(ATP_TYPE_ACK), ElementsAre(worker_address(0)));
    EXPECT_EQ(leaf.sent[0].ecn, wire::Ecn::congested);
    leaf.take(ack, host(9), {}, wire::Ecn::capable_0);
    EXPECT_EQ(leaf.sent.at(0).ecn, wire::Ecn::capable_0);
}

TEST(ShardMachine, ResultGoesToTheGroupIfAllMembersReceiveIt) {
    Star star(shard_config(), true);
    ASSERT_THAT(star.shard.events, ::testing::Not(IsEmpty())) << "JOINED went to the group";
    EXPECT_EQ(star.shard.events[0].kind, ShardEvent::Kind::group_used);
    EXPECT_EQ(star.shard.events[0].address, Star::group());
    EXPECT_EQ(star.shard.events[0].near, worker_address(0));
    for (std::uint16_t rank = 0; rank < 2; ++rank) star.join(rank, true);
    for (std::uint16_t rank = 0; rank < 2; ++rank) star.send(rank);
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), ElementsAre(Star::group()));
    EXPECT_EQ(star.shard.machine.counters().grouped, 1U);
    Bytes result = star.shard.sent[0].bytes;
    EXPECT_EQ(wire::load_u64(result.data() + ATP_OFFSET_TOKEN), star.group_number())
        << "listeners to the group learn no token";
}

TEST(ShardMachine, ResultOfAServerElsewhereGoesToTheGroupToo) {
    Star star(shard_config(), true, host(9));
    star.shard.message(parent_is_ready(star.shard), host(9), star.now);
    for (std::uint16_t rank = 0; rank < 2; ++rank) star.join(rank, true);
    star.shard.take(star.downward(ATP_TYPE_ACK), host(9), star.now);
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), ElementsAre(Star::group()));
    EXPECT_EQ(star.shard.machine.counters().grouped, 1U);
}

// Whoever joins chooses the group, so a driver may keep no more of them than there are channels.
TEST(ShardMachine, GroupsOfChannelsThatEndedAreGivenBack) {
    Shard shard;
    std::map<wire::Address, int> kept;
    const auto join_and_leave = [&](std::uint32_t number, const wire::Address& group, bool leaves) {
        wire::Join join = join_of(star(2).place(0), 0);
        join.terms.job = number;
        join.terms.group = control::endpoint_of(group);
        shard.take(encoded(join), worker_address(0));
        const wire::Leave leave{.job = number, .token = token, .channel = channel};
        if (leaves) shard.take(encoded(leave), worker_address(0));
        for (const ShardEvent& event : std::exchange(shard.events, {})) {
            if (event.kind == ShardEvent::Kind::group_used) kept[event.address] = 1;
            if (event.kind == ShardEvent::Kind::group_unused) kept.erase(event.address);
        }
    };
    join_and_leave(1, Star::group(), false);
    for (std::uint32_t number = 2; number < 10'002; ++number) {
        wire::Endpoint group = control::endpoint_of(Star::group());
        wire::store_u16(group.host.data() + 2, static_cast<std::uint16_t>(number));
        join_and_leave(number, control::address_of(group), true);
    }
    join_and_leave(10'002, Star::group(), true);
    EXPECT_THAT(kept, ElementsAre(::testing::Pair(Star::group(), 1))) << "the first channel still sends to it";
}

TEST(ShardMachine, ResultGoesToEachMemberIfTheTransportReachesNoGroups) {
    ShardMachineConfig config = shard_config();
    config.reaches_groups = false;
    Star star(config, true);
    for (std::uint16_t rank = 0; rank < 2; ++rank) star.join(rank, true);
    for (std::uint16_t rank = 0; rank < 2; ++rank) star.send(rank);
    EXPECT_THAT(star.shard.receivers(ATP_TYPE_ACK), SizeIs(2));
    EXPECT_EQ(star.shard.machine.counters().grouped, 0U);
}

}  // namespace
}  // namespace atp::endpoint
