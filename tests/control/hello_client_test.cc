// SPDX-License-Identifier: Apache-2.0
#include "control/hello_client.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/byte_archive.h"
#include "support/control_messages.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::encoded;
using Kind = HelloAnswer::Kind;

constexpr std::uint64_t first_nonce = 0xFFFF'FFFF'FFFF'FFFE;  // wraps after two HELLOs
constexpr HelloSeries parent_series{.interval = milliseconds(50), .refresh = seconds(1)};

wire::Address address(unsigned number) { return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4790"); }

struct Client {
    explicit Client(const HelloClientConfig& config = {.peer = address(1), .first_nonce = first_nonce})
        : machine(config) {}

    // Sends the HELLOs that are due now. Returns their nonces.
    std::vector<std::uint64_t> due() {
        std::vector<std::uint64_t> nonces;
        std::vector<std::byte> buffer(machine.next_bytes());
        while (const auto size = machine.poll_transmit(buffer, now)) {
            lengths.push_back(*size);
            nonces.push_back(wire::decode<wire::Hello>(std::span(buffer).first(*size))->nonce);
            buffer.resize(machine.next_bytes());
        }
        return nonces;
    }
    std::optional<HelloAnswer> welcome(std::uint64_t nonce, const wire::Address& from = address(1)) {
        const wire::Welcome message{.nonce = nonce,
                                    .received_bytes = 64,
                                    .path = {{.id = 7, .aggregators = 100, .lanes = 62}, {.id = 8}},
                                    .software = "atp"};
        return machine.handle_message(encoded(message), from, now);
    }
    std::optional<HelloAnswer> refused(wire::Refusal reason, const wire::Address& from = address(1),
                                       std::uint64_t nonce = first_nonce) {
        return machine.handle_message(encoded(wire::Refused{.nonce = nonce, .reason = reason, .text = "no"}), from,
                                      now);
    }
    // Advances time and calls handle_timeout() and poll_transmit() whenever they are due.
    std::size_t pass(Duration duration) {
        const Time end = now + duration;
        std::size_t sent = 0;
        while (machine.poll_timeout() <= end) {
            now = std::max(now, machine.poll_timeout());
            machine.handle_timeout(now);
            sent += due().size();
        }
        now = end;
        return sent;
    }

    HelloClient machine;
    Time now{seconds(100)};
    std::vector<std::size_t> lengths;
};

TEST(HelloClient, AsksEvery50MsUntilTheSwitchAnswersThenEverySecond) {
    Client client;
    EXPECT_EQ(client.machine.poll_timeout(), never) << "no series of HELLOs has begun";
    client.machine.begin(parent_series, client.now);
    EXPECT_EQ(client.pass(milliseconds(175)), 4U);
    EXPECT_FALSE(client.machine.answers());
    EXPECT_TRUE(client.machine.path().empty());
    ASSERT_TRUE(client.welcome(first_nonce + 3));
    EXPECT_TRUE(client.machine.answers());
    EXPECT_EQ(client.pass(milliseconds(3100)), 4U) << "one HELLO was already due; three follow, one per second";
}

TEST(HelloClient, WelcomeGivesTheNumberOfItsHelloAndTheRoundTrip) {
    Client client;
    client.machine.begin({.interval = milliseconds(10), .refresh = milliseconds(10)}, client.now);
    EXPECT_EQ(client.due(), std::vector{first_nonce});
    client.now += milliseconds(10);
    EXPECT_EQ(client.due(), std::vector{first_nonce + 1});
    client.now += milliseconds(3);
    const auto second = client.welcome(first_nonce + 1);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->kind, Kind::welcome);
    EXPECT_EQ(second->number, 1U);
    EXPECT_EQ(second->round_trip, milliseconds(3));
    const auto first = client.welcome(first_nonce);
    ASSERT_TRUE(first) << "an answer may arrive after the next HELLO was sent";
    EXPECT_EQ(first->number, 0U);
    EXPECT_EQ(first->round_trip, milliseconds(13));
    ASSERT_EQ(client.machine.path().size(), 2U);
    EXPECT_EQ(client.machine.path()[0].aggregators, 100U);
    EXPECT_EQ(client.machine.path()[1].id, 8U);
}

TEST(HelloClient, AnswerToAHelloOfAnEarlierSeriesHasNoNumber) {
    Client client;
    client.machine.begin(parent_series, client.now);
    client.due();
    client.machine.begin(parent_series, client.now);
    client.due();
    const auto earlier = client.welcome(first_nonce);
    ASSERT_TRUE(earlier);
    EXPECT_FALSE(earlier->number);
    EXPECT_EQ(client.welcome(first_nonce + 1)->number, 0U);
}

TEST(HelloClient, WelcomeWithUnknownNonceOrFromOtherSenderIsNoAnswer) {
    Client client;
    client.machine.begin(parent_series, client.now);
    client.due();
    EXPECT_FALSE(client.welcome(first_nonce + 1)) << "no HELLO with this nonce was sent yet";
    EXPECT_FALSE(client.welcome(first_nonce - 1));
    EXPECT_FALSE(client.welcome(first_nonce, address(2)));
    EXPECT_FALSE(client.machine.handle_message({}, address(1), client.now));
    EXPECT_FALSE(client.machine.answers());

    Client any({.peer = address(1), .first_nonce = 5, .any_sender = true});
    any.machine.begin(parent_series, any.now);
    any.due();
    EXPECT_TRUE(any.welcome(5, address(2))) << "with any_sender, the nonce alone proves that the switch answers";
}

