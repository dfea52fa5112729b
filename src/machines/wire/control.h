// SPDX-License-Identifier: Apache-2.0
// The messages that build and watch the tree of switches. They share the port with packets, begin with a version byte
// of their own, and have types that no packet has. docs/protocol.md, "Joining", is normative.
//
// Decoding accepts any bytes: a message that it accepts has every field within its range and every list within its
// bound. Functions of their arguments: no state, safe from every thread. Not for the packet path: they allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/format.h"

namespace atp::wire {

enum class ControlType : std::uint8_t {
    join = ATP_TYPE_CONTROL,  // up: a worker, or a switch on behalf of everybody below it, takes part in a channel
    joined = 17,              // down: what is known of the tree; `ready` when it stands, whole, up to the server
    refused = 18,             // down: no, and why
    leave = 19,               // up: no longer
    hello = 20,               // to a switch: who are you, and does a message of this length arrive?
    welcome = 21,             // its answer, of the same length and with the same ECN bits
    stats = 22,               // to a switch: one part of its report, please
    report = 23,              // that part
};

// ATP's mark in the high nibble, as in its packets; the version of these messages in the low one.
inline constexpr std::uint8_t control_version = ATP_CONTROL_VERSION;
inline constexpr std::size_t control_prefix_bytes = 4;    // version, type, two zero bytes
inline constexpr std::size_t max_control_bytes = 65'504;  // padding included
inline constexpr std::size_t report_part_bytes = 1'024;   // of text; a request for one must be as long as its answer
// An answer is at most so many times as long as its question, or it is not given: whoever forges the address of a
// sender finds no amplifier here. A HELLO is padded accordingly.
inline constexpr std::size_t most_amplification = 3;
inline constexpr std::size_t least_hello_bytes = 64;
inline constexpr std::size_t max_refusal_bytes = 200;  // of text
inline constexpr std::size_t max_path_switches = 4;    // from a leaf to the root

// Where a channel's parameter server listens, when it does not stand in the last switch; or to which multicast group
// its results are sent.
struct Endpoint {
    std::uint8_t family = 0;  // 0: none, 4, 6
    std::uint16_t port = 0;
    std::array<std::byte, 16> host{};  // the first 4 bytes for IPv4

    bool operator==(const Endpoint&) const = default;
};

// The workers of one unit, or one of them.
struct JoiningUnit {
    std::uint8_t unit = 0;             // bit of bitmap1
    std::uint32_t members = 0;         // bits of bitmap0 that join with this message
    std::uint32_t mask0 = 0;           // all members of the unit
    bool direct = false;               // one worker under the server's own switch
    std::vector<std::uint16_t> ranks;  // of those members, lowest bit first

    bool operator==(const JoiningUnit&) const = default;
};

// What a channel's packets are, and what switches do with them.
enum class ChannelProtocol : std::uint8_t {
    atp = 1,
    switchml,           // the switch compares offsets
    switchml_faithful,  // it tells phases by a bit alone, as printed (hazard 37)
    switchml_lossless,  // it has one copy of a slot, and nobody sends again
};

[[nodiscard]] constexpr bool is_switchml(ChannelProtocol protocol) { return protocol != ChannelProtocol::atp; }

// What every member of a channel says alike.
struct ChannelTerms {
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint16_t channel = 0;
    std::uint16_t lanes = 0;
    std::uint8_t window_log2 = 0;
    bool audit = false;
    std::uint32_t aggregators = 0;
    std::uint32_t first_seq = 0;
    std::uint32_t mask1 = 0;  // all units of the job
    double scale = 0;
    Endpoint server;
    ChannelProtocol protocol = ChannelProtocol::atp;
    Endpoint group{};  // of no family: every member gets a copy of its own

