// SPDX-License-Identifier: Apache-2.0
// The server that a rank hosts in its channel.
#include "channel_fixture.h"

namespace atp::endpoint {
namespace {

// The switch between a rank and the server that the rank hosts: forwards each packet.
void forward(Channel& channel, unsigned most_rounds = 1000) {
    for (unsigned round = 0; round < most_rounds && !channel.out.packets.empty(); ++round) {
        const Packet packet = std::move(channel.out.packets.front());
        channel.out.packets.pop_front();
        if (wire::control_type(packet.bytes)) continue;
        EXPECT_EQ(packet.to, switch_address);
        EXPECT_EQ(packet.ecn, wire::Ecn::capable_0);
        channel.receive(packet.bytes);
    }
}

TEST(HostedServer, CompletesATensorWithTheWorker) {
    Channel channel(hosting());
    channel.become_ready();
    channel.control(join_of_last_switch(channel.config));
    ASSERT_EQ(channel.count(wire::ControlType::joined), 1U);
    const auto answer = wire::decode<wire::Joined>(channel.out.packets.back().bytes);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->ready);
    EXPECT_EQ(answer->token, channel.config.terms.token);
    channel.out.packets.clear();

    Floats tensor(100);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.now += milliseconds(1);
    channel.drain();
    EXPECT_FALSE(channel.out.packets.empty());
    forward(channel);
    EXPECT_EQ(channel.kinds(), std::vector{Kind::completed});
    ASSERT_EQ(tensor.stored.size(), 100U);
    for (const auto& [at, value] : tensor.stored) EXPECT_EQ(value, at + 1);
    EXPECT_GE(channel.machine.server_counters().completed, 1U);
    EXPECT_EQ(channel.machine.worker().counters().acks, 7U);
    EXPECT_EQ(channel.machine.strays(), 0U);
}

TEST(HostedServer, AnswersAfterTheChannelEnded) {
    Channel channel(hosting());
    channel.become_ready();
    channel.control(join_of_last_switch(channel.config));
    Floats tensor(16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.out.packets.clear();
    channel.drain();
    const Packet gradient = channel.out.packets.back();
    channel.machine.end();
    channel.machine.end();
    channel.drain();
    EXPECT_EQ(channel.count(wire::ControlType::leave), 1U);
    EXPECT_EQ(channel.machine.poll_timeout(), never);
    EXPECT_FALSE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.out.packets.clear();
    channel.receive(gradient.bytes);
    ASSERT_EQ(channel.out.packets.size(), 1U) << "another rank may miss this result";
    channel.receive(channel.out.packets[0].bytes);
    channel.machine.handle_timeout(channel.now + seconds(30));
    EXPECT_TRUE(tensor.stored.empty()) << "the tensor may be freed";
    EXPECT_TRUE(channel.events.empty());
}

TEST(HostedServer, ResultsWaitForTheSwitch) {
    Channel channel(hosting());
    channel.become_ready();
    Floats tensor(16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.drain();
    const Packet gradient = channel.out.packets.back();
    channel.out.packets.clear();
    channel.receive(gradient.bytes);
    EXPECT_TRUE(channel.out.packets.empty()) << "no JOIN has come from the last switch";
}

TEST(HostedServer, TakesPacketsOnlyFromTheSwitchThatJoined) {
    Channel channel(hosting());
    channel.become_ready();
    channel.control(join_of_last_switch(channel.config));
    Floats tensor(16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.drain();
    const Packet gradient = channel.out.packets.back();
    channel.out.packets.clear();
    channel.receive(gradient.bytes, stranger);
    EXPECT_TRUE(channel.out.packets.empty());
    EXPECT_EQ(channel.machine.strays(), 1U);
    channel.receive(gradient.bytes);
    EXPECT_EQ(channel.out.packets.size(), 1U);
}

TEST(HostedServer, JoinWithOtherTermsGetsNoAnswer) {
    Channel channel(hosting());
    channel.become_ready();
    wire::Join join = join_of_last_switch(channel.config);
    ++join.terms.token;
    channel.control(join);
    join = join_of_last_switch(channel.config);
    join.level = 0;
    channel.control(join);
    EXPECT_EQ(channel.count(wire::ControlType::joined), 0U);
    EXPECT_EQ(channel.machine.strays(), 2U);
}

TEST(HostedServer, SwitchWithoutTheCookieIsAskedForItAndGetsNoResult) {
    Channel channel(hosting());
    channel.become_ready();
    const auto join = testing::encoded(join_of_last_switch(channel.config), wire::least_question_bytes);
    channel.receive(join);
    EXPECT_EQ(channel.count(wire::ControlType::joined), 0U);
    ASSERT_EQ(channel.count(wire::ControlType::retry), 1U);
    EXPECT_LE(channel.out.packets.back().bytes.size(), join.size());
    Floats tensor(16);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.drain();
    const Packet gradient = channel.out.packets.back();
    channel.out.packets.clear();
    channel.receive(gradient.bytes);
    EXPECT_TRUE(channel.out.packets.empty());
    channel.receive(testing::encoded(join_of_last_switch(channel.config)));
    EXPECT_TRUE(channel.out.packets.empty()) << "an answer would be longer than this JOIN";
    EXPECT_EQ(channel.machine.strays(), 2U);
}

TEST(HostedServer, MessagesWithoutRoomWaitForTheNextCall) {
    Channel channel(hosting());
    channel.out.room = 0;
    channel.machine.handle_timeout(channel.now);
    const wire::Address from = switch_address;
    wire::Join message = join_of_last_switch(channel.config);
    message.cookie =
        control::Gatekeeper(channel.config.secret).cookie_of(control::Gatekeeper::Question::join, from, channel.now);
    auto join = testing::encoded(message, wire::least_question_bytes);
    channel.machine.handle_datagram({.bytes = join, .capacity = join.size(), .from = &from}, channel.now);
    channel.machine.transmit_control(channel.out);
    EXPECT_TRUE(channel.out.packets.empty());
    channel.out.room = 10;
    channel.machine.transmit_control(channel.out);
    EXPECT_EQ(channel.count(wire::ControlType::join), 1U);
    EXPECT_EQ(channel.count(wire::ControlType::joined), 1U);
    EXPECT_EQ(channel.machine.member_counters().joins, 1U);
    for (const Packet& packet : channel.out.packets) EXPECT_EQ(packet.ecn, wire::Ecn::not_capable);
}

TEST(HostedServer, ResultsWithoutRoomWaitForTheNextCall) {
    Channel channel(hosting());
    channel.become_ready();
    channel.control(join_of_last_switch(channel.config));
    Floats tensor(48);
    ASSERT_TRUE(channel.machine.submit(tensor, channel.now, channel.now + seconds(60)));
    channel.out.packets.clear();
    channel.drain();
    channel.out.room = 1;
    forward(channel);
    EXPECT_EQ(channel.kinds(), std::vector{Kind::completed});
}

// A packet of another rank to the server here, which misses its last result.
void ask_server(Channel& channel) {
    channel.out.packets.clear();
    atp_header probe{};
    probe.version = ATP_VERSION;
    probe.type = ATP_TYPE_PROBE;
    probe.job = channel.config.terms.job;
    probe.token = channel.config.terms.token;
    probe.channel = channel.config.terms.channel;
    channel.receive(testing::make_packet(probe));
}

TEST(HostedServer, Stays300MsAfterItsLastPacket) {
    Channel channel(hosting());
    channel.become_ready();
    channel.control(join_of_last_switch(channel.config));
    channel.events.clear();
    ask_server(channel);
    channel.pass(milliseconds(100));
    channel.machine.close(channel.now);
    channel.pass(milliseconds(150));
    ask_server(channel);
    channel.machine.close(channel.now);
    channel.pass(milliseconds(299));
    EXPECT_TRUE(channel.kinds().empty());
    channel.pass(milliseconds(1));
    EXPECT_EQ(channel.kinds(), std::vector{Kind::closed});
}

TEST(HostedServer, IsClosedAtOnceIfItReceivedNothing) {
    Channel channel(hosting());
    channel.become_ready();
    channel.machine.close(channel.now);
    channel.drain();
    EXPECT_EQ(channel.kinds(), std::vector{Kind::closed});
}

TEST(HostedServer, Stays2SecondsIfItIsAskedAllTheTime) {
    Channel channel(hosting());
    channel.become_ready();
    channel.control(join_of_last_switch(channel.config));
    channel.events.clear();
    ask_server(channel);
    const Time begin = channel.now;
    channel.machine.close(begin);
    for (int ask = 0; ask < 100 && channel.events.empty(); ++ask) {
        ask_server(channel);
        channel.pass(milliseconds(100));
    }
    EXPECT_EQ(channel.kinds(), std::vector{Kind::closed});
    EXPECT_EQ(channel.now - begin, seconds(2));
}

}  // namespace
}  // namespace atp::endpoint
