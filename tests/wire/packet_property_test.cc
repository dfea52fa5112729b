// SPDX-License-Identifier: Apache-2.0
// Properties of random packets.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/packets.h"
#include "wire/packet.h"

namespace atp::wire {
namespace {

rc::Gen<std::uint8_t> bytes_up_to(unsigned last) {
    return rc::gen::map(rc::gen::inRange(0u, last + 1),
                        [](unsigned value) { return static_cast<std::uint8_t>(value); });
}

// A random valid header. Extreme values are as likely as other values.
atp_header any_valid_header() {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = static_cast<std::uint8_t>(*rc::gen::inRange(1u, ATP_TYPE_LAST + 1u));
    header.flags = static_cast<std::uint16_t>(*rc::gen::inRange(0u, ATP_FLAG_ALL + 1u));
    if ((header.flags & ATP_FLAG_AUDIT) != 0) header.flags &= static_cast<std::uint16_t>(~unsigned{ATP_FLAG_PROOF});
    header.hop = *bytes_up_to(ATP_LEVELS);
    const bool numeric = header.type <= ATP_TYPE_NACK;
    const auto integers = *rc::gen::element<std::uint8_t>(ATP_DTYPE_INT32, ATP_DTYPE_INT16, ATP_DTYPE_INT8);
    header.lanes = testing::lanes_field(header.type, numeric ? integers : std::uint8_t{ATP_DTYPE_NONE});
    header.window_log2 = *bytes_up_to(ATP_WINDOW_LOG2_MAX);
    header.job = *rc::gen::arbitrary<std::uint32_t>();
    header.token = *rc::gen::nonZero<std::uint64_t>();
    header.channel = *rc::gen::arbitrary<std::uint16_t>();
    header.worker = *rc::gen::arbitrary<std::uint16_t>();
    header.seq = *rc::gen::arbitrary<std::uint32_t>();
    header.index = *rc::gen::arbitrary<std::uint32_t>();
    header.argument = *rc::gen::arbitrary<std::uint32_t>();
    header.peer = *rc::gen::arbitrary<std::uint16_t>();
    header.sending = *rc::gen::arbitrary<std::uint8_t>();
    const bool may_be_a_part = header.type == ATP_TYPE_GRADIENT && (header.flags & ATP_FLAG_BYPASS) != 0;
    header.part = may_be_a_part ? *bytes_up_to(ATP_PART_RANK_MASK) : std::uint8_t{0};
    header.bitmap0 = *rc::gen::nonZero<std::uint32_t>();
    header.mask0 = header.bitmap0 | *rc::gen::arbitrary<std::uint32_t>();
    const bool whole = (header.flags & ATP_FLAG_WHOLE) != 0;
    header.bitmap1 = whole ? *rc::gen::nonZero<std::uint32_t>() : 1u << *rc::gen::inRange(0u, ATP_BITMAP_BITS);
    header.mask1 = header.bitmap1 | *rc::gen::arbitrary<std::uint32_t>();
    return header;
}

RC_GTEST_PROP(WireProperty, DecodedPacketEqualsTheEncodedOne, ()) {
    const atp_header sent = any_valid_header();
    const bool has_lanes = sent.type == ATP_TYPE_GRADIENT || sent.type == ATP_TYPE_ACK;
    std::size_t lanes = has_lanes ? *rc::gen::inRange<std::size_t>(ATP_PROOF_LANES + 1, 400) : 0;
    if (sent.type == ATP_TYPE_ACK_LIST) lanes = ATP_LISTED_ACK_LANES * *rc::gen::inRange<std::size_t>(1, 16);
    std::vector<std::byte> bytes = testing::make_packet(sent, testing::Lanes(lanes));
    Packet packet;
    RC_ASSERT(decode(bytes, packet) == DecodeError::none);
    RC_ASSERT(std::memcmp(&packet.header, &sent, sizeof sent) == 0);
    RC_ASSERT(packet.lane_count() == lanes);
}

// Random bytes almost never pass the check of the version. The property therefore replaces some bytes of a valid
// packet.
RC_GTEST_PROP(WireProperty, AcceptedPacketIsInRangeAndEncodesToTheSameBytes, ()) {
    const atp_header start = any_valid_header();
    const bool has_lanes = start.type == ATP_TYPE_GRADIENT || start.type == ATP_TYPE_ACK;
    std::vector<std::byte> bytes = testing::make_packet(start, testing::Lanes(has_lanes ? ATP_PROOF_LANES + 1 : 0));
    const auto changes = *rc::gen::inRange(0, 4);
    for (int change = 0; change < changes; ++change) {
        const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
        bytes[at] = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    }
    bytes.resize(*rc::gen::weightedElement<std::size_t>({{9, bytes.size()}, {1, bytes.size() - 1}, {1, 0}}));

    Packet packet;
    const DecodeError error = decode(bytes, packet);
    RC_CLASSIFY(error == DecodeError::none, "accepted");
    if (error != DecodeError::none) return;
    const atp_header& header = packet.header;
    RC_ASSERT(header.type >= 1 && header.type <= ATP_TYPE_LAST && header.hop <= ATP_LEVELS);
    RC_ASSERT(header.window_log2 <= ATP_WINDOW_LOG2_MAX && header.token != 0u);
    RC_ASSERT((header.bitmap0 | header.mask0) == header.mask0 && (header.bitmap1 | header.mask1) == header.mask1);
    std::vector<std::byte> again = bytes;
    encode_header(header, again);
    RC_ASSERT(again == bytes);
}

RC_GTEST_PROP(WireProperty, RandomBytesAreRefusedWithAReason, (std::vector<std::uint8_t> random)) {
    std::vector<std::byte> bytes(random.size());
    if (!random.empty()) std::memcpy(bytes.data(), random.data(), random.size());
    Packet packet;
    const DecodeError error = decode(bytes, packet);
    RC_ASSERT(static_cast<std::size_t>(error) < decode_error_count);
    RC_ASSERT((error == DecodeError::truncated) == (bytes.size() < ATP_HEADER_BYTES));
    if (error == DecodeError::none) RC_ASSERT(load_u8(bytes.data()) == ATP_VERSION);
}

}  // namespace
}  // namespace atp::wire
