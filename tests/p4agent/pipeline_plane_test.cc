// SPDX-License-Identifier: Apache-2.0
#include "p4agent/pipeline_plane.h"

#include <gtest/gtest.h>

#include "fake_thrift.h"

namespace atp::p4agent {
namespace {

constexpr control::AdmittedJob job{.job = 0x01020304, .token = 0x1122334455667788, .level = 1};

std::string program(std::uint32_t lanes = 62) {
    return R"({"register_arrays": [{"name": "AtpIngress.aggregator_seq", "size": 4096},)"
           R"({"name": "AtpIngress.held_lanes", "size": )" +
           std::to_string(4096 * lanes) + R"(}], "counter_arrays": [{"name": "AtpIngress.events", "size": )" +
           std::to_string(ATP_EVENT_COUNT * 3) + "}]}";
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
    const auto plane = PipelinePlane::open(server.address());
    ASSERT_FALSE(plane);
    EXPECT_EQ(plane.error().reason, Reason::unsupported);
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
    (*plane)->learn_group(job.key(), 0xABCD);
    (*plane)->learn_group(job.key(), 0xABCD);
    EXPECT_EQ(server.calls("standard:bm_mt_add_entry").size(), 2U);
    (*plane)->set_level(job.key(), ATP_LEVELS);
    (*plane)->set_level(job.key(), ATP_LEVELS);
    EXPECT_EQ(server.calls("standard:bm_mt_modify_entry").size(), 2U) << "the job's and the group's";
}

TEST_F(PipelinePlaneTest, APipelineThatStopsIsNoticed) {
    const auto plane = PipelinePlane::open(server.address());
    server.close_connections();
    EXPECT_FALSE((*plane)->admit(job));
    EXPECT_TRUE((*plane)->failed());
    EXPECT_TRUE((*plane)->jobs().empty());
}

}  // namespace
}  // namespace atp::p4agent