TEST(HelloClient, RefusalCountsOnlyFromThePeer) {
    Client client;
    client.machine.begin(parent_series, client.now);
    client.due();
    EXPECT_FALSE(client.refused(wire::Refusal::parent, address(2)));
    EXPECT_FALSE(client.refused(wire::Refusal::parent, address(1), first_nonce + 1)) << "of no HELLO that was sent";
    const auto parent = client.refused(wire::Refusal::parent);
    ASSERT_TRUE(parent);
    EXPECT_EQ(parent->kind, Kind::refused);
    EXPECT_FALSE(parent->is_foreign());
    EXPECT_EQ(parent->refusal->text, "no");
    const auto version = client.refused(wire::Refusal::version);
    ASSERT_TRUE(version);
    EXPECT_TRUE(version->is_foreign());
    EXPECT_FALSE(client.machine.answers()) << "a refusal has no path, so it does not count as an answer";
}

TEST(HelloClient, RefusalOfAnotherVersionNeedsNoText) {
    Client client;
    client.machine.begin(parent_series, client.now);
    client.due();
    std::vector<std::byte> bytes =
        encoded(wire::Refused{.nonce = first_nonce, .reason = wire::Refusal::version, .text = "no"});
    bytes[0] = std::byte{wire::control_version ^ 0x0F};
    bytes.resize(wire::control_prefix_bytes + sizeof(std::uint64_t));
    const auto answer = client.machine.handle_message(bytes, address(1), client.now);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->is_foreign());
    EXPECT_FALSE(answer->refusal);
    EXPECT_EQ(answer->version, wire::control_version ^ 0x0FU);
}

TEST(HelloClient, TruncatedRefusalOfThisVersionIsNoAnswer) {
    Client client;
    std::vector<std::byte> bytes =
        encoded(wire::Refused{.nonce = first_nonce, .reason = wire::Refusal::parent, .text = "no"});
    bytes.resize(wire::control_prefix_bytes + sizeof(std::uint64_t));
    EXPECT_FALSE(client.machine.handle_message(bytes, address(1), client.now));
}

TEST(HelloClient, PeerThatIsSilentForLongerThanTheHoldTimeCountsAsLost) {
    Client client;
    client.machine.begin(parent_series, client.now);
    client.due();
    ASSERT_TRUE(client.welcome(first_nonce));
    client.now += timing.parent_hold;
    client.machine.handle_timeout(client.now);
    EXPECT_TRUE(client.machine.answers());
    client.now += milliseconds(1);
    client.machine.handle_timeout(client.now);
    EXPECT_FALSE(client.machine.answers());
    EXPECT_TRUE(client.machine.path().empty());
    ASSERT_TRUE(client.welcome(first_nonce));
    EXPECT_TRUE(client.machine.answers()) << "the next WELCOME makes the peer answer again";
}

TEST(HelloClient, SeriesSendsGroupsOfHellosAndEndsAfterItsCount) {
    Client client;
    client.machine.begin({.first_bytes = 400,
                          .bytes = 300,
                          .count = 20,
                          .group = 8,
                          .interval = milliseconds(1),
                          .refresh = milliseconds(1)},
                         client.now);
    EXPECT_EQ(client.due().size(), 8U);
    EXPECT_TRUE(client.due().empty());
    client.now += milliseconds(5);
    EXPECT_EQ(client.due().size(), 8U) << "a late call sends one group, not the missed groups";
    EXPECT_EQ(client.pass(seconds(1)), 4U);
    EXPECT_EQ(client.machine.poll_timeout(), never);
    EXPECT_EQ(client.machine.sent(), 20U);
    EXPECT_EQ(client.lengths.front(), 400U);
    EXPECT_EQ(client.lengths[1], 300U);
}

TEST(HelloClient, HelloHasAtLeastItsMinimumLength) {
    Client client;
    client.machine.begin({.first_bytes = 1}, client.now);
    client.due();
    EXPECT_EQ(client.lengths, std::vector{wire::least_question_bytes});
    EXPECT_FALSE(client.machine.poll_transmit({}, client.now + seconds(1))) << "the buffer is empty";
}

TEST(HelloClient, RoundTripIsUnknownIf1024LaterHellosWereSent) {
    Client client;
    client.machine.begin({.count = 1025, .group = 1025}, client.now);
    EXPECT_EQ(client.due().size(), 1025U);
    client.now += milliseconds(1);
    const auto first = client.welcome(first_nonce);
    EXPECT_EQ(first->number, 0U);
    EXPECT_EQ(first->round_trip, Duration::zero());
    EXPECT_EQ(client.welcome(first_nonce + 1)->round_trip, milliseconds(1));
}

TEST(HelloClient, LoadedStateContinuesWhereTheSavedOneWas) {
    Client saved;
    saved.machine.begin({.bytes = 90, .count = 9, .group = 2, .interval = seconds(2), .refresh = seconds(3)},
                        saved.now);
    saved.due();
    saved.welcome(first_nonce + 1);
    Client loaded;
    ASSERT_TRUE(testing::copy_state(saved.machine, loaded.machine));
    EXPECT_TRUE(loaded.machine.answers());
    EXPECT_EQ(loaded.machine.path()[0].id, 7U);
    EXPECT_EQ(loaded.machine.sent(), 2U);
    for (int step = 0; step < 5; ++step) {
        saved.now = loaded.now = saved.machine.poll_timeout();
        ASSERT_EQ(loaded.machine.poll_timeout(), saved.now);
        saved.machine.handle_timeout(saved.now), loaded.machine.handle_timeout(loaded.now);
        EXPECT_EQ(loaded.due(), saved.due());
        EXPECT_EQ(loaded.lengths.back(), saved.lengths.back());
        if (saved.machine.poll_timeout() == never) break;
    }
    EXPECT_EQ(loaded.machine.poll_timeout(), never);
    EXPECT_EQ(loaded.welcome(first_nonce)->round_trip, saved.welcome(first_nonce)->round_trip);
}

}  // namespace
}  // namespace atp::control
