// SPDX-License-Identifier: Apache-2.0
// Control messages: they build the tree of switches (join_messages.h) and read its counters (query_messages.h). They
// share the port with packets, and have a version byte and types of their own. docs/spec/joining.md is normative.
// Messages in a store (formation_messages.h) begin with the same bytes and have further types.
//
// Decoding accepts any bytes. Every field of an accepted message is in its range, and every list within its bound.
// The functions have no state and are safe in every thread. They allocate, so they are not for the packet path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire/format.h"
#include "wire/formation_messages.h"
#include "wire/join_messages.h"
#include "wire/query_messages.h"

namespace atp::wire {

// High nibble: the mark of ATP, as in packets. Low nibble: the version of the control messages.
inline constexpr std::uint8_t control_version = ATP_CONTROL_VERSION;

// tools/write_wire writes the types and limits from src/machines/wire/wire.toml.
// Type of a control message.
enum class ControlType : std::uint8_t {
    join = 16,     // from worker, switch: a worker, or a switch for all members below it, joins a channel
    joined = 17,   // from switch: state of the tree; `ready` if it is complete up to the server
    refused = 18,  // from switch: the request is refused, with the reason
    leave = 19,    // from worker, switch: a member leaves
    // from worker, switch, tool: requests the path of a switch, and tests whether a message of this length arrives
    hello = 20,
    welcome = 21,  // from switch: answer to a HELLO, as long up to 9,000 bytes, with its ECN bits
    stats = 22,    // from tool: requests one part of a report; as long as the longest REPORT
    report = 23,   // from switch: that part of the report
    retry = 24,    // from switch: repeat the JOIN or STATS with this cookie
};

inline constexpr ControlType first_control_type = ControlType::join;
inline constexpr ControlType last_control_type = ControlType::retry;

// Type of a message in a store.
enum class StoreType : std::uint8_t {
    facts = 1,    // from each rank: what a rank says of itself before it uses the network
    shared = 2,   // from each rank: whether a rank shares memory as the FACTS let it expect
    network = 3,  // from the first rank of each host: what a rank knows of its path to a switch, and of its links
    server = 4,   // from the first rank of each host: where a rank serves sums
    // from the first rank of each host: which servers a rank reaches, and the switch that it runs for its rack
    reached = 5,
    // from the first rank of each host: what the other ranks of a host need to know of the job, as soon as its channels
    // are ready
    plan = 6,
    gave_up = 7,  // from a rank that fails: stands in place of a value: the formation fails on all ranks
};

// Bytes in front of the fields of each message: version (1), type (1), code_at (2).
inline constexpr std::size_t control_prefix_bytes = 4;
// Longest control message, padding included.
inline constexpr std::size_t max_control_bytes = 65'504;
// Longest text of a REPORT.
inline constexpr std::size_t report_part_bytes = 1'024;
// Shortest JOIN and HELLO, padding included: no answer to an address that is not proven is longer than its question.
inline constexpr std::size_t least_question_bytes = 288;
// Shortest hold time: a member sends 12 JOINs in it.
inline constexpr std::size_t least_hold_ms = 100;
// Longest hold time: for so long a failed neighbour may count as present.
inline constexpr std::size_t most_hold_ms = 60'000;
// Longest WELCOME, padding included. A longer HELLO gets one of this length.
inline constexpr std::size_t longest_welcome_bytes = 9'000;
// Longest text of a REFUSED.
inline constexpr std::size_t max_refusal_bytes = 200;
// Longest name of the software in a WELCOME.
inline constexpr std::size_t max_software_bytes = 64;
// Edges of one message.
inline constexpr std::size_t max_edges = 4;
// Statements of one message. Further texts are left out.
inline constexpr std::size_t max_statements = 4;
// Longest text of a statement.
inline constexpr std::size_t max_statement_bytes = 100;
// Longest name of a job.
inline constexpr std::size_t max_job_name_bytes = 63;
// Whole share in percent.
inline constexpr std::size_t whole_percent = 100;
// Whole share in permille.
inline constexpr std::size_t whole_permille = 1'000;
// Longest name or address in a message of a store.
inline constexpr std::size_t max_word_bytes = 255;
// Longest text of the options that must be equal.
inline constexpr std::size_t max_terms_bytes = 16'384;
// Longest reason of one rank in a message of a store.
inline constexpr std::size_t max_cause_bytes = 400;
// Longest reason for which a rank gives up.
inline constexpr std::size_t max_notice_bytes = 32'768;
// Ranks of a job.
inline constexpr std::size_t max_ranks = 1'024;
// Sockets of a rank: two for each channel.
inline constexpr std::size_t max_sockets = 128;
// Servers that one rank names because it does not reach them. Further ones are left out.
inline constexpr std::size_t max_faults = 128;
// Largest number of enum atp_reason.
inline constexpr std::size_t most_reason = 15;
// Longest name of a switch at which a key joins.
inline constexpr std::size_t max_key_name_bytes = 63;
// Switches from a leaf to the root, both included.
inline constexpr std::size_t max_path_switches = 4;
// Longest control message without its padding.
inline constexpr std::size_t longest_message_bytes = 3'130;
// End of the written part.

// Type of a control message of this version; nullopt for packets, other versions and other bytes.
[[nodiscard]] std::optional<ControlType> control_type(std::span<const std::byte> bytes);
// Version byte of a JOIN or HELLO of another version, which the receiver should answer; otherwise nullopt.
[[nodiscard]] std::optional<std::uint8_t> foreign_version(std::span<const std::byte> bytes);
// Version byte of a REFUSED of any version; otherwise nullopt.
[[nodiscard]] std::optional<std::uint8_t> refusal_version(std::span<const std::byte> bytes);

// The nonce, with which every control message of every version begins after these bytes; nullopt: too few bytes.
[[nodiscard]] std::optional<std::uint64_t> nonce_of(std::span<const std::byte> bytes);

// For each message of the included headers. encode() returns the number of bytes written, or 0 if they do not fit.
// Zeros pad the message to `padded_bytes`. decode() returns nullopt if the bytes are no valid message of this type.
template <class Message>
[[nodiscard]] std::size_t encode(const Message& message, std::span<std::byte> bytes, std::size_t padded_bytes = 0);
template <class Message>
[[nodiscard]] std::optional<Message> decode(std::span<const std::byte> bytes);

[[nodiscard]] std::string_view to_string(ControlType type);
[[nodiscard]] std::string_view to_string(StoreType type);

}  // namespace atp::wire
