// SPDX-License-Identifier: Apache-2.0
#include "control/persist_messages.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "control/branch.h"
#include "support/byte_archive.h"
#include "support/control_messages.h"

namespace atp::control {
namespace {

template <class Message>
wire::JoiningMessage restored(const Message& sent) {
    wire::JoiningMessage message = sent;
    testing::ByteWriter writer;
    persist_message(message, writer);
    wire::JoiningMessage copy;
    testing::ByteReader reader(writer.state);
    persist_message(copy, reader);
    EXPECT_TRUE(reader.at_end());
    return copy;
}

template <class Message>
void expect_restored(const Message& sent) {
    const wire::JoiningMessage copy = restored(sent);
    ASSERT_TRUE(std::holds_alternative<Message>(copy));
    EXPECT_EQ(testing::encoded(std::get<Message>(copy)), testing::encoded(sent));
}

const std::vector<wire::Edge> edges = {{.kind = wire::EdgeKind::parent,
                                        .evidence = wire::Evidence::too_long,
                                        .unit = 3,
                                        .member = 2,
                                        .silent_ms = 0x010203,
                                        .detail = 1400,
                                        .at = endpoint_of(*wire::Address::parse("10.0.0.9:4791"))}};

TEST(PersistMessages, EachKindOfMessageIsRestoredWithAllItsFields) {
    wire::Join join = testing::join_of_worker();
    join.edges = edges;
    join.statements = {{.count = 3, .unit = 1, .member = 2, .text = "all_reduce of 20 float32"}};
    expect_restored(join);
    wire::Joined joined{.nonce = 1, .job = 2, .token = 3, .channel = 4, .epoch = 5, .group_number = 6, .ready = true};
    joined.edges = edges;
    expect_restored(joined);
    expect_restored(wire::Refused{
        .nonce = 1, .job = 2, .token = 3, .channel = 4, .reason = wire::Refusal::full, .text = "the table is full"});
    expect_restored(wire::Leave{
        .nonce = 1, .job = 2, .token = 3, .channel = 4, .epoch = 5, .unit = 6, .member = 7, .edges = edges});
    expect_restored(wire::Retry{.nonce = 1, .job = 2, .token = 3, .channel = 4, .cookie = 5});
}

std::optional<wire::Edge> restored_into(std::optional<wire::Edge> known, std::optional<wire::Edge> sent) {
    testing::ByteWriter writer;
    persist_edge(sent, writer);
    testing::ByteReader reader(writer.state);
    persist_edge(known, reader);
    EXPECT_TRUE(reader.at_end());
    return known;
}

TEST(PersistMessages, RestoredEdgeReplacesTheKnownOne) {
    const wire::Edge known{.kind = wire::EdgeKind::member, .unit = 1};
    EXPECT_EQ(restored_into(known, edges[0])->detail, 1400U);
    EXPECT_EQ(restored_into(std::nullopt, edges[0])->kind, wire::EdgeKind::parent);
    EXPECT_FALSE(restored_into(known, std::nullopt));
}

}  // namespace
}  // namespace atp::control
