// SPDX-License-Identifier: Apache-2.0
#include "endpoint/channel_text.h"

#include "channel_fixture.h"

namespace atp::endpoint {
namespace {

TEST(ChannelText, WaitingNamesRanksOrTheServer) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    Channel channel(config);
    channel.pass(milliseconds(0));
    channel.control(joined(config, false, 0x1, 0x5));
    ASSERT_EQ(channel.kinds(), std::vector{Kind::waiting});
    const auto text_of = [&](const ChannelMachineConfig& of) {
        return waiting_text(std::get<control::MemberCause>(channel.events.back().cause), of);
    };
    EXPECT_EQ(text_of(config), "ranks 0, 2 did not join");
    channel.control(joined(config, false, 0x2));
    EXPECT_EQ(text_of(config), "rank 3 did not join");
    channel.control(joined(config, false));
    EXPECT_EQ(text_of(config), "the switches did not reach the parameter server");
    config.terms.server = {.family = 4, .port = 99, .host = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{7}}};
    EXPECT_EQ(text_of(config), "the switches did not reach the parameter server at 10.0.0.7:99");
}

TEST(ChannelText, SlowJoinNamesTheSwitchAndWhatIsMissing) {
    const ChannelMachineConfig config = config_of(two_racks(), 1);
    const Error silent = error_of_slow_join("", seconds(3), config);
    EXPECT_EQ(silent.reason, Reason::timed_out);
    EXPECT_EQ(silent.operation, Operation::join);
    EXPECT_EQ(silent.peer, to_string(switch_address));
    EXPECT_EQ(silent.elapsed, seconds(3));
    EXPECT_THAT(silent.text, HasSubstr("atp doctor"));
    EXPECT_EQ(error_of_slow_join("rank 3 did not join", seconds(3), config).text, "rank 3 did not join");
}

TEST(ChannelText, OperationsOfAnEndedChannelHaveItsErrorWithTheirOwnNameAndTime) {
    const Error first{.operation = Operation::wait,
                      .reason = Reason::unreachable,
                      .peer = "rank 3",
                      .elapsed = seconds(9),
                      .text = "rank 3 is silent"};
    const Error in_flight = error_of_part(first, Operation::broadcast, seconds(2));
    EXPECT_EQ(in_flight.operation, Operation::broadcast);
    EXPECT_EQ(in_flight.reason, Reason::unreachable);
    EXPECT_EQ(in_flight.peer, "rank 3");
    EXPECT_EQ(in_flight.elapsed, seconds(2));
    EXPECT_EQ(in_flight.text, first.text);
    EXPECT_EQ(error_of_part(first, Operation::barrier, -seconds(1)).elapsed, seconds(0)) << "submitted meanwhile";
    const Error later = error_after_end(first, Operation::push);
    EXPECT_EQ(later.operation, Operation::push);
    EXPECT_EQ(later.reason, Reason::closed);
    EXPECT_EQ(later.peer, "rank 3");
    EXPECT_EQ(later.elapsed, seconds(0));
    EXPECT_EQ(later.text, "an earlier error closed this communicator; form a new one. First error: rank 3 is silent");
}

TEST(ChannelText, ListOfRanksNamesEachRankOnce) {
    const ChannelMachineConfig config = config_of(two_racks(), 1);
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x1, 0x2)), "rank 1");
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x1, 0)), "ranks 0, 1, 2");
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x3, 0)), "ranks 0, 1, 2, 3");
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x8, 0)), "") << "no such unit";
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0, 0x1)), "");
}

// docs/spec/hazards.md#h46
TEST(ChannelText, H46_WorkerThatStandsForSeveralRanksIsNamedByAllOfThem) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.ranks_of_workers = {{0, 1}, {2, 3}, {4, 5, 6}, {7}};
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x1, 0x2)), "ranks 2, 3");
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x1, 0x4)), "ranks 4, 5, 6");
    EXPECT_EQ(list_of_ranks(ranks_in(config, 0x2, 0)), "rank 7");
}

