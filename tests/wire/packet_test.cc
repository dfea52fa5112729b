// SPDX-License-Identifier: Apache-2.0
// Rules of packets that hold for many values. Each single rule, the bytes of each field and the text of each packet are
// vectors of tests/conformance/wire.json.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/packets.h"
#include "wire/packet.h"

namespace atp::wire {
namespace {

using Bytes = std::vector<std::byte>;

// Header of a gradient of worker 2 in a unit of four. The job has one unit.
atp_header gradient_header() {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 8;
    header.job = 1;
    header.token = 0x5eed0000cafe;
    header.worker = 2;
    header.seq = 17;
    header.index = 5;
    header.peer = 3;
    header.sending = 6;
    header.bitmap0 = 0x4;
    header.mask0 = 0xf;
    header.bitmap1 = 0x1;
    header.mask1 = 0x1;
    return header;
}

atp_header header_of(atp_type type, atp_dtype dtype) {
    atp_header header = gradient_header();
    header.type = static_cast<std::uint8_t>(type);
    header.lanes = testing::lanes_field(header.type, static_cast<std::uint8_t>(dtype));
    return header;
}

Bytes packet_of(const atp_header& header, std::size_t lanes) {
    return testing::make_packet(header, testing::Lanes(lanes));
}

DecodeError decode_of(const atp_header& header, std::size_t lanes) {
    Bytes bytes = packet_of(header, lanes);
    Packet packet;
    return decode(bytes, packet);
}

DecodeError decode_bytes(Bytes bytes) {
    Packet packet;
    return decode(bytes, packet);
}

// --- places

TEST(Decode, LanesStayInTheReceivedBuffer) {
    Bytes bytes = packet_of(gradient_header(), 3);
    Packet packet;
    ASSERT_EQ(decode(bytes, packet), DecodeError::none);
    EXPECT_EQ(packet.lanes.data(), bytes.data() + ATP_HEADER_BYTES);
    store_u32(packet.lanes.data() + 2 * ATP_LANE_BYTES, 0x01020304);
    EXPECT_EQ(bytes.back(), std::byte{4}) << "lanes are big-endian";
}

TEST(Encode, VersionOfTheHeaderIsReplaced) {
    atp_header header = gradient_header();
    header.version = 7;
    const Bytes bytes = packet_of(header, 0);
    EXPECT_EQ(std::to_integer<unsigned>(bytes[ATP_OFFSET_VERSION]), ATP_VERSION);
}

TEST(Encode, BytesBehindTheHeaderAreUnchanged) {
    Bytes bytes(ATP_HEADER_BYTES + 8, std::byte{0xEE});
    encode_header(gradient_header(), bytes);
    for (std::size_t at = ATP_HEADER_BYTES; at < bytes.size(); ++at) EXPECT_EQ(bytes[at], std::byte{0xEE});
}

// --- lengths

TEST(Decode, EveryLengthBelowAHeaderIsTruncated) {
    const Bytes whole = packet_of(gradient_header(), 1);
    for (std::size_t length = 0; length < ATP_HEADER_BYTES; ++length) {
        const auto end = whole.begin() + static_cast<std::ptrdiff_t>(length);
        EXPECT_EQ(decode_bytes(Bytes(whole.begin(), end)), DecodeError::truncated) << length << " bytes";
    }
}

TEST(Decode, LengthThatCutsALaneIsRagged) {
    for (std::size_t extra = 1; extra < ATP_LANE_BYTES; ++extra) {
        Bytes bytes = packet_of(gradient_header(), 5);
        bytes.resize(bytes.size() + extra);
        EXPECT_EQ(decode_bytes(bytes), DecodeError::ragged) << extra << " bytes too many";
    }
}

// --- single fields

TEST(Decode, EveryOtherVersionIsRefused) {
    for (unsigned version = 0; version <= 0xFF; ++version) {
        Bytes bytes = packet_of(gradient_header(), 1);
        bytes[ATP_OFFSET_VERSION] = static_cast<std::byte>(version);
        EXPECT_EQ(decode_bytes(bytes), version == ATP_VERSION ? DecodeError::none : DecodeError::version) << version;
    }
}

TEST(Decode, EveryUnknownTypeIsRefused) {
    for (unsigned type = 0; type <= 0xFF; ++type) {
        if (type >= ATP_TYPE_GRADIENT && type <= ATP_TYPE_LAST) continue;
        atp_header header = gradient_header();
        header.type = static_cast<std::uint8_t>(type);
        EXPECT_EQ(decode_of(header, 1), DecodeError::type) << type;
    }
}

TEST(Decode, EachKnownFlagIsAcceptedAndEachUnknownRefused) {
    for (unsigned bit = 0; bit < 16; ++bit) {
        atp_header header = gradient_header();
        header.flags = static_cast<std::uint16_t>(1u << bit);
        const bool known = (header.flags & ATP_FLAG_ALL) != 0;
        const std::size_t lanes = ATP_PROOF_LANES + 1;
        EXPECT_EQ(decode_of(header, lanes), known ? DecodeError::none : DecodeError::flags) << "bit " << bit;
    }
}

TEST(Decode, ProofWordsNeedAnIntegerBesideThem) {
    for (const atp_type type : {ATP_TYPE_GRADIENT, ATP_TYPE_ACK}) {
        for (const std::uint8_t dtype : {ATP_DTYPE_INT32, ATP_DTYPE_FLOAT32, ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
            for (std::size_t lanes = 1; lanes < 8; ++lanes) {
                atp_header header = header_of(type, static_cast<atp_dtype>(dtype));
                header.flags = ATP_FLAG_PROOF;
                const bool fits = dtype != ATP_DTYPE_FLOAT32 && lanes > ATP_PROOF_LANES;
                EXPECT_EQ(decode_of(header, lanes), fits ? DecodeError::none : DecodeError::proof) << lanes;
            }
        }
    }
}

// --- sets

TEST(Decode, MemberOutsideItsUnitIsRefusedInEveryType) {
    for (unsigned type = ATP_TYPE_GRADIENT; type <= ATP_TYPE_LAST; ++type) {
        const std::size_t lanes = type == ATP_TYPE_GRADIENT || type == ATP_TYPE_ACK ? 1
                                  : type == ATP_TYPE_ACK_LIST                       ? ATP_LISTED_ACK_LANES
                                                                                    : 0;
        const auto dtype = type <= ATP_TYPE_NACK ? ATP_DTYPE_INT32 : ATP_DTYPE_NONE;
        atp_header header = header_of(static_cast<atp_type>(type), dtype);
        header.bitmap0 = 0x10;
        EXPECT_EQ(decode_of(header, lanes), DecodeError::set) << to_string(header, lanes);
        header.bitmap0 = 0x1;
        header.bitmap1 = 0x80000001;
        EXPECT_EQ(decode_of(header, lanes), DecodeError::set) << to_string(header, lanes);
    }
}

TEST(Decode, AnswerThatNamesNoMemberIsAccepted) {
    atp_header header = header_of(ATP_TYPE_ACK, ATP_DTYPE_FLOAT32);
    header.bitmap0 = header.bitmap1 = 0;
    EXPECT_EQ(decode_of(header, 1), DecodeError::none);
    header = header_of(ATP_TYPE_FLUSH, ATP_DTYPE_NONE);
    header.bitmap0 = header.bitmap1 = 0;
    EXPECT_EQ(decode_of(header, 0), DecodeError::none);
}

// --- texts

TEST(ToString, WidestHeaderFits) {
    atp_header header{};
    std::memset(&header, 0xFF, sizeof header);
    header.worker = header.peer = 0xFFFE;
    EXPECT_EQ(
        to_string(header, std::numeric_limits<std::size_t>::max()),
        "UNKNOWN job=ffffffff token=0xffffffffffffffff ch=65535 seq=4294967295 w=65534 hop=255 win=255 "
        "scale=255 idx=4294967295 arg=4294967295 peer=65534 sending=255 part=3.63 form=unknown "
        "unknownx18446744073709551615 set=0xffffffff/0xffffffff,0xffffffff/0xffffffff resend bypass collision ecn "
        "overflow whole audit plain alternate_free one_sender ecn_down proof last_rank unknown");
}

TEST(ToString, EveryReasonHasItsOwnName) {
    std::vector<std::string> names;
    for (std::size_t error = 0; error < decode_error_count; ++error) {
        names.emplace_back(to_string(static_cast<DecodeError>(error)));
    }
    EXPECT_EQ(names, (std::vector<std::string>{"none", "truncated", "version", "oversized", "ragged", "type", "flags",
                                               "lanes", "proof", "hop", "window", "token", "set", "part"}));
    EXPECT_EQ(to_string(static_cast<DecodeError>(decode_error_count)), "unknown");
}

}  // namespace
}  // namespace atp::wire
