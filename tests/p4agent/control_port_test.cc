// SPDX-License-Identifier: Apache-2.0
#include "p4agent/control_port.h"

#include <gtest/gtest.h>

#include <vector>

#include "wire/bytes.h"

namespace atp::p4agent {
namespace {

constexpr std::uint16_t port = 4790;

// A frame of IPv4 and UDP with a payload of three bytes.
std::vector<std::byte> frame() {
    std::vector<std::byte> bytes(14 + 20 + 8 + 3);
    wire::store_u16(&bytes[12], 0x0800);
    wire::store_u8(&bytes[14], 0x45);
    wire::store_u8(&bytes[23], 17);
    wire::store_u32(&bytes[26], 0x0A000001);
    wire::store_u32(&bytes[30], 0x0A000002);
    wire::store_u16(&bytes[34], 9);
    wire::store_u16(&bytes[36], port);
    wire::store_u16(&bytes[38], 8 + 3);
    bytes[42] = std::byte{7};
    return bytes;
}

TEST(ControlPort, FindsADatagramAndItsAddresses) {
    const auto bytes = frame();
    const auto message = message_of(bytes, port);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->bytes.size(), 3U);
    EXPECT_EQ(message->bytes.front(), std::byte{7});
    EXPECT_EQ(to_string(message->from), "10.0.0.1:9");
    EXPECT_EQ(to_string(message->to), "10.0.0.2:4790");
    EXPECT_EQ(message->entrance, 0U) << "not known";
}

TEST(ControlPort, PaddingIsNotPartOfThePayload) {
    auto bytes = frame();
    bytes.resize(bytes.size() + 20);
    EXPECT_EQ(message_of(bytes, port)->bytes.size(), 3U);
}

TEST(ControlPort, OtherFramesHaveNone) {
    const auto changed = [](std::size_t at, unsigned value) {
        auto bytes = frame();
        wire::store_u8(&bytes[at], static_cast<std::uint8_t>(value));
        return bytes;
    };
    EXPECT_FALSE(message_of(changed(12, 0x86), port)) << "another protocol than IPv4";
    EXPECT_FALSE(message_of(changed(14, 0x46), port)) << "options";
    EXPECT_FALSE(message_of(changed(20, 0x20), port)) << "a fragment";
    EXPECT_FALSE(message_of(changed(23, 6), port)) << "TCP";
    EXPECT_FALSE(message_of(changed(36, 0), port)) << "another port";
    EXPECT_FALSE(message_of(changed(39, 7), port)) << "shorter than its header";
    EXPECT_FALSE(message_of(changed(38, 1), port)) << "longer than its frame";
    EXPECT_FALSE(message_of(std::span<const std::byte>(), port));
}

TEST(ControlPort, OpenNamesAMissingInterface) {
    const auto opened = ControlPort::open("no-such-device", port);
    ASSERT_FALSE(opened);
    EXPECT_NE(to_string(opened.error()).find("no-such-device"), std::string::npos);
}

}  // namespace
}  // namespace atp::p4agent