TEST(ChannelText, SlowRankIsNamedWithItsShareAndTheTimeOfTheOthers) {
    const ChannelMachineConfig config = config_of(two_racks(), 1);
    EXPECT_EQ(
        slow_text({.share_percent = 99, .last_percent = 97, .unit = 0, .member = 2, .waited_permille = 416}, config),
        "the others wait 42 % of the time for rank 2, which is the last in 97 % of the fragments: check its load "
        "and its link");
    EXPECT_THAT(slow_text({.share_percent = 80, .unit = 0, .whole_unit = true, .waited_permille = 300}, config),
                HasSubstr("wait 30 % of the time for the switch of ranks 0, 1, 2, which"));
}

TEST(ChannelText, DifferentCallNamesTheOtherRankIfOnlyOneCalledSomethingElse) {
    OperationCause cause{.event = {.kind = protocol::WorkerEvent::Kind::mismatched},
                         .statements = {{.count = 1, .unit = 0, .member = 0, .text = "barrier as call 3"},
                                        {.count = 1, .unit = 0, .member = 1, .text = "broadcast as call 3"}}};
    const std::string advice = ": make all ranks call the same sequence with equal types and sizes";
    ChannelMachineConfig config = config_of(two_racks(), 1);
    EXPECT_EQ(error_of(cause, config).text, "rank 1 called broadcast as call 3, rank 0 barrier as call 3" + advice);
    config.ranks_of_workers = {{0, 4}, {1, 5}, {2}, {3}};
    EXPECT_EQ(error_of(cause, config).text,
              "ranks 1, 5 called broadcast as call 3, ranks 0, 4 barrier as call 3" + advice);
    cause.statements.front().count = 3;
    EXPECT_EQ(error_of(cause, config).ranks, (std::vector<std::uint32_t>{1, 5}));
    EXPECT_EQ(error_of(cause, config).text,
              "ranks 1, 5 called broadcast as call 3, the others barrier as call 3" + advice);
}

// `silent`: for which nothing came from the switch, nor from the server.
Error error_of_event(const protocol::WorkerEvent& event, Duration silent = {}) {
    const OperationCause cause{.event = event,
                               .server_silent = silent,
                               .switch_silent = silent,
                               .switch_is_silent = silent > milliseconds(3000)};
    return error_of(cause, config_of(two_racks(), 1));
}

TEST(ChannelText, TimeoutNamesTheMissingRanksWhileTheSwitchAnswers) {
    const protocol::WorkerEvent late{.kind = protocol::WorkerEvent::Kind::timed_out,
                                     .elapsed = seconds(4),
                                     .missing_units = 1,
                                     .missing_members = 4};
    Error error = error_of_event(late, milliseconds(500));
    EXPECT_EQ(error.reason, Reason::timed_out);
    EXPECT_EQ(error.peer, "rank 2");
    EXPECT_EQ(error.elapsed, seconds(4));
    EXPECT_THAT(error.text, HasSubstr("no data of this operation"));
    error = error_of_event(late, seconds(4));
    EXPECT_EQ(error.peer, to_string(switch_address));
    EXPECT_THAT(
        error.text,
        HasSubstr("nothing was received from the parameter server at all, and nothing from the switch for 4.0 s"));
}

TEST(ChannelText, TimeoutWithoutMissingRanksNamesTheSilenceOrTheTimeout) {
    const protocol::WorkerEvent silent{.kind = protocol::WorkerEvent::Kind::timed_out, .answered = true};
    EXPECT_THAT(error_of_event(silent, milliseconds(2500)).text,
                HasSubstr("nothing was received from the parameter server for 2.5 s"));
    EXPECT_THAT(error_of_event(silent, milliseconds(500)).text,
                HasSubstr("timed out although the parameter server answers: raise the timeout"));
}

