// SPDX-License-Identifier: Apache-2.0
#include "p4agent/pipeline_plane.h"

#include <gtest/gtest.h>

#include <string>

#include "fake_thrift.h"
#include "protocol/pipeline_cells.h"
#include "support/fails.h"

namespace atp::p4agent {
namespace {

using namespace std::string_literals;

constexpr control::AdmittedJob job{.job = 0x01020304, .token = 0x1122334455667788, .level = 1};

std::string program(std::uint32_t lanes = 62) {
    return R"({"register_arrays": [{"name": "AtpIngress.aggregator_seq", "size": 4096},)"
           R"({"name": "AtpIngress.held_lanes", "size": )" +
           std::to_string(4096 * lanes) + R"(}], "counter_arrays": [{"name": "AtpIngress.events", "size": )" +
           std::to_string(ATP_EVENT_COUNT * 3) + "}]}";
}

std::string pipeline_program() {
    return R"({"register_arrays": [{"name": "AtpIngress.one_pass.tag", "size": 4}],)"
           R"("header_stacks": [{"name": "lanes", "size": 62}],)"
           R"("counter_arrays": [{"name": "AtpIngress.events", "size": )" +
           std::to_string(ATP_EVENT_COUNT * 200) + "}]}";
}

class PipelinePlaneTest : public testing::Test {
  protected:
    PipelinePlaneTest() {
        server.answer("standard:bm_get_config", reply_text(program()));
        server.answer("standard:bm_dev_mgr_show_ports", reply_ports({"a", "b"}));
        server.answer("simple_pre_lag:bm_mc_mgrp_create", reply_number32(5));
        server.answer("simple_pre_lag:bm_mc_node_create", reply_number32(6));
        server.answer("standard:bm_mt_add_entry", reply_number64(42));
        server.answer("standard:bm_counter_read", reply_counter(3));
    }
    [[nodiscard]] bool last_call_has(const std::string& function, const std::string& bytes) const {
        const auto calls = server.calls(function);
        return !calls.empty() && calls.back().find(bytes) != std::string::npos;
    }

    FakeThrift server;
};

TEST_F(PipelinePlaneTest, ReportsPacketsThatTheSwitchDidNotServe) {
    const auto plane = PipelinePlane::open(server.address());
    EXPECT_EQ((*plane)->packets().forged, 3U);
    EXPECT_EQ((*plane)->packets().no_room, 3U);
}

TEST_F(PipelinePlaneTest, OpenReadsTheProgramAndPreparesTheSwitch) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE(plane);
    EXPECT_EQ((*plane)->program().aggregators, 4096U);
    EXPECT_EQ((*plane)->program().lanes, 62U);
    EXPECT_EQ((*plane)->program().jobs, 2U);
    EXPECT_EQ((*plane)->interfaces(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(server.calls("standard:bm_mt_clear_entries").size(), 1U) << "jobs of an earlier agent";
    EXPECT_TRUE(last_call_has("simple_switch:mirroring_session_add", std::string("\0\0\0\x40", 4)));
    EXPECT_TRUE(last_call_has("simple_pre_lag:bm_mc_node_create", "0011")) << "ports 0 and 1 as bits";
}

TEST_F(PipelinePlaneTest, AnotherProgramIsRefused) {
    server.answer("standard:bm_get_config", reply_text("{}"));
    EXPECT_TRUE(fails(PipelinePlane::open(server.address()), {.reason = Reason::unsupported}));
}

TEST_F(PipelinePlaneTest, AGroupOfAnEarlierAgentStays) {
    server.answer("simple_pre_lag:bm_mc_mgrp_create", reply_exception());
    EXPECT_TRUE(PipelinePlane::open(server.address()));
    EXPECT_TRUE(server.calls("simple_pre_lag:bm_mc_node_create").empty());
}

TEST_F(PipelinePlaneTest, AdmitsAndDismissesAJob) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE((*plane)->admit(job));
    EXPECT_TRUE(last_call_has("standard:bm_mt_add_entry", "\x11\x22\x33\x44\x55\x66\x77\x88"));
    EXPECT_EQ((*plane)->jobs(), std::vector{job});
    EXPECT_EQ((*plane)->packets_of(job.key())->events[ATP_EVENT_COMPLETED], 3U);
    (*plane)->dismiss(job.key());
    EXPECT_TRUE(last_call_has("standard:bm_mt_delete_entry", std::string("\0\0\0\0\0\0\0\x2a", 8)));
    EXPECT_TRUE((*plane)->jobs().empty());
    EXPECT_FALSE((*plane)->packets_of(job.key()));
}

TEST_F(PipelinePlaneTest, ThereAreAsManyJobsAsCounters) {
    const auto plane = PipelinePlane::open(server.address());
    EXPECT_TRUE((*plane)->admit({.job = 1, .token = 1, .level = 0}));
    EXPECT_TRUE((*plane)->admit({.job = 2, .token = 1, .level = 0}));
    EXPECT_FALSE((*plane)->admit({.job = 3, .token = 1, .level = 0}));
    (*plane)->dismiss({1, 1});
    EXPECT_TRUE((*plane)->admit({.job = 3, .token = 1, .level = 0}));
}

TEST_F(PipelinePlaneTest, AGroupAndALevelChangeEntries) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE((*plane)->admit(job));
    (*plane)->learn_group({job.job, job.token, 0}, 0xABCD);
    (*plane)->learn_group({job.job, job.token, 0}, 0xABCD);
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 2U);
    (*plane)->set_level(job.key(), ATP_LEVELS);
    (*plane)->set_level(job.key(), ATP_LEVELS);
    EXPECT_EQ(server.calls("standard:bm_mt_modify_entry").size(), 2U) << "the job's and the group's";
    (*plane)->learn_group({job.job, job.token, 0}, 0xABCE);
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 3U);
    EXPECT_EQ(server.calls("standard:bm_mt_delete_entry").size(), 1U) << "of the earlier number";
    (*plane)->dismiss(job.key());
    EXPECT_EQ(server.calls("standard:bm_mt_delete_entry").size(), 3U);
}

