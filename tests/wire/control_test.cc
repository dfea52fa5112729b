// SPDX-License-Identifier: Apache-2.0
// The parts that all control messages have: type, version and length. messages_test.cc and query_messages_test.cc
// test the fields.
#include "wire/control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "support/control_messages.h"
#include "support/random.h"
#include "wire/packet.h"

namespace atp::wire {
namespace {

using testing::encoded;
using testing::Random;
using Bytes = std::vector<std::byte>;

const Welcome some_welcome{.nonce = 0x1122334455667788,
                           .received_bytes = 1500,
                           .path = {{.id = 1, .aggregators = 2, .lanes = 3},
                                    {.id = std::numeric_limits<std::uint64_t>::max(), .aggregators = 5, .lanes = 6}},
                           .software = "atp 0.1.0"};

bool decodes(std::span<const std::byte> bytes, ControlType type) {
    switch (type) {
        case ControlType::join: return decode<Join>(bytes).has_value();
        case ControlType::joined: return decode<Joined>(bytes).has_value();
        case ControlType::refused: return decode<Refused>(bytes).has_value();
        case ControlType::leave: return decode<Leave>(bytes).has_value();
        case ControlType::hello: return decode<Hello>(bytes).has_value();
        case ControlType::welcome: return decode<Welcome>(bytes).has_value();
        case ControlType::stats: return decode<Stats>(bytes).has_value();
        case ControlType::report: return decode<Report>(bytes).has_value();
        case ControlType::retry: return decode<Retry>(bytes).has_value();
    }
    return false;
}

constexpr std::array all_types = {ControlType::join,  ControlType::joined, ControlType::refused,
                                  ControlType::leave, ControlType::hello,  ControlType::welcome,
                                  ControlType::stats, ControlType::report, ControlType::retry};

std::vector<Bytes> one_of_each() {
    return {encoded(testing::join_of_worker()),
            encoded(Joined{.job = 1, .token = 2, .channel = 3, .ready = true}),
            encoded(Refused{.job = 1, .token = 2, .channel = 3, .reason = Refusal::full, .text = "no room"}),
            encoded(Leave{.job = 1, .token = 2, .channel = 3, .unit = 4, .member = 5}),
            encoded(Hello{.nonce = 1}),
            encoded(some_welcome),
            encoded(Stats{.nonce = 1, .snapshot = 2, .part = 3}),
            encoded(Report{.nonce = 1, .snapshot = 2, .part = 3, .parts = 4, .text = "{}"}),
            encoded(Retry{.nonce = 1, .job = 2, .token = 3, .channel = 4, .cookie = 5})};
}

TEST(Control, PaddingChangesNoField) {
    const Bytes hello = encoded(Hello{.nonce = 5}, std::size_t{9000});
    ASSERT_EQ(hello.size(), 9000U);
    EXPECT_EQ(decode<Hello>(hello)->nonce, 5U);
    EXPECT_EQ(hello.back(), std::byte{0});
    const Bytes welcome = encoded(some_welcome, std::size_t{9000});
    ASSERT_EQ(welcome.size(), 9000U);
    EXPECT_EQ(decode<Welcome>(welcome)->path, some_welcome.path);
    EXPECT_GT(encoded(some_welcome, std::size_t{10}).size(), 10U)
        << "a message is not truncated if the padding length is shorter";
}

TEST(Control, TooSmallBufferIsNotWritten) {
    for (const Bytes& whole : one_of_each()) {
        Bytes small(whole.size() - 1);
        const ControlType type = *control_type(whole);
        std::size_t written = 1;
        if (type == ControlType::join) written = encode(testing::join_of_worker(), small);
        if (type == ControlType::joined) written = encode(Joined{.job = 1}, small);
        if (type == ControlType::refused) {
            written =
                encode(Refused{.job = 1, .token = 2, .channel = 3, .reason = Refusal::full, .text = "no room"}, small);
        }
        if (type == ControlType::leave) written = encode(Leave{.job = 1}, small);
        if (type == ControlType::hello) written = encode(Hello{.nonce = 1}, small);
        if (type == ControlType::welcome) written = encode(some_welcome, small);
        if (type == ControlType::stats) written = encode(Stats{.nonce = 1}, small);
        if (type == ControlType::retry) written = encode(Retry{.nonce = 1, .cookie = 5}, small);
        if (type == ControlType::report) {
            written = encode(Report{.nonce = 1, .snapshot = 2, .part = 3, .parts = 4, .text = "{}"}, small);
        }
        EXPECT_EQ(written, 0U) << to_string(type);
        EXPECT_EQ(encode(Joined{.job = 1}, {}), 0U);
    }
}

TEST(Control, EveryTruncationIsRefusedThatNoEarlierProgramSends) {
    for (const Bytes& whole : one_of_each()) {
        const ControlType type = *control_type(whole);
        ASSERT_TRUE(decodes(whole, type));
        for (std::size_t size = 0; size < whole.size(); ++size) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
            // A JOIN of an earlier program ends in front of the name of the job, here of the length of an empty one.
            const bool earlier = type == ControlType::join && size == whole.size() - sizeof(std::uint16_t);
            EXPECT_EQ(decodes(cut, type), earlier) << to_string(type) << " of " << size << " bytes";
        }
    }
}

TEST(Control, MessageDecodesAsItsOwnTypeOnly) {
    for (const Bytes& whole : one_of_each()) {
        for (const ControlType type : all_types) EXPECT_EQ(decodes(whole, type), type == *control_type(whole));
    }
}

TEST(Control, RandomBytesNeverCrash) {
    Random random(11);
    const std::vector<Bytes> good = one_of_each();
    unsigned accepted = 0;
    for (int round = 0; round < 50'000; ++round) {
        Bytes bytes(random.below(200));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
        if (random.chance(0.7)) bytes = good[random.below(static_cast<std::uint32_t>(good.size()))];
        for (std::uint32_t change = random.below(4); change > 0 && !bytes.empty(); --change) {
            bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<std::byte>(random.bits());
        }
        for (const ControlType type : all_types) accepted += decodes(bytes, type) ? 1U : 0U;
    }
    EXPECT_GT(accepted, 1000U) << "some messages are valid in spite of random changes";
}

TEST(Control, ControlTypesDifferFromPacketTypes) {
    for (unsigned type = 0; type < 256; ++type) {
        const Bytes bytes{std::byte{control_version}, static_cast<std::byte>(type), std::byte{0}, std::byte{0}};
        EXPECT_EQ(control_type(bytes).has_value(), type >= 16 && type <= 24) << type;
        if (const auto known = control_type(bytes)) {
            EXPECT_NE(to_string(*known), "unknown");
        }
    }
    EXPECT_EQ(to_string(static_cast<ControlType>(25)), "unknown");
    EXPECT_FALSE(control_type(Bytes(3, std::byte{control_version})).has_value());
}

TEST(Control, PacketsAndMessagesShareAVersionAndDifferByTheirTypes) {
    static_assert(control_version == ATP_VERSION);
    for (const Bytes& whole : one_of_each()) {
        Bytes padded = whole;
        padded.resize(std::max(whole.size(), std::size_t{ATP_HEADER_BYTES}) / 4 * 4);
        Packet packet;
        EXPECT_EQ(decode(padded, packet), DecodeError::type);
        EXPECT_FALSE(goes_up(load_u8(padded.data() + ATP_OFFSET_TYPE)));
        for (std::uint8_t type = ATP_TYPE_GRADIENT; type <= ATP_TYPE_LAST; ++type) {
            padded[ATP_OFFSET_TYPE] = std::byte{type};
            EXPECT_FALSE(control_type(padded) || foreign_version(padded) || refusal_version(padded));
        }
    }
}

TEST(Control, JoinOrHelloOfAnotherVersionIsAnswered) {
    for (const Bytes& whole : one_of_each()) {
        const ControlType type = *control_type(whole);
        Bytes other = whole;
        other[0] = std::byte{control_version + 1};
        EXPECT_FALSE(decodes(other, type));
        EXPECT_FALSE(control_type(other).has_value());
        const bool asks = type == ControlType::join || type == ControlType::hello;
        EXPECT_EQ(foreign_version(other).has_value(), asks) << to_string(type);
        if (asks) {
            EXPECT_EQ(foreign_version(other), control_version + 1);
        }
        EXPECT_FALSE(foreign_version(whole).has_value()) << "this version is not foreign";
        other[0] = std::byte{0xB1};
        EXPECT_FALSE(foreign_version(other).has_value()) << "this byte is no version of ATP";
        EXPECT_EQ(refusal_version(whole).has_value(), type == ControlType::refused);
    }
    Bytes refused = encoded(Refused{.reason = Refusal::version, .text = "no"});
    refused[0] = std::byte{0xA7};
    EXPECT_EQ(refusal_version(refused), 0xA7);
    refused[0] = std::byte{0x17};
    EXPECT_FALSE(refusal_version(refused).has_value());
    EXPECT_FALSE(refusal_version({}).has_value());
    EXPECT_FALSE(foreign_version({}).has_value());
}

}  // namespace
}  // namespace atp::wire