TEST(ChannelText, RefusalRepeatsTheTextOfTheSwitch) {
    const auto error_of_refused = [](wire::Refusal reason, std::string text) {
        Channel channel(config_of(two_racks(), 1));
        channel.pass(milliseconds(0));
        channel.control(wire::Refused{.nonce = channel.config.nonce,
                                      .job = channel.config.terms.job,
                                      .token = channel.config.terms.token,
                                      .channel = channel.config.terms.channel,
                                      .reason = reason,
                                      .text = std::move(text)});
        return channel.error();
    };
    Error error = error_of_refused(wire::Refusal::full, "the table of jobs is full (8)");
    EXPECT_EQ(error.operation, Operation::join);
    EXPECT_EQ(error.reason, Reason::rejected);
    EXPECT_EQ(error.peer, to_string(switch_address));
    EXPECT_EQ(error.text, "the table of jobs is full (8)");
    EXPECT_THAT(error_of_refused(wire::Refusal::full, "").text, HasSubstr("\"full\""));
    error = error_of_refused(wire::Refusal::version, "");
    EXPECT_EQ(error.reason, Reason::version_mismatch);
    EXPECT_THAT(error.text, HasSubstr("it speaks version 5"));
    EXPECT_EQ(error_of_refused(wire::Refusal::version, "update it").text, "update it");
}

TEST(ChannelText, LostRanksAndALostServerAreNamed) {
    for (const bool server : {false, true}) {
        Channel channel(config_of(two_racks(), 1));
        channel.become_ready();
        Floats tensor(1);
        ASSERT_TRUE(channel.machine.submit(tensor, channel.now, never));
        const wire::Joined lost = joined(channel.config, false, server ? 0 : 0x2);
        channel.control(lost);
        channel.pass(seconds(4), [&] { channel.control(lost); });
        const Error error = channel.error();
        EXPECT_EQ(error.reason, Reason::failed);
        EXPECT_GT(error.elapsed, seconds(3));
        EXPECT_EQ(error.peer, server ? to_string(switch_address) : "rank 3");
        EXPECT_EQ(error.ranks, server ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{3});
        EXPECT_EQ(error.place(), server ? to_string(switch_address) : "");
        EXPECT_THAT(error.text, HasSubstr(server ? "the parameter server stopped responding" : "rank 3 left the job"));
    }
}

// The switch lost this rank's tree and restarted: it counts its JOINEDs from 1 again. `members`: missing ones of
// unit 1.
Error error_of_restart(std::uint32_t members) {
    Channel channel(config_of(two_racks(), 1));
    channel.become_ready();
    for (int i = 0; i < 5; ++i) channel.control(joined(channel.config, true));
    Floats tensor(1);
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.pass(milliseconds(300));
    channel.restart_switch();
    const wire::Joined lost = joined(channel.config, false, 0x2, members);
    channel.control(lost);
    channel.pass(seconds(4), [&] { channel.control(lost); });
    return channel.error();
}

TEST(ChannelText, RestartedSwitchIsNamedWithTheRanksThatDidNotReturn) {
    const Error error = error_of_restart(0x1);
    EXPECT_EQ(error.operation, Operation::wait);
    EXPECT_EQ(error.reason, Reason::failed);
    EXPECT_EQ(error.peer, to_string(switch_address));
    EXPECT_GT(error.elapsed, seconds(3));
    EXPECT_EQ(error.text, "the switch at 10.0.0.1:4790 restarted, and rank 3 did not join again: form the job again");
}

TEST(ChannelText, RestartedSwitchThatNamesAnUnknownMemberLeavesNoGapInTheText) {
    EXPECT_EQ(error_of_restart(0x2).text,
              "the switch at 10.0.0.1:4790 restarted, and a rank did not join again: form the job again");
}

TEST(ChannelText, H77_SilentSwitchIsNamedWhateverTheTimeoutOfTheOperation) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    const auto wait = [](Channel& channel) { channel.pass(seconds(12)); };
    Error error = error_after(config, wait);
    EXPECT_EQ(error.reason, Reason::unreachable);
    EXPECT_EQ(error.peer, "10.0.0.1:4790");
    EXPECT_THAT(error.text, HasSubstr("no answer from the switch at 10.0.0.1:4790 for 3.0 s"));
    EXPECT_THAT(error.text, HasSubstr("atp doctor --switch 10.0.0.1:4790"));
    config.switch_rank = 0;
    error = error_after(config, wait);
    EXPECT_EQ(error.peer, "rank 0 (switch at 10.0.0.1:4790)");
    EXPECT_THAT(error.text, HasSubstr("in the process of rank 0 for 3.0 s"));
}

