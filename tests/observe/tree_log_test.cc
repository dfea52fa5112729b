// SPDX-License-Identifier: Apache-2.0
#include "observe/tree_log.h"

#include <gtest/gtest.h>

#include <string>

namespace atp::observe {
namespace {

using control::TreeNotice;
using Kind = TreeNotice::Kind;

std::string line_of(TreeNotice notice) {
    std::string written;
    Log log({.level = Severity::debug, .receiver = [&](Severity, std::string_view line) { written = line; }});
    notice.job = 7;
    notice.channel = 3;
    write_notice(log, notice);
    return written;
}

const wire::Address sender = *wire::Address::parse("10.0.0.1:4791");

TEST(TreeLog, EachNoticeIsOneLineWithItsFields) {
    EXPECT_EQ(line_of({.kind = Kind::job_formed, .level = 1, .address = sender}),
              "job formed job=00000007 channel=3 level=1 address=10.0.0.1:4791");
    EXPECT_EQ(line_of({.kind = Kind::job_ready, .members = 4}), "job ready job=00000007 channel=3 members=4");
    EXPECT_EQ(line_of({.kind = Kind::job_left}), "job left job=00000007 channel=3");
    EXPECT_EQ(line_of({.kind = Kind::job_failed, .reason = "no memory"}),
              "job failed job=00000007 channel=3 reason=\"no memory\"");
    EXPECT_EQ(line_of({.kind = Kind::job_failed, .address = sender, .reason = "silent"}),
              "job failed job=00000007 channel=3 address=10.0.0.1:4791 reason=silent");
    EXPECT_EQ(line_of({.kind = Kind::job_refused, .address = sender, .reason = "full"}),
              "job refused job=00000007 channel=3 address=10.0.0.1:4791 reason=full");
    EXPECT_EQ(line_of({.kind = Kind::member_joined, .address = sender, .rank = 2}),
              "member joined job=00000007 channel=3 rank=2 address=10.0.0.1:4791");
    EXPECT_EQ(line_of({.kind = Kind::member_left, .address = sender, .rank = 0}),
              "member left job=00000007 channel=3 rank=0 address=10.0.0.1:4791");
    EXPECT_EQ(line_of({.kind = Kind::member_lost, .address = sender, .rank = 2, .reason = "silence"}),
              "member lost job=00000007 channel=3 rank=2 address=10.0.0.1:4791 reason=silence");
    EXPECT_EQ(line_of({.kind = Kind::member_joined, .address = sender, .unit = 1}),
              "leaf joined job=00000007 channel=3 unit=1 address=10.0.0.1:4791");
    EXPECT_EQ(line_of({.kind = Kind::member_left, .address = sender, .unit = 1}),
              "leaf left job=00000007 channel=3 unit=1 address=10.0.0.1:4791");
    EXPECT_EQ(line_of({.kind = Kind::member_lost, .address = sender, .unit = 1, .reason = "closed"}),
              "leaf lost job=00000007 channel=3 unit=1 address=10.0.0.1:4791 reason=closed");
    EXPECT_EQ(line_of({.kind = Kind::parent_ready, .address = sender}),
              "parent ready job=00000007 channel=3 address=10.0.0.1:4791");
    EXPECT_EQ(line_of({.kind = Kind::parent_lost, .address = sender, .reason = "closed"}),
              "parent lost job=00000007 channel=3 address=10.0.0.1:4791 reason=closed");
}

TEST(TreeLog, NameOfTheJobIsThereIfItHasOne) {
    EXPECT_EQ(line_of({.kind = Kind::job_formed, .address = sender, .job_name = "resnet-50"}),
              "job formed job=00000007 channel=3 level=0 address=10.0.0.1:4791 job_name=resnet-50");
}

TEST(TreeLog, JobsOfTenantsNameTenantAndKey) {
    EXPECT_EQ(line_of({.kind = Kind::job_formed, .address = sender, .tenant = "vision", .key = 9, .channels = 2}),
              "job formed job=00000007 channel=3 level=0 address=10.0.0.1:4791 tenant=vision key=9 channels=2");
    EXPECT_EQ(line_of({.kind = Kind::job_refused, .address = sender, .reason = "full", .tenant = "vision", .key = 9}),
              "job refused job=00000007 channel=3 address=10.0.0.1:4791 tenant=vision key=9 reason=full");
}

TEST(TreeLog, FloodOfOneTenantHidesNoLineOfAnother) {
    std::string last;
    Log log({.level = Severity::debug, .receiver = [&](Severity, std::string_view line) { last = line; }});
    const auto refuse = [&](const char* tenant) {
        last.clear();
        write_notice(log, {.kind = Kind::job_refused, .address = sender, .reason = "full", .tenant = tenant, .key = 9});
        return !last.empty();
    };
    int written = 0;
    for (int i = 0; i < 1000; ++i) written += refuse("greedy") ? 1 : 0;
    EXPECT_EQ(written, 100);
    EXPECT_TRUE(refuse("vision"));
}

}  // namespace
}  // namespace atp::observe