TEST_F(PipelinePlaneTest, APipelineThatStopsIsNoticed) {
    const auto plane = PipelinePlane::open(server.address());
    server.close_connections();
    EXPECT_FALSE((*plane)->admit(job));
    EXPECT_TRUE((*plane)->failed());
    EXPECT_TRUE((*plane)->jobs().empty());
}

// ----------------------------------------------------------------------------- A program with the passes of a pipeline

class PassesTest : public PipelinePlaneTest {
  protected:
    PassesTest() { server.answer("standard:bm_get_config", reply_text(pipeline_program())); }
};

TEST_F(PassesTest, OpenReadsTheProgramAndFreesAllAggregators) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE(plane);
    EXPECT_EQ((*plane)->program().kind, PipelineProgram::Kind::passes);
    EXPECT_EQ((*plane)->program().aggregators, 4U);
    EXPECT_EQ((*plane)->program().lanes, 62U);
    EXPECT_EQ(server.calls("standard:bm_mt_clear_entries").size(), 2U) << "streams and places";
    EXPECT_TRUE(last_call_has("standard:bm_register_reset", "one_pass.tag"));
}

TEST_F(PassesTest, AChannelGetsAStreamAndEachPlaceANumber) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE((*plane)->admit({.job = 7, .token = 8, .level = 0}));
    EXPECT_TRUE(server.calls("standard:bm_mt_add_entry").empty()) << "no channel is known";
    const control::JobKey key{7, 8};
    (*plane)->learn_place(key, {.channel = 0x0102, .unit = 4, .mask = 0x30});
    const auto entries = server.calls("standard:bm_mt_add_entry");
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_NE(entries[0].find("AtpIngress.streams"), std::string::npos);
    EXPECT_NE(entries[0].find("\x01\x02"), std::string::npos) << "the channel is a key";
    EXPECT_NE(entries[1].find("AtpIngress.places"), std::string::npos);
    EXPECT_NE(entries[1].find("\0\0\0\x04"s), std::string::npos) << "the unit is a key";
    EXPECT_NE(entries[1].find("\0\0\0\x30"s), std::string::npos) << "the mask is an argument";
    (*plane)->learn_place(key, {.channel = 0x0102, .unit = 4, .mask = 0x70});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 2U) << "the first mask of a place holds";
    (*plane)->learn_place(key, {.channel = 0x0102, .unit = 8, .mask = 0x70});
    (*plane)->learn_place(key, {.channel = 0x0103, .unit = 4, .mask = 0x30});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 5U) << "a place, then a stream and its place";
    (*plane)->learn_place({9, 9}, {.channel = 0, .unit = 1, .mask = 1});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 5U) << "that job is not admitted";
    (*plane)->dismiss(key);
    EXPECT_EQ(server.calls("standard:bm_mt_delete_entry").size(), 5U);
}

