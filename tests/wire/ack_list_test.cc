// SPDX-License-Identifier: Apache-2.0
#include "wire/ack_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/packets.h"

namespace atp::wire {
namespace {

using testing::Bytes;

// Every field that may differ within a list does.
atp_header ack_of(std::uint32_t seq) {
    atp_header ack{};
    ack.version = ATP_VERSION;
    ack.type = ATP_TYPE_ACK;
    ack.flags = static_cast<std::uint16_t>(seq % 2 == 0 ? ATP_FLAG_PLAIN | ATP_FLAG_ECN : ATP_FLAG_ONE_SENDER);
    ack.window_log2 = 8;
    ack.scale = static_cast<std::uint8_t>(100 + seq);
    ack.job = 1;
    ack.channel = 3;
    ack.worker = ATP_WORKER_ALL;
    ack.token = 0x5eed0000cafe;
    ack.seq = seq;
    ack.index = 1000 + seq;
    ack.argument = 0x11120000 + seq;
    ack.peer = static_cast<std::uint16_t>(0xF00 + seq);
    ack.sending = static_cast<std::uint8_t>(200 + seq);
    ack.bitmap1 = ack.mask1 = 0x3;
    return ack;
}

Bytes list_of(std::size_t acks) {
    AckList list;
    for (std::uint32_t seq = 0; seq < acks; ++seq) list.add(testing::make_packet(ack_of(seq)));
    return {list.packet().begin(), list.packet().end()};
}

TEST(AckList, OneAckIsAnAck) {
    EXPECT_EQ(list_of(1), testing::make_packet(ack_of(0)));
    AckList list;
    list.add(testing::make_packet(ack_of(0)));
    list.add(testing::make_packet(ack_of(1)));
    list.clear();
    list.add(testing::make_packet(ack_of(2)));
    EXPECT_TRUE(std::ranges::equal(list.packet(), testing::make_packet(ack_of(2)))) << "also after another use";
}

TEST(AckList, AcksOfAListAreThoseThatWereAddedWithoutTheirIndex) {
    for (std::size_t acks = 2; acks <= max_listed_acks; ++acks) {
        Bytes bytes = list_of(acks);
        EXPECT_EQ(bytes.size(), ack_list_bytes(acks));
        Packet list;
        ASSERT_EQ(decode(bytes, list), DecodeError::none);
        ASSERT_EQ(listed_acks(list), acks);
        for (std::uint32_t seq = 0; seq < acks; ++seq) {
            atp_header expected = ack_of(seq);
            if (seq != 0) expected.index = 0;
            EXPECT_EQ(testing::make_packet(listed_ack(list, seq)), testing::make_packet(expected)) << seq;
        }
    }
    EXPECT_EQ(max_listed_acks, 16U);
}

TEST(AckList, ListHasNoLanesAndWholeAcks) {
    Bytes longest = list_of(max_listed_acks);
    Packet packet;
    for (std::size_t words = 0; words <= 70; ++words) {
        Bytes bytes = longest;
        bytes.resize(ATP_HEADER_BYTES + words * ATP_LANE_BYTES);
        const bool fits = words != 0 && words % 4 == 0 && words <= 60;
        EXPECT_EQ(decode(bytes, packet), fits ? DecodeError::none : DecodeError::lanes) << words;
    }
    store_u8(longest.data() + ATP_OFFSET_LANES, ATP_INT32_LANES);
    EXPECT_EQ(decode(longest, packet), DecodeError::lanes);
}

}  // namespace
}  // namespace atp::wire
