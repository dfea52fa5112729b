// SPDX-License-Identifier: Apache-2.0
#include "endpoint/channel_machine.h"

#include "channel_fixture.h"

namespace atp::endpoint {
namespace {

// ------------------------------------------------------------------------------------------------ Where datagrams go

TEST(ChannelMachine, DatagramsOfOthersAreCountedAndDropped) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready();
    atp_header gradient{};
    gradient.version = ATP_VERSION;
    gradient.type = ATP_TYPE_GRADIENT;
    channel.receive(testing::make_packet(gradient));
    EXPECT_EQ(channel.machine.strays(), 1U) << "no server runs here";
    channel.control(wire::Hello{.nonce = 4});
    channel.control(join_of_last_switch(channel.config));
    wire::Joined other = joined(channel.config, false, 1, 1);
    ++other.token;
    channel.control(other);
    channel.control(other, switch_address, true);
    channel.receive({std::byte{1}}, switch_address, true);
    EXPECT_EQ(channel.machine.strays(), 6U);
    channel.receive({std::byte{1}, std::byte{2}});  // the worker counts it
    EXPECT_EQ(channel.machine.strays(), 6U);
    EXPECT_EQ(channel.machine.worker().counters().refused, 1U);
    EXPECT_TRUE(channel.events.empty());
}

TEST(ChannelMachine, H70_ResultOfAnotherAddressOrWithoutTheGroupsNumberIsDropped) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.has_group = true;
    Channel channel(config);
    channel.become_ready();
    const std::uint64_t before = channel.machine.worker().counters().acks;
    channel.receive(result_for(config, ATP_WORKER_ALL), stranger);
    channel.receive(result_for(config, ATP_WORKER_ALL, true), stranger, true);
    channel.receive(result_for(config, ATP_WORKER_ALL), switch_address, true);
    channel.receive(result_for(config, ATP_WORKER_ALL, true), switch_address);
    EXPECT_EQ(channel.machine.strays(), 3U);
    EXPECT_EQ(channel.machine.worker().counters().forged, 1U) << "the number of the group is no token";
    EXPECT_EQ(channel.machine.worker().counters().acks, before);
    EXPECT_EQ(channel.machine.group_results(), 0U);
}

// Until packets have keys: docs/spec/joining.md#what-others-can-do names it, and results by group are off by default.
TEST(ChannelMachine, ListenerOfTheGroupWhoForgesTheAddressOfTheSwitchCanStillAlterAResult) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.has_group = true;
    Channel channel(config);
    channel.become_ready();
    channel.receive(result_for(config, ATP_WORKER_ALL, true), shard_address, true);
    EXPECT_EQ(channel.machine.group_results(), 1U);
    EXPECT_EQ(channel.machine.strays(), 0U);
}

TEST(ChannelMachine, OnlyTheSwitchThatItJoinedIsTrusted) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready(shard_address);
    Floats tensor(16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.drain();
    ASSERT_EQ(channel.gradients().size(), 1U);
    const std::vector<std::byte> ack = ack_of(channel.gradients()[0].bytes);
    channel.receive(ack, stranger);
    channel.receive(ack, switch_address);
    EXPECT_EQ(channel.kinds(), std::vector<Kind>{});
    EXPECT_EQ(channel.machine.strays(), 2U);
    channel.receive(ack, shard_address);
    EXPECT_EQ(channel.kinds(), std::vector{Kind::completed});
}

TEST(ChannelMachine, GradientsGoToTheSenderOfJoined) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready(shard_address);
    Floats tensor(3 * 16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.drain();
    ASSERT_EQ(channel.out.packets.size(), 3U);
    for (const Packet& packet : channel.out.packets) EXPECT_EQ(packet.to, shard_address);
}

TEST(ChannelMachine, ResultsByGroupAreCountedUntilACopyComes) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.has_group = true;
    Channel channel(config);
    channel.become_ready();
    channel.receive(result_for(config, ATP_WORKER_ALL, true), switch_address, true);
    EXPECT_TRUE(channel.machine.results_by_group());
    EXPECT_EQ(channel.machine.group_results(), 1U);
    channel.receive(result_for(config, 1));
    EXPECT_TRUE(channel.machine.results_by_group()) << "it came because this rank asked";
    channel.receive(result_for(config, ATP_WORKER_ALL));
    EXPECT_FALSE(channel.machine.results_by_group());
    channel.control(joined_by_group(config), switch_address, true);
    EXPECT_EQ(channel.machine.strays(), 0U);
    channel.pass(milliseconds(600));
    EXPECT_EQ(channel.kinds(), std::vector<Kind>{}) << "the group is received";
}

