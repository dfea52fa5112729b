// SPDX-License-Identifier: Apache-2.0
// A SwitchML switch without sockets: the test carries its datagrams.
#include "switchml/switch_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/recording_outbox.h"
#include "switchml/packet.h"

namespace atp::switchml {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Bytes = std::vector<std::byte>;
using Packets = std::vector<testing::RecordingOutbox::Packet>;

constexpr std::uint16_t lanes = 4;
constexpr Time start{std::chrono::seconds(100)};

wire::Address worker(unsigned rank) { return *wire::Address::parse("10.0.0." + std::to_string(100 + rank) + ":4791"); }

nlohmann::json stream_of(const std::string& name) {
    return {{"stream", name},
            {"workers", {to_string(worker(0)), to_string(worker(1))}},
            {"slots_log2", 2},
            {"lanes", lanes},
            {"mode", 2}};
}

// A switch, and the text of its last answer.
struct Node {
    explicit Node(const SwitchConfig& config) : endpoint(config) {}

    Packets take(Bytes bytes, const wire::Address& from, Time now = start) {
        const wire::Datagram datagram{.bytes = bytes, .capacity = bytes.size(), .from = &from};
        endpoint.handle_batch({&datagram, 1}, outbox, now);
        return outbox.flush();
    }
    nlohmann::json ask(const nlohmann::json& message, Time now = start) {
        const std::string text = message.dump();
        Bytes bytes(text.size());
        std::ranges::transform(text, bytes.begin(), [](char letter) { return static_cast<std::byte>(letter); });
        const Packets sent = take(bytes, worker(0), now);
        if (sent.size() != 1) return {};
        EXPECT_EQ(sent[0].to, worker(0));
        return nlohmann::json::parse(
            std::string(reinterpret_cast<const char*>(sent[0].bytes.data()), sent[0].bytes.size()));
    }
    // Returns the number of the stream.
    std::uint8_t open(const std::string& name, Time now = start) {
        const auto answer = ask(stream_of(name), now);
        EXPECT_FALSE(answer.contains("refused")) << answer;
        return answer.value("number", std::uint8_t{0});
    }
    std::string refusal(const nlohmann::json& message) { return ask(message).value("refused", ""); }
    [[nodiscard]] nlohmann::json report() const { return nlohmann::json::parse(endpoint.report())["switchml"]; }

    SwitchEndpoint endpoint;
    testing::RecordingOutbox outbox;
};

// The first fragment of a stream; all lanes are the worker's number plus one.
Bytes update(std::uint8_t stream, std::uint8_t rank) {
    Bytes bytes(header_bytes + lanes * int32_lane_bytes);
    encode_header({.flags = 0, .job = stream, .worker = rank, .slot = 0, .offset = 0}, bytes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        wire::store_u32(bytes.data() + header_bytes + lane * int32_lane_bytes, rank + 1U);
    }
    return bytes;
}

TEST(SwitchEndpoint, SumIsSentToAllWorkers) {
    Node node({.slots = 16, .lanes = lanes});
    const std::uint8_t stream = node.open("a");
    EXPECT_EQ(node.open("a"), stream) << "a repeated message opens no second one";
    EXPECT_THAT(node.take(update(stream, 0), worker(0)), IsEmpty());
    const Packets sent = node.take(update(stream, 1), worker(1));
    ASSERT_THAT(sent, SizeIs(2));
    for (unsigned rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(sent[rank].to, worker(rank));
        EXPECT_EQ(wire::load_u32(sent[rank].bytes.data() + header_bytes), 3U);
    }
    const Packets again = node.take(update(stream, 0), worker(0));
    ASSERT_THAT(again, SizeIs(1)) << "only the worker that asks";
    EXPECT_EQ(again[0].to, worker(0));
    EXPECT_EQ(node.report()["streams"][0]["packets"]["completed"], 1);
    EXPECT_EQ(node.report()["free_slots"], 12);
}

TEST(SwitchEndpoint, PacketFromAnotherAddressThanItsWorkerIsDroppedAndCounted) {
    Node node({.slots = 16, .lanes = lanes});
    const std::uint8_t stream = node.open("a");
    EXPECT_THAT(node.take(update(stream, 0), worker(1)), IsEmpty()) << "another worker";
    EXPECT_THAT(node.take(update(stream, 0), worker(9)), IsEmpty()) << "the address of no worker";
    EXPECT_THAT(node.take(update(stream, 40), worker(0)), IsEmpty()) << "a number that no worker has";
    EXPECT_EQ(node.report()["packets"]["strangers"], 3);
    EXPECT_EQ(node.report()["packets"]["gathered"], 0);

    EXPECT_THAT(node.take(update(static_cast<std::uint8_t>(stream + 1), 0), worker(0)), IsEmpty());
    EXPECT_EQ(node.report()["packets"]["forged"], 1) << "of no stream";
    EXPECT_THAT(node.take(Bytes(3, std::byte{format_byte}), worker(0)), IsEmpty());
    EXPECT_EQ(node.report()["refused"]["truncated"], 1);
}

TEST(SwitchEndpoint, TextThatIsNoMessageIsIgnored) {
    Node node({.slots = 16, .lanes = lanes});
    EXPECT_THAT(node.take(Bytes(3, std::byte{'{'}), worker(0)), IsEmpty());
    for (const char* text :
         {"{}", R"({"stream":7})", R"({"stream":"a","workers":[1]})", R"({"stream":"a","lanes":"x"})"}) {
        EXPECT_EQ(node.ask(nlohmann::json::parse(text)), nlohmann::json()) << text;
    }
    EXPECT_THAT(node.report()["streams"], IsEmpty());
}

TEST(SwitchEndpoint, StreamWithoutFreeSlotsIsRefusedUntilAnotherEnds) {
    Node node({.slots = 6, .lanes = lanes});
    node.open("a");
    EXPECT_THAT(node.refusal(stream_of("b")), HasSubstr("2 of 6 slots are free"));
    node.ask({{"stream", "a"}});
    EXPECT_THAT(node.report()["streams"], IsEmpty());
    node.open("b");
}

TEST(SwitchEndpoint, IdleStreamGivesItsSlotsToOneThatFindsNone) {
    Node node({.slots = 6, .lanes = lanes});
    node.open("a");
    node.open("b", start + std::chrono::seconds(31));
    EXPECT_THAT(node.report()["streams"], SizeIs(1));
}

TEST(SwitchEndpoint, StreamsThatDoNotFitASlotAreRefused) {
    Node short_slots({.slots = 16, .lanes = lanes - 1});
    EXPECT_THAT(short_slots.refusal(stream_of("a")), HasSubstr("--lanes"));
    Node no_memory({.slots = 0, .lanes = lanes});
    EXPECT_THAT(no_memory.refusal(stream_of("a")), HasSubstr("--memory"));
    EXPECT_THAT(no_memory.report()["streams"], IsEmpty());
}

TEST(SwitchEndpoint, StreamNumbersRotateWithoutRepetition) {
    Node node({.slots = 4096, .lanes = lanes});
    for (std::uint8_t round = 0; round < 3; ++round) {
        EXPECT_EQ(node.open("a"), round) << "not the one that was freed just now";
        node.ask({{"stream", "a"}});
    }
    std::array<bool, 256> given{};
    for (unsigned stream = 0; stream < 256; ++stream) given[node.open(std::to_string(stream))] = true;
    EXPECT_THAT(given, ::testing::Each(true));
    EXPECT_THAT(node.refusal(stream_of("one more")), HasSubstr("256"));
}

}  // namespace
}  // namespace atp::switchml