    bool operator==(const ChannelTerms&) const = default;
};

struct Join {
    ChannelTerms terms;
    std::uint8_t level = 0;    // of the receiver: 0 and 1 aggregate, 2 holds the server alone
    bool begun = false;        // the sender was told `ready` before: whoever holds the server must know the channel
    bool hears_group = false;  // what was sent to the group of the terms arrived here lately
    std::vector<JoiningUnit> units;
};

struct Joined {
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint16_t channel = 0;
    bool ready = false;
    std::uint32_t missing_units = 0;    // of whom nothing, or not everybody, was heard
    std::uint32_t missing_members = 0;  // of the receiver's own unit
    std::uint8_t stream = 0;            // SwitchML, ready: what the channel's packets call their job
};

enum class Refusal : std::uint8_t {
    version = 1,    // the sender speaks another version
    malformed = 2,  // undecodable
    full = 3,       // no room for another job or channel
    token = 4,      // the job runs here under another token
    terms = 5,      // members disagree
    place = 6,      // two members claim one place
    restarted = 7,  // the server's state is lost: the job must re-form
    parent = 8,     // the switch does not reach the one above it
    unsupported = 9,
};

struct Refused {
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint16_t channel = 0;
    Refusal reason = Refusal::malformed;
    std::string text;
};

struct Leave {
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint16_t channel = 0;
    std::uint8_t unit = 0;
    std::uint8_t member = 0;
};

struct Hello {
    std::uint64_t nonce = 0;
};

// A switch on the way to the root, the asked one first.
struct PathSwitch {
    std::uint64_t id = 0;           // random at each start
    std::uint32_t aggregators = 0;  // that one channel can use
    std::uint16_t lanes = 0;        // of one aggregator, or slot
    std::uint32_t slots = 0;        // of the pool that SwitchML's channels share; 0: it does not serve them

    bool operator==(const PathSwitch&) const = default;
};

struct Welcome {
    std::uint64_t nonce = 0;           // of the hello
    std::uint32_t received_bytes = 0;  // its length
    std::vector<PathSwitch> path;
    std::string software;  // "atp 0.1.0"
};

struct Stats {
    std::uint32_t nonce = 0;
    std::uint32_t snapshot = 0;  // 0: of now; otherwise the one that part 0 named
    std::uint16_t part = 0;
};

struct Report {
    std::uint32_t nonce = 0;
    std::uint32_t snapshot = 0;
    std::uint16_t part = 0;
    std::uint16_t parts = 0;
    std::string text;
};

// The type of a control message of this version; nothing for packets, other versions and everything else.
[[nodiscard]] std::optional<ControlType> control_type(std::span<const std::byte> bytes);
// The version byte of a JOIN or HELLO of another version: worth an answer.
[[nodiscard]] std::optional<std::uint8_t> foreign_version(std::span<const std::byte> bytes);
// Of a REFUSED in whatever version: its sender's.
[[nodiscard]] std::optional<std::uint8_t> refusal_version(std::span<const std::byte> bytes);

// How many bytes were written; 0 where they do not fit. `padded_bytes`: the message is made so long, with zeros.
[[nodiscard]] std::size_t encode(const Join& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Joined& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Refused& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Leave& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Hello& message, std::span<std::byte> bytes, std::size_t padded_bytes = 0);
[[nodiscard]] std::size_t encode(const Welcome& message, std::span<std::byte> bytes, std::size_t padded_bytes = 0);
[[nodiscard]] std::size_t encode(const Stats& message, std::span<std::byte> bytes);  // as long as its answer may be
[[nodiscard]] std::size_t encode(const Report& message, std::span<std::byte> bytes);

// Nothing where the bytes are not such a message.
[[nodiscard]] std::optional<Join> decode_join(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Joined> decode_joined(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Refused> decode_refused(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Leave> decode_leave(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Hello> decode_hello(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Welcome> decode_welcome(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Stats> decode_stats(std::span<const std::byte> bytes);
[[nodiscard]] std::optional<Report> decode_report(std::span<const std::byte> bytes);

[[nodiscard]] std::string_view to_string(ControlType type);
[[nodiscard]] std::string_view to_string(Refusal reason);
// "switchml-faithful".
[[nodiscard]] std::string_view to_string(ChannelProtocol protocol);

}  // namespace atp::wire