TEST(ChannelMachine, H108_WhatASwitchInThePathCopiesComesToTheOwnAddressOfARank) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.terms.group = {};
    Channel channel(config);
    channel.become_ready();
    channel.receive(result_for(config, ATP_WORKER_ALL, true), stranger);
    EXPECT_EQ(channel.machine.group_results(), 0U);
    channel.receive(result_for(config, ATP_WORKER_ALL, true), switch_address);
    EXPECT_TRUE(channel.machine.results_by_group());
    EXPECT_EQ(channel.machine.group_results(), 1U);
    channel.control(joined_by_group(config), switch_address);
    EXPECT_EQ(channel.machine.strays(), 1U);
    channel.pass(milliseconds(600));
    EXPECT_EQ(channel.kinds(), std::vector<Kind>{});
}

// In an all-gather, the only sender of each fragment gets ACKs of its own, without lanes.
TEST(ChannelMachine, ResultsForThisRankMakeItDistrustItsGroupButAcksWithoutLanesDoNot) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.has_group = true;
    Channel channel(config);
    channel.become_ready();
    const auto next_join_reports_group = [&] {
        channel.control(joined_by_group(config), switch_address, true);
        channel.out.packets.clear();
        channel.pass(control::refresh_of(control::timing.hold));
        EXPECT_GE(channel.count(wire::ControlType::join), 1U);
        const auto join = wire::decode<wire::Join>(channel.out.packets.at(0).bytes);
        return join && join->receives_group;
    };
    ASSERT_TRUE(next_join_reports_group());
    atp_header ack = testing::header_in(result_for(config, 1));
    ack.lanes = ATP_FLOAT32_LANES;
    for (const bool with_lanes : {false, true}) {
        const testing::Lanes lanes(with_lanes ? config.terms.lanes : 0);
        for (std::uint64_t i = 0; i <= control::GroupReception::most_results_asked_for; ++i) {
            channel.receive(testing::make_packet(ack, lanes));
        }
        EXPECT_EQ(next_join_reports_group(), !with_lanes);
    }
}

TEST(ChannelMachine, GroupThatABridgeForgotIsAnEventUntilItsSocketIsClosed) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.has_group = true;
    Channel channel(config);
    channel.become_ready();
    channel.pass(milliseconds(600), [&] { channel.control(joined(config, true)); });
    EXPECT_EQ(channel.kinds(), std::vector{Kind::group_forgotten});
    channel.machine.handle_group_lost();
    channel.events.clear();
    channel.pass(seconds(5), [&] { channel.control(joined(config, true)); });
    EXPECT_TRUE(channel.events.empty());
}

// ------------------------------------------------------------------------------------------------------- Signs of life

TEST(ChannelMachine, ForeignDataIsNoSignOfLifeOfTheSwitch) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    const Error error = error_after(config, [&](Channel& channel) {
        ChannelMachineConfig other = config;
        ++other.terms.token;
        for (int i = 0; i < 24; ++i) {
            channel.pass(milliseconds(500));
            channel.receive(result_for(other, ATP_WORKER_ALL));
            channel.receive(std::vector<std::byte>(3));
        }
    });
    EXPECT_EQ(error.reason, Reason::unreachable);
}

TEST(ChannelMachine, DataOfTheChannelIsASignOfLifeOfTheSwitch) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    Channel channel(config);
    channel.become_ready();
    Floats tensor(16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, never));
    for (int i = 0; i < 24; ++i) {
        channel.pass(milliseconds(500));
        channel.receive(result_for(config, 2));
    }
    EXPECT_TRUE(channel.events.empty());
}

// The longest JOINs are lost, and results come.
bool survives_lost_long_joins(std::uint16_t flags, std::uint16_t peer, std::size_t lanes) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.terms.lanes = 100;
    config.worker.channel = channel_config(config.terms);
    Channel channel(config);
    channel.become_ready();
    Floats tensor(1000);
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    atp_header ack = testing::header_in(result_for(config, ATP_WORKER_ALL));
    ack.flags = flags;
    ack.peer = peer;
    const std::vector<std::byte> result = testing::make_packet(ack, testing::Lanes(lanes));
    channel.pass(seconds(6), [&] {
        std::erase_if(channel.out.packets,
                      [](const Packet& packet) { return !wire::decode<wire::Join>(packet.bytes); });
        const bool is_long = !channel.out.packets.empty() &&
                             channel.out.packets.back().bytes.size() >= channel.machine.worker().packet_bytes();
        if (!is_long) channel.control(joined(config, true));
        channel.receive(result);
    });
    return std::ranges::count(channel.kinds(), Kind::failed) == 0;
}