void report_closed_port(Channel& channel) {
    for (int i = 0; i < 12; ++i) {
        wire::SendError error{
            .kind = wire::SendError::Kind::port_unreachable, .to = switch_address, .by_network = true};
        const auto quoted = testing::encoded(join_of_last_switch(channel.config));
        error.quoted_bytes = error.quoted.size();
        std::copy_n(quoted.begin(), error.quoted_bytes, error.quoted.begin());
        channel.machine.handle_send_error(error, channel.now);
        channel.drain();
        channel.pass(milliseconds(50));
    }
}

TEST(ChannelText, EndedSwitchIsNamedWithTheRankThatRunsIt) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    Error error = error_after(config, report_closed_port);
    EXPECT_EQ(error.reason, Reason::refused);
    EXPECT_EQ(error.peer, "10.0.0.1:4790");
    EXPECT_THAT(error.text, HasSubstr("the process of the switch at 10.0.0.1:4790 ended"));
    config.switch_rank = 0;
    error = error_after(config, report_closed_port);
    EXPECT_EQ(error.peer, "rank 0 (switch at 10.0.0.1:4790)");
    EXPECT_THAT(error.text, HasSubstr("rank 0's process exited and took the switch at"));
}

// The error of a busy rank 1 whose switch names this edge. `server_rank`: runs the parameter server.
Error error_of_edge(const wire::Edge& edge, std::optional<std::uint16_t> server_rank = std::nullopt) {
    ChannelMachineConfig config = config_of(two_racks(), 1);
    config.server_rank = server_rank;
    return error_after(config, [&](Channel& channel) {
        wire::Joined lost = joined(channel.config, false, 0x1);
        lost.edges = {edge};
        channel.control(lost);
        channel.pass(milliseconds(800), [&] { channel.control(lost); });
    });
}

