// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <span>
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

bool same(const atp_header& a, const atp_header& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;  // no padding: format.h asserts it
}

// --- round trips

TEST(Decode, EveryFieldIsReturnedAsEncoded) {
    const atp_header sent = gradient_header();
    Bytes bytes = packet_of(sent, 62);
    Packet packet;
    ASSERT_EQ(decode(bytes, packet), DecodeError::none);
    EXPECT_TRUE(same(packet.header, sent)) << to_string(packet.header, packet.lane_count());
    EXPECT_EQ(packet.lane_count(), 62u);
}

TEST(Decode, LanesStayInTheReceivedBuffer) {
    Bytes bytes = packet_of(gradient_header(), 3);
    Packet packet;
    ASSERT_EQ(decode(bytes, packet), DecodeError::none);
    EXPECT_EQ(packet.lanes.data(), bytes.data() + ATP_HEADER_BYTES);
    store_u32(packet.lanes.data() + 2 * ATP_LANE_BYTES, 0x01020304);
    EXPECT_EQ(bytes.back(), std::byte{4}) << "lanes are big-endian";
}

TEST(Encode, EveryFieldIsAtItsOffsetInBigEndian) {
    const Bytes bytes = packet_of(gradient_header(), 0);
    const std::array<unsigned, ATP_HEADER_BYTES> expected = {
        0xA4, 1, 0,    0,    0, 0x11, 8,    0,     // version type flags hop lanes window scale
        0,    0, 0,    1,    0, 0,    0,    2,     // job channel worker
        0,    0, 0x5e, 0xed, 0, 0,    0xca, 0xfe,  // token
        0,    0, 0,    17,   0, 0,    0,    5,     // seq index
        0,    0, 0,    0,    0, 3,    6,    0,     // argument peer sending part
        0,    0, 0,    4,    0, 0,    0,    15,    // bitmap0 mask0
        0,    0, 0,    1,    0, 0,    0,    1,     // bitmap1 mask1
    };
    for (std::size_t at = 0; at < expected.size(); ++at) {
        EXPECT_EQ(std::to_integer<unsigned>(bytes[at]), expected[at]) << "at offset " << at;
    }
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

TEST(Decode, EveryScaleIsAccepted) {
    for (unsigned scale = 0; scale <= 0xFF; ++scale) {
        atp_header header = gradient_header();
        header.scale = static_cast<std::uint8_t>(scale);
        Bytes bytes = packet_of(header, 1);
        Packet packet;
        ASSERT_EQ(decode(bytes, packet), DecodeError::none);
        EXPECT_EQ(packet.header.scale, scale);
    }
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

TEST(Decode, LargestPacketIsAcceptedAndOneLaneMoreRefused) {
    EXPECT_EQ(decode_of(gradient_header(), ATP_MAX_LANES), DecodeError::none);
    EXPECT_EQ(decode_of(gradient_header(), ATP_MAX_LANES + 1), DecodeError::oversized);
}

// --- single fields

TEST(Decode, EveryOtherVersionIsRefused) {
    for (unsigned version = 0; version <= 0xFF; ++version) {
        Bytes bytes = packet_of(gradient_header(), 1);
        bytes[ATP_OFFSET_VERSION] = static_cast<std::byte>(version);
        EXPECT_EQ(decode_bytes(bytes), version == ATP_VERSION ? DecodeError::none : DecodeError::version) << version;
    }
}

TEST(Decode, OtherVersionIsReportedBeforeABadLength) {
    Bytes bytes = packet_of(gradient_header(), 1);
    bytes[ATP_OFFSET_VERSION] = std::byte{0xA5};
    bytes.resize(bytes.size() + 1);
    EXPECT_EQ(decode_bytes(bytes), DecodeError::version);
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

TEST(Decode, AllFlagsAreAcceptedTogetherExceptAuditAndProof) {
    atp_header header = gradient_header();
    header.flags = ATP_FLAG_ALL;
    EXPECT_EQ(decode_of(header, 5), DecodeError::proof);
    header.flags = ATP_FLAG_ALL & ~static_cast<unsigned>(ATP_FLAG_PROOF);
    EXPECT_EQ(decode_of(header, 5), DecodeError::none);
    header.flags = ATP_FLAG_ALL & ~static_cast<unsigned>(ATP_FLAG_AUDIT);
    EXPECT_EQ(decode_of(header, 5), DecodeError::none);
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

TEST(Decode, PartIsBelowThePartsOfItsLanesAndNeedsBypass) {
    struct Case {
        std::uint8_t form, type;
        unsigned packets;
    };
    for (const Case& one : {Case{ATP_DTYPE_INT32, ATP_DTYPE_FLOAT32, 1}, Case{ATP_DTYPE_INT16, ATP_DTYPE_INT32, 2},
                            Case{ATP_DTYPE_INT8, ATP_DTYPE_INT16, 2}, Case{ATP_DTYPE_INT8, ATP_DTYPE_FLOAT32, 4}}) {
        for (unsigned part = 1; part <= 0xFF; ++part) {
            atp_header header = gradient_header();
            header.lanes = atp_lanes_of(one.form, one.type);
            header.part = static_cast<std::uint8_t>(part);
            EXPECT_EQ(decode_of(header, 1), DecodeError::part) << "without BYPASS";
            header.flags = ATP_FLAG_BYPASS;
            EXPECT_EQ(decode_of(header, 1), part >> 6U < one.packets ? DecodeError::none : DecodeError::part) << part;
        }
    }
}

TEST(Decode, LanesMustFitTheTypeAndTheWords) {
    struct Rule {
        atp_type type;
        std::set<unsigned> with_words;
        std::set<unsigned> without;
    };
    const std::set<unsigned> numbers{0x11, 0x12, 0x31, 0x32, 0x33, 0x41, 0x42, 0x43, 0x44};
    const std::array<Rule, 7> rules = {{{ATP_TYPE_GRADIENT, numbers, {}},
                                        {ATP_TYPE_ACK, numbers, {0}},
                                        {ATP_TYPE_NACK, {}, {1, 2, 3, 4}},
                                        {ATP_TYPE_PROBE, {0}, {0}},
                                        {ATP_TYPE_WAIT, {}, {0}},
                                        {ATP_TYPE_FLUSH, {}, {0}},
                                        {ATP_TYPE_READY, {}, {0}}}};
    for (const Rule& rule : rules) {
        for (unsigned field = 0; field <= 0xFF; ++field) {
            for (const std::size_t words : {0u, 1u, 62u}) {
                atp_header header = header_of(rule.type, ATP_DTYPE_NONE);
                header.lanes = static_cast<std::uint8_t>(field);
                const bool fits = (words != 0 ? rule.with_words : rule.without).contains(field);
                EXPECT_EQ(decode_of(header, words), fits ? DecodeError::none : DecodeError::lanes)
                    << to_string(header, words);
            }
        }
    }
}

TEST(Decode, HopsUpToTheServerAreAcceptedAndOthersRefused) {
    for (unsigned hop = 0; hop <= 0xFF; ++hop) {
        atp_header header = gradient_header();
        header.hop = static_cast<std::uint8_t>(hop);
        EXPECT_EQ(decode_of(header, 1), hop <= ATP_LEVELS ? DecodeError::none : DecodeError::hop) << hop;
    }
}

TEST(Decode, WindowBeyondItsMaximumIsRefused) {
    for (unsigned window_log2 = 0; window_log2 <= 0xFF; ++window_log2) {
        atp_header header = gradient_header();
        header.window_log2 = static_cast<std::uint8_t>(window_log2);
        const bool fits = window_log2 <= ATP_WINDOW_LOG2_MAX;
        EXPECT_EQ(decode_of(header, 1), fits ? DecodeError::none : DecodeError::window) << window_log2;
    }
}

TEST(Decode, TokenZeroIsRefused) {
    atp_header header = gradient_header();
    header.token = 0;
    EXPECT_EQ(decode_of(header, 1), DecodeError::token);
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

TEST(Decode, GradientWithoutMemberOrUnitIsRefused) {
    atp_header header = gradient_header();
    header.bitmap0 = 0;
    EXPECT_EQ(decode_of(header, 1), DecodeError::set) << "no member";
    header = gradient_header();
    header.bitmap1 = 0;
    EXPECT_EQ(decode_of(header, 1), DecodeError::set) << "no unit";
    header.flags = ATP_FLAG_WHOLE;
    EXPECT_EQ(decode_of(header, 1), DecodeError::set) << "WHOLE, but no unit";
}

TEST(Decode, WholeGradientWithoutMembersIsAccepted) {
    atp_header header = gradient_header();
    header.flags = ATP_FLAG_WHOLE;
    header.bitmap0 = 0;
    header.mask0 = 0;
    EXPECT_EQ(decode_of(header, 1), DecodeError::none);
}

TEST(Decode, SeveralUnitsAreAcceptedOnlyWhole) {
    atp_header header = gradient_header();
    header.bitmap1 = 0x3;
    header.mask1 = 0x7;
    EXPECT_EQ(decode_of(header, 1), DecodeError::set) << "the header has members and several units";
    header.flags = ATP_FLAG_WHOLE;
    EXPECT_EQ(decode_of(header, 1), DecodeError::none);
}

TEST(Decode, AllMembersOfAllUnitsOfTheLargestJobAreAccepted) {
    atp_header header = gradient_header();
    header.flags = ATP_FLAG_WHOLE;
    header.bitmap0 = header.mask0 = header.bitmap1 = header.mask1 = 0xFFFFFFFF;
    EXPECT_EQ(decode_of(header, 1), DecodeError::none);
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

TEST(ToString, OneLineHasEveryField) {
    atp_header header = gradient_header();
    header.flags = ATP_FLAG_RESEND | ATP_FLAG_ECN;
    EXPECT_EQ(to_string(header, 62),
              "GRADIENT job=1 token=0x5eed0000cafe ch=0 seq=17 w=2 hop=0 win=8 scale=0 idx=5 arg=0 peer=3 sending=6 "
              "part=0.0 form=int32 int32x62 set=0x4/0xf,0x1/0x1 resend ecn");
}

TEST(ToString, MulticastWorkerPrintsAsAll) {
    atp_header header = header_of(ATP_TYPE_WAIT, ATP_DTYPE_NONE);
    header.worker = ATP_WORKER_ALL;
    EXPECT_EQ(to_string(header, 0),
              "WAIT job=1 token=0x5eed0000cafe ch=0 seq=17 w=all hop=0 win=8 scale=0 idx=5 arg=0 peer=3 sending=6 "
              "part=0.0 form=none nonex0 set=0x4/0xf,0x1/0x1");
}

TEST(ToString, WidestHeaderFits) {
    atp_header header{};
    std::memset(&header, 0xFF, sizeof header);
    header.worker = header.peer = 0xFFFE;
    EXPECT_EQ(
        to_string(header, std::numeric_limits<std::size_t>::max()),
        "UNKNOWN job=4294967295 token=0xffffffffffffffff ch=65535 seq=4294967295 w=65534 hop=255 win=255 "
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