TEST(ChannelMachine, OnlyAResultAsLongAsWhatThisRankSentProvesItsPath) {
    constexpr std::uint16_t other_rank = 2;
    constexpr std::uint16_t own_rank = 1;
    EXPECT_TRUE(survives_lost_long_joins(0, ATP_WORKER_ALL, 100));
    EXPECT_TRUE(survives_lost_long_joins(0, other_rank, 100));
    EXPECT_FALSE(survives_lost_long_joins(0, ATP_WORKER_ALL, 99)) << "a short packet";
    EXPECT_FALSE(survives_lost_long_joins(0, own_rank, 100)) << "of an owner that may have sent nothing";
    EXPECT_FALSE(survives_lost_long_joins(ATP_FLAG_ONE_SENDER, other_rank, 100)) << "the other rank sent it";
}

// --------------------------------------------------------------------------------------------- Submissions and events

TEST(ChannelMachine, RoomForOnePacketAtATimeSendsAll) {
    Floats tensor(6 * 16);
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready();
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.out.room = 1;
    channel.drain();
    EXPECT_EQ(channel.out.packets.size(), 6U);

    Channel other(config_of(two_racks(), 1));
    other.become_ready();
    ASSERT_TRUE(other.machine.submit(tensor, other.now, never));
    other.out.room = 1;
    const auto sent = other.machine.transmit(other.out, 4, other.now);
    EXPECT_EQ(sent.gradients, 1U);
    EXPECT_TRUE(sent.no_room);
    other.out.room = 100;
    EXPECT_EQ(other.machine.transmit(other.out, 4, other.now).gradients, 4U) << "at most as many as allowed";
}

TEST(ChannelMachine, MemberForWhichTheOthersWaitIsAnEventWithItsPace) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready();
    wire::Joined message = joined(channel.config, true);
    message.pace = {.share_percent = 90, .last_percent = 80, .unit = 0, .member = 2, .waited_permille = 400};
    channel.pass(seconds(6), [&] {
        message.epoch = joined(channel.config, true).epoch;
        channel.control(message);
    });
    ASSERT_EQ(channel.kinds(), std::vector{Kind::slow});
    EXPECT_EQ(channel.events[0].pace.member, 2U);
    EXPECT_EQ(channel.events[0].pace.waited_permille, 400U);
}

TEST(ChannelMachine, FullQueueTakesTensorsAgainAfterACompletion) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.worker.tensors = 2;
    Channel channel(config);
    channel.become_ready();
    Floats tensor(1);
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
    EXPECT_FALSE(channel.machine.submit(tensor, channel.now, never));
    channel.drain();
    channel.receive(ack_of(channel.gradients()[0].bytes));
    EXPECT_EQ(channel.kinds(), std::vector{Kind::completed});
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
}

TEST(ChannelMachine, FailureIsTheLastEvent) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready();
    Floats tensor(20 * 16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(2)));
    channel.pass(seconds(2));
    EXPECT_EQ(channel.kinds(), std::vector{Kind::failed});
    EXPECT_EQ(channel.count(wire::ControlType::leave), 1U);
    EXPECT_FALSE(channel.machine.submit(tensor, channel.now, never));
    const std::vector<std::byte> late = ack_of(channel.gradients()[0].bytes);
    channel.out.packets.clear();
    channel.receive(late);
    EXPECT_TRUE(channel.gradients().empty()) << "its window has room, but it sends no more";
    EXPECT_EQ(channel.error().reason, Reason::timed_out);
    EXPECT_EQ(channel.error().elapsed, seconds(2));
}

// A channel whose second tensor differs from that of other ranks.
void make_difference(Channel& channel, protocol::Tensor& tensor) {
    channel.become_ready();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.drain();
    ASSERT_EQ(channel.gradients().size(), 2U);
    channel.now += seconds(2);
    const std::vector<std::byte> answer = mismatch_at(channel.gradients()[1].bytes);
    channel.out.packets.clear();
    channel.receive(answer);
    EXPECT_EQ(channel.kinds(), std::vector{Kind::differs});
    EXPECT_EQ(channel.events.back().number, 1U);
    channel.machine.state("all_reduce of 30 float32", channel.now);
    channel.pass(milliseconds(0));
}

wire::Joined statements_of(const ChannelMachineConfig& config, std::uint16_t others) {
    wire::Joined message = joined(config, true);
    message.statements = {{.count = others, .unit = 0, .member = 0, .text = "all_reduce of 20 float32"},
                          {.count = 1, .unit = 0, .member = 1, .text = "all_reduce of 30 float32"}};
    return message;
}