TEST_F(PassesTest, AGroupHasAnEntryOfItsOwn) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE((*plane)->admit({.job = 7, .token = 8, .level = 0}));
    (*plane)->learn_group({7, 8, 2}, 0xABCD);
    EXPECT_TRUE(server.calls("standard:bm_mt_add_entry").empty()) << "the channel has no stream yet";
    (*plane)->learn_place({7, 8}, {.channel = 2, .unit = 1, .mask = 3});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 3U) << "stream, group and place";
    (*plane)->learn_group({7, 8, 2}, 0xABCD);
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 3U);
    (*plane)->learn_group({7, 8, 2}, 0xABCE);
    EXPECT_TRUE(last_call_has("standard:bm_mt_add_entry", "\xAB\xCE"));
    EXPECT_EQ(server.calls("standard:bm_mt_delete_entry").size(), 1U) << "of the earlier group";
}

TEST_F(PassesTest, AJobThatIsForwardedUnaggregatedHasNoPlaces) {
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_TRUE((*plane)->admit({.job = 7, .token = 8, .level = 1}));
    (*plane)->learn_place({7, 8}, {.channel = 0, .unit = 0, .mask = 3});
    (*plane)->set_level({7, 8}, ATP_LEVELS);
    EXPECT_EQ(server.calls("standard:bm_mt_delete_entry").size(), 1U);
    (*plane)->learn_place({7, 8}, {.channel = 0, .unit = 0, .mask = 3});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 2U);
    (*plane)->set_level({7, 8}, 1);
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 3U);
}

// H36: a job of another incarnation never finds what an earlier one has added.
TEST_F(PassesTest, AStreamIsGivenAgainWithoutAggregators) {
    constexpr std::int64_t of_stream_1 = 0x80000000 | 1 << 23 | 5;
    constexpr std::int64_t leaving_of_stream_1 = 0xC0000000 | 1 << 23 | 6;
    constexpr std::int64_t of_stream_2 = 0x80000000 | 2 << 23 | 5;
    constexpr std::int64_t free_of_stream_1 = 1 << 23;
    server.answer("standard:bm_register_read_all",
                  reply_list64({of_stream_1, of_stream_2, free_of_stream_1, leaving_of_stream_1}));
    const auto plane = PipelinePlane::open(server.address());
    for (std::uint32_t number = 1; number <= ATP_TAG_STREAMS; ++number) {
        ASSERT_TRUE((*plane)->admit({.job = number, .token = 8, .level = 0}));
        (*plane)->learn_place({number, 8}, {.channel = 0, .unit = 1, .mask = 3});
    }
    EXPECT_TRUE(server.calls("standard:bm_register_read_all").empty()) << "no job had these streams before";
    ASSERT_TRUE((*plane)->admit({.job = 500, .token = 8, .level = 0}));
    (*plane)->learn_place({500, 8}, {.channel = 0, .unit = 1, .mask = 3});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 2 * ATP_TAG_STREAMS) << "no stream is free";
    (*plane)->dismiss({1, 8});
    (*plane)->learn_place({500, 8}, {.channel = 0, .unit = 1, .mask = 3});
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 2 * ATP_TAG_STREAMS + 2);
    const auto written = server.calls("standard:bm_register_write");
    ASSERT_EQ(written.size(), 2U) << "index 0 and 3";
    EXPECT_NE(written[1].find("\0\0\0\x03"s), std::string::npos);
}

}  // namespace
}  // namespace atp::p4agent