TEST(ChannelText, FailedEdgeNamesItsRankOrSwitchAndNoOther) {
    using wire::EdgeKind;
    using wire::Evidence;
    const wire::Endpoint at{
        .family = 4, .port = 4790, .host = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{2}}};
    const struct {
        wire::Edge edge;
        Reason reason;
        std::string peer;
        std::string text;
    } rows[] = {
        {{EdgeKind::member, Evidence::closed, 1, 0}, Reason::refused, "rank 3", "the process of rank 3 ended"},
        {{EdgeKind::member, Evidence::left, 0, 2}, Reason::failed, "rank 2", "rank 2 left the job"},
        {{EdgeKind::member, Evidence::silence, 0, 2, 3100},
         Reason::unreachable,
         "rank 2",
         "the switch at 10.0.0.1:4790 received nothing from rank 2 for 3.1 s"},
        {{EdgeKind::member, Evidence::one_direction, 1, 0, 3000},
         Reason::unreachable,
         "rank 3",
         "rank 3 received nothing from its switch for 3.0 s"},
        {{EdgeKind::leaf, Evidence::silence, 1, 0, 3000, 0, at},
         Reason::unreachable,
         "10.0.0.2:4790",
         "its parent received nothing from the switch at 10.0.0.2:4790 for 3.0 s"},
        {{EdgeKind::leaf, Evidence::one_direction, 1, 0, 3000, 0, at},
         Reason::unreachable,
         "10.0.0.2:4790",
         "the switch at 10.0.0.2:4790 received nothing from its parent for 3.0 s"},
        {{EdgeKind::leaf, Evidence::too_long, 1, 0, 3000, 0, at},
         Reason::too_large,
         "10.0.0.2:4790",
         "long packets are lost on the path between the switch at 10.0.0.2:4790 and its parent"},
        {{EdgeKind::parent, Evidence::too_long, 0, 0, 3000, 0, at},
         Reason::too_large,
         "10.0.0.2:4790",
         "long packets are lost on the path between the switch at 10.0.0.1:4790 and its parent at 10.0.0.2:4790"},
        {{EdgeKind::server, Evidence::too_long, 0, 0, 3000, 0, at},
         Reason::too_large,
         "10.0.0.2:4790",
         "long packets are lost on the path between the last switch and the parameter server at 10.0.0.2:4790"},
        {{EdgeKind::leaf, Evidence::paused, 1, 0, 3200, 0, at},
         Reason::unreachable,
         "10.0.0.2:4790",
         "the process of the switch at 10.0.0.2:4790 did not run for 3.2 s"},
        {{EdgeKind::leaf, Evidence::closed, 1, 0, 500, 0, at},
         Reason::refused,
         "10.0.0.2:4790",
         "the process of the switch at 10.0.0.2:4790 ended"},
        {{EdgeKind::leaf, Evidence::left, 1, 0, 0, 0, at},
         Reason::failed,
         "10.0.0.2:4790",
         "the switch at 10.0.0.2:4790 left the job"},
        {{EdgeKind::parent, Evidence::silence, 0, 0, 3000, 0, at},
         Reason::unreachable,
         "10.0.0.2:4790",
         "the switch at 10.0.0.1:4790 received nothing from its parent at 10.0.0.2:4790 for 3.0 s"},
        {{EdgeKind::server, Evidence::silence, 0, 0, 3000, 0, at},
         Reason::unreachable,
         "10.0.0.2:4790",
         "the last switch received nothing from the parameter server at 10.0.0.2:4790 for 3.0 s"},
        {{EdgeKind::path_mtu, Evidence::too_long, 0, 2, 400, 1000},
         Reason::too_large,
         "rank 2",
         "path MTU of rank 2 to the switch at 10.0.0.1:4790 is 1000 bytes"},
        {{EdgeKind::path_mtu, Evidence::too_long, 1, 0, 400},
         Reason::too_large,
         "rank 3",
         "path MTU of rank 3 to its switch is too small"},
    };
    for (const auto& row : rows) {
        const Error error = error_of_edge(row.edge);
        EXPECT_THAT(error.text, HasSubstr(row.text));
        EXPECT_EQ(error.reason, row.reason) << row.text;
        EXPECT_EQ(error.peer, row.peer) << row.text;
    }
}

TEST(ChannelText, ServerOfARankIsNamedAsThisRank) {
    Error error = error_of_edge({.kind = wire::EdgeKind::server, .evidence = wire::Evidence::closed}, 2);
    EXPECT_EQ(error.peer, "rank 2");
    EXPECT_EQ(error.reason, Reason::refused);
    EXPECT_THAT(error.text, HasSubstr("rank 2's process exited and took the parameter server at "));
    error = error_of_edge({.kind = wire::EdgeKind::server, .silent_ms = 3000}, 2);
    EXPECT_EQ(error.peer, "rank 2");
    EXPECT_THAT(error.text, HasSubstr("the last switch received nothing from the parameter server of rank 2"));
}

TEST(ChannelText, NarrowPathIsNamedWithItsMtuAndThePacketsOfTheJob) {
    const ChannelMachineConfig config = config_of(two_racks(), 1);
    const auto report = [](std::uint32_t bytes, std::uint32_t mtu) {
        return [=](Channel& channel) {
            for (int i = 0; i < 7; ++i) {
                channel.machine.handle_send_error(
                    {.kind = wire::SendError::Kind::too_long, .to = switch_address, .bytes = bytes, .mtu = mtu},
                    channel.now);
                channel.drain();
                channel.pass(milliseconds(100));
            }
        };
    };
    Error error = error_after(config, report(1472, 1400));
    EXPECT_EQ(error.reason, Reason::too_large);
    EXPECT_THAT(error.text, HasSubstr("path MTU of rank 1 to the switch at 10.0.0.1:4790 is 1400 bytes, the packets of "
                                      "this job have 1500"));
    error = error_after(config, report(0, 0));
    EXPECT_THAT(error.text, HasSubstr("path MTU of rank 1"));
}

}  // namespace
}  // namespace atp::endpoint