TEST(ChannelMachine, DifferenceIsStatedAndEndsTheChannelWithTheStatementsOfAllRanks) {
    Channel channel(config_of(two_racks(), 1));
    Floats tensor(1);
    make_difference(channel, tensor);
    const auto join = wire::decode<wire::Join>(channel.out.packets.back().bytes);
    ASSERT_TRUE(join);
    ASSERT_EQ(join->statements.size(), 1U);
    EXPECT_EQ(join->statements[0].text, "all_reduce of 30 float32");
    EXPECT_FALSE(channel.machine.submit(tensor, channel.now, never));
    EXPECT_TRUE(channel.gradients().empty()) << "nothing more is sent";
    channel.control(statements_of(channel.config, 2));
    EXPECT_EQ(channel.kinds(), std::vector{Kind::differs}) << "one rank has not stated anything yet";
    channel.control(statements_of(channel.config, 3));
    EXPECT_EQ(channel.kinds(), (std::vector{Kind::differs, Kind::failed}));
    EXPECT_EQ(channel.count(wire::ControlType::leave), 1U);
    EXPECT_EQ(channel.error().reason, Reason::mismatched);
    EXPECT_EQ(channel.error().peer, "rank 1");
    EXPECT_EQ(channel.error().elapsed, seconds(2));
    EXPECT_THAT(channel.error().text,
                HasSubstr("rank 1 called all_reduce of 30 float32, the others all_reduce of 20 float32"));
}

TEST(ChannelMachine, DifferenceEndsTheChannelAfterHalfASecondIfNoRankStatesAnything) {
    Channel channel(config_of(two_racks(), 1));
    Floats tensor(1);
    make_difference(channel, tensor);
    channel.pass(control::timing.statements - milliseconds(1));
    EXPECT_EQ(channel.kinds(), std::vector{Kind::differs});
    channel.pass(milliseconds(1));
    EXPECT_EQ(channel.error().reason, Reason::mismatched);
    EXPECT_EQ(channel.error().peer, "");
    EXPECT_THAT(channel.error().text, HasSubstr("different operations"));
}

TEST(ChannelMachine, RefusalWhileTheRankWaitsForStatementsEndsTheWait) {
    Channel channel(config_of(two_racks(), 1));
    Floats tensor(1);
    make_difference(channel, tensor);
    channel.control(wire::Refused{.nonce = channel.config.nonce,
                                  .job = channel.config.terms.job,
                                  .token = channel.config.terms.token,
                                  .channel = channel.config.terms.channel,
                                  .reason = wire::Refusal::restarted,
                                  .text = "the switch restarted"});
    EXPECT_EQ(channel.kinds(), (std::vector{Kind::differs, Kind::failed}));
    EXPECT_EQ(channel.error().reason, Reason::mismatched) << "the first cause is reported";
}

// --------------------------------------------------------------------------------------------------------------- Close

TEST(ChannelMachine, ChannelWithoutAServerIsClosedAtOnceAndOnce) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready();
    channel.machine.close(channel.now);
    EXPECT_LE(channel.machine.poll_timeout(), channel.now);
    channel.drain();
    EXPECT_EQ(channel.kinds(), std::vector{Kind::closed});
    EXPECT_EQ(channel.count(wire::ControlType::leave), 0U) << "end() sends it";
    channel.machine.end();
    channel.drain();
    channel.pass(seconds(3));
    EXPECT_EQ(channel.kinds(), std::vector{Kind::closed});
    EXPECT_EQ(channel.count(wire::ControlType::leave), 1U);
}

TEST(ChannelMachine, FailedChannelIsClosedAfterItsThirdLeave) {
    for (const bool hosts : {false, true}) {
        Channel channel(hosts ? hosting() : config_of(one_rank(), 0));
        channel.become_ready();
        Floats tensor(16);
        ASSERT_TRUE(channel.machine.submit(tensor, channel.now, never));
        wire::Joined lost = joined(channel.config, false, 0x1, 0x2);
        lost.edges = {{.kind = wire::EdgeKind::member, .evidence = wire::Evidence::closed, .member = 1}};
        for (int i = 0; i < 20 && channel.events.empty(); ++i) {
            channel.control(lost);
            channel.pass(milliseconds(50));
        }
        ASSERT_EQ(channel.kinds(), std::vector{Kind::failed});
        channel.machine.close(channel.now);
        channel.pass(seconds(3), [&] {
            if (channel.kinds().back() == Kind::closed) {
                EXPECT_EQ(channel.count(wire::ControlType::leave), 3U);
            }
        });
        EXPECT_EQ(channel.kinds(), (std::vector{Kind::failed, Kind::closed})) << hosts;
        EXPECT_EQ(channel.count(wire::ControlType::leave), 3U);
    }
}

}  // namespace
}  // namespace atp::endpoint
