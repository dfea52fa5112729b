// SPDX-License-Identifier: Apache-2.0
#include "wire/trace.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "support/packets.h"
#include "wire/control.h"

namespace atp::wire {
namespace {

constexpr Time at{std::chrono::nanoseconds(12'034'567)};
constexpr const char* gradient_line =
    "12034.567us s0>p0 sent marked GRADIENT job=00000001 token=0x5eed ch=2 seq=17 w=all set=0x4/0xf\n";

std::string line_of(std::string_view where, std::string_view what, std::string_view packet) {
    std::string text;
    append_trace_line(text, at, where, what, packet);
    return text;
}

TEST(Trace, WrittenLineReadsAsItsParts) {
    const std::string text =
        line_of("s0>p0", "sent marked", "GRADIENT job=00000001 token=0x5eed ch=2 seq=17 w=all set=0x4/0xf");
    EXPECT_EQ(text, gradient_line);
    const auto line = parse_trace_line(text);
    ASSERT_TRUE(line);
    EXPECT_DOUBLE_EQ(line->time_us, 12034.567);
    EXPECT_EQ(line->where, "s0>p0");
    EXPECT_EQ(line->what, "sent marked");
    EXPECT_EQ(line->type, "GRADIENT");
    EXPECT_EQ(line->job(), 1U);
    EXPECT_EQ(line->number("ch"), 2U);
    EXPECT_EQ(line->number("seq"), 17U);
    EXPECT_FALSE(line->number("w")) << "it is no number";
    EXPECT_FALSE(line->number("jo"));
    EXPECT_FALSE(line->number("lanes"));
}

TEST(Trace, NoteHasNoPacket) {
    const std::string text = line_of("s0", "restarts empty", {});
    EXPECT_EQ(text, "12034.567us s0 restarts empty\n");
    const auto line = parse_trace_line(text);
    ASSERT_TRUE(line);
    EXPECT_EQ(line->what, "restarts empty");
    EXPECT_EQ(line->type, "");
    EXPECT_FALSE(line->job());
}

TEST(Trace, OtherTextIsNoLine) {
    for (const char* text : {"", "\n", "12.0us", "12.0us s0", "12.0us s0 ", "12.0 s0 sent", "us s0 sent", "xus s0 sent",
                             "# Debugging", "1.2.3us s0 sent ACK"}) {
        EXPECT_FALSE(parse_trace_line(text)) << text;
    }
}

TEST(Trace, FilterAcceptsLinesThatMeetEachCondition) {
    const auto line = parse_trace_line(gradient_line);
    ASSERT_TRUE(line);
    EXPECT_TRUE(TraceFilter().accepts(*line));
    EXPECT_TRUE(
        (TraceFilter{.job = 1, .channel = 2, .seq = 17, .type = "GRADIENT", .what = "sent marked", .where = ">p"}
             .accepts(*line)));
    EXPECT_FALSE((TraceFilter{.job = 2}.accepts(*line)));
    EXPECT_FALSE((TraceFilter{.channel = 1}.accepts(*line)));
    EXPECT_FALSE((TraceFilter{.seq = 1}.accepts(*line)));
    EXPECT_FALSE((TraceFilter{.type = "ACK"}.accepts(*line)));
    EXPECT_FALSE((TraceFilter{.what = "sent"}.accepts(*line)));
    EXPECT_FALSE((TraceFilter{.where = "p1"}.accepts(*line)));
    const auto note = parse_trace_line("1.0us s0 restarts empty");
    ASSERT_TRUE(note);
    EXPECT_FALSE((TraceFilter{.job = 1}.accepts(*note)));
}

TEST(Trace, DescriptionOfAPacketIsThatOfItsHeader) {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 8;
    header.job = 1;
    header.token = 0x5eed;
    header.worker = 2;
    header.seq = 17;
    header.bitmap0 = 0x4;
    header.mask0 = 0xf;
    header.bitmap1 = 0x1;
    header.mask1 = 0x1;
    auto bytes = testing::make_packet(header, {1, 2, 3, 4});
    EXPECT_EQ(describe_datagram(bytes), to_string(header, 4));
    bytes.resize(10);
    EXPECT_EQ(describe_datagram(bytes), "UNDECODABLE reason=\"truncated\" bytes=10");
}

template <class Message>
std::string described(const Message& message) {
    std::array<std::byte, 2048> bytes{};
    return describe_datagram(std::span(bytes).first(encode(message, bytes)));
}

TEST(Trace, DescriptionOfAControlMessageNamesItsJob) {
    Join join;
    join.terms.job = 7, join.terms.token = 0x5eed, join.terms.channel = 3;
    join.terms.lanes = 62, join.terms.window_log2 = 4, join.terms.aggregators = 1024, join.terms.mask1 = 1;
    join.terms.scale = 1e8;
    join.units = {{.unit = 0, .members = 2, .mask0 = 3, .direct = false, .ranks = {1}}};
    EXPECT_EQ(described(join), "JOIN job=00000007 token=0x5eed ch=3 hop=0 lanes=62 unit=0:0x2/0x3");
    EXPECT_EQ(described(Joined{.job = 7, .token = 0x5eed, .channel = 3, .ready = true}),
              "JOINED job=00000007 token=0x5eed ch=3 ready missing=0x0,0x0");
    EXPECT_EQ(described(Refused{.job = 7, .token = 0x5eed, .channel = 3, .reason = Refusal::full, .text = "full"}),
              "REFUSED job=00000007 token=0x5eed ch=3 reason=full");
    EXPECT_EQ(described(Leave{.job = 7, .token = 0x5eed, .channel = 3, .unit = 1, .member = 2}),
              "LEAVE job=00000007 token=0x5eed ch=3 unit=1 member=2");
    EXPECT_TRUE(described(Stats{.nonce = 1}).starts_with("STATS bytes="));
}

}  // namespace
}  // namespace atp::wire
