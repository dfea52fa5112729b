// SPDX-License-Identifier: Apache-2.0
// Control messages: they build the tree of switches and read its counters. They share the port with packets, and have
// a version byte and types of their own. docs/protocol.md#joining is normative.
//
// Decoding accepts any bytes. Every field of an accepted message is in its range, and every list within its bound.
// The functions have no state and are safe in every thread. They allocate, so they are not for the packet path.
#pragma once

#include <array>
#include <bit>
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
    join = ATP_TYPE_CONTROL,  // up: a worker, or a switch for all members below it, joins a channel
    joined = 17,              // down: state of the tree; `ready` if it is complete up to the server
    refused = 18,             // down: the request is refused, with the reason
    leave = 19,               // up: a member leaves
    hello = 20,               // to a switch: requests its path, and tests whether a message of this length arrives
    welcome = 21,             // answer to a HELLO, of the same length and with the same ECN bits
    stats = 22,               // to a switch: requests one part of its report
    report = 23,              // that part of the report
};

// High nibble: the mark of ATP, as in packets. Low nibble: the version of the control messages.
inline constexpr std::uint8_t control_version = ATP_CONTROL_VERSION;
inline constexpr std::size_t control_prefix_bytes = 4;    // version, type, two zero bytes
inline constexpr std::size_t max_control_bytes = 65'504;  // padding included
inline constexpr std::size_t report_part_bytes = 1'024;   // of text; a STATS is as long as the longest REPORT
// An answer is at most this many times as long as its request; a longer answer is not sent. This bounds the
// amplification by forged sender addresses. The sender of a HELLO pads it accordingly.
inline constexpr std::size_t most_amplification = 3;
inline constexpr std::size_t least_hello_bytes = 64;
inline constexpr std::size_t max_refusal_bytes = 200;  // of text
inline constexpr std::size_t max_path_switches = 4;    // from a leaf to the root

// Address of a parameter server that does not run on the last switch, or multicast group of a channel's results.
struct Endpoint {
    std::uint8_t family = 0;  // 4 or 6; 0: none
    std::uint16_t port = 0;
    std::array<std::byte, 16> host{};  // the first 4 bytes for IPv4

    bool operator==(const Endpoint&) const = default;
};

// The members of one unit that join: all of them, or one.
struct JoiningUnit {
    std::uint8_t unit = 0;             // bit of bitmap1
    std::uint32_t members = 0;         // members that join with this message, as bits of bitmap0
    std::uint32_t mask0 = 0;           // all members of the unit
    bool direct = false;               // the unit is one worker under the switch of the server
    std::vector<std::uint16_t> ranks;  // ranks of `members`, lowest bit first

    bool operator==(const JoiningUnit&) const = default;
};

// Packet format of a channel, and its handling in switches.
enum class ChannelProtocol : std::uint8_t {
    atp = 1,
    switchml,           // the switch compares offsets
    switchml_faithful,  // the switch separates phases by one bit only, as in the paper (H37, docs/protocol.md#h37)
    switchml_lossless,  // the switch has one copy of a slot, and no worker resends
};

// Terms of a channel, equal in the JOINs of all members.
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
    Endpoint group{};  // family 0: each member gets its own copy of a result

    [[nodiscard]] bool has_single_unit() const { return std::has_single_bit(mask1); }
    bool operator==(const ChannelTerms&) const = default;
};

struct Join {
    ChannelTerms terms;
    std::uint8_t level = 0;  // level of the receiver: 0 and 1 aggregate, 2 hosts the server only
    bool begun = false;  // the sender, or a member below it, received `ready` before: the server must know the channel
    bool receives_group = false;  // a packet to the group of the terms arrived here recently
    std::vector<JoiningUnit> units;
};

struct Joined {
    std::uint32_t job = 0;
    std::uint32_t token = 0;
    std::uint16_t channel = 0;
    bool ready = false;
    std::uint32_t missing_units = 0;    // units of which a member's JOIN is missing
    std::uint32_t missing_members = 0;  // members of the receiver's unit whose JOIN is missing
    std::uint8_t stream = 0;            // SwitchML, if ready: job number in the channel's packets
};

enum class Refusal : std::uint8_t {
    version = 1,    // the sender uses another version
    malformed = 2,  // undecodable
    full = 3,       // no free entry for another job or channel
    token = 4,      // the job is admitted with another token
    terms = 5,      // terms of members differ
    place = 6,      // two members claim one position
    restarted = 7,  // the state of the server is lost: form the job again
    parent = 8,     // the switch does not reach its parent
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

// A switch on the path to the root. The first is the switch that received the HELLO.
struct PathSwitch {
    std::uint64_t id = 0;           // random, new at each start
    std::uint32_t aggregators = 0;  // that one channel can use
    std::uint16_t lanes = 0;        // of one aggregator, or of one slot
    std::uint32_t slots = 0;        // pool that all SwitchML channels share; 0: SwitchML is not served

    bool operator==(const PathSwitch&) const = default;
};

struct Welcome {
    std::uint64_t nonce = 0;           // of the HELLO
    std::uint32_t received_bytes = 0;  // length of the HELLO as received
    std::vector<PathSwitch> path;
    std::string software;  // "atp 0.1.0"
};

struct Stats {
    std::uint32_t nonce = 0;
    std::uint32_t snapshot = 0;  // 0: current state; otherwise the snapshot that part 0 named
    std::uint16_t part = 0;
};

struct Report {
    std::uint32_t nonce = 0;
    std::uint32_t snapshot = 0;
    std::uint16_t part = 0;
    std::uint16_t parts = 0;
    std::string text;
};

// Type of a control message of this version; nullopt for packets, other versions and other bytes.
[[nodiscard]] std::optional<ControlType> control_type(std::span<const std::byte> bytes);
// Version byte of a JOIN or HELLO of another version, which the receiver should answer; otherwise nullopt.
[[nodiscard]] std::optional<std::uint8_t> foreign_version(std::span<const std::byte> bytes);
// Version byte of a REFUSED of any version; otherwise nullopt.
[[nodiscard]] std::optional<std::uint8_t> refusal_version(std::span<const std::byte> bytes);

// Returns the number of bytes written, or 0 if they do not fit. Zeros pad the message to `padded_bytes`.
[[nodiscard]] std::size_t encode(const Join& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Joined& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Refused& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Leave& message, std::span<std::byte> bytes);
[[nodiscard]] std::size_t encode(const Hello& message, std::span<std::byte> bytes, std::size_t padded_bytes = 0);
[[nodiscard]] std::size_t encode(const Welcome& message, std::span<std::byte> bytes, std::size_t padded_bytes = 0);
[[nodiscard]] std::size_t encode(const Stats& message, std::span<std::byte> bytes);  // padded to the longest REPORT
[[nodiscard]] std::size_t encode(const Report& message, std::span<std::byte> bytes);

// Returns nullopt if the bytes are no valid message of this type.
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
// Example: "switchml-faithful".
[[nodiscard]] std::string_view to_string(ChannelProtocol protocol);

}  // namespace atp::wire
