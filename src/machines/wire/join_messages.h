// SPDX-License-Identifier: Apache-2.0
// Messages that build the tree of switches of a channel. wire/control.h describes decoding, threads and failure.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atp::wire {

// tools/write_wire writes the messages from src/machines/wire/wire.toml.

// Reason of a REFUSED.
enum class Refusal : std::uint8_t {
    version = 1,      // the sender uses another version
    malformed = 2,    // undecodable
    full = 3,         // no free entry for another job or channel
    token = 4,        // reserved: another token is another job
    terms = 5,        // terms of members differ
    place = 6,        // two members claim one position
    restarted = 7,    // the state of the server is lost: form the job again
    parent = 8,       // the switch does not reach its parent
    unsupported = 9,  // the switch does not support this
    key = 10,         // the switch has tenants, and the JOIN proves no key of them
};

// What an edge connects. The named end is the one that is silent, ended or at fault.
enum class EdgeKind : std::uint8_t {
    member = 1,    // a member and its switch: the member
    leaf = 2,      // the switch of a unit and the root: the switch of the unit
    parent = 3,    // a switch and its parent: the parent
    server = 4,    // the last switch and the host of the server: the host
    path_mtu = 5,  // a member and its switch: `detail` is the MTU of this path
};

// How the failure of an edge was found.
enum class Evidence : std::uint8_t {
    silence = 1,        // nothing was received for the hold time
    left = 2,           // a LEAVE without a cause
    closed = 3,         // ICMP: no process has the port
    too_long = 4,       // the sender's kernel or ICMP: a packet does not fit the path
    one_direction = 5,  // the named end receives nothing, but is heard
    paused = 6,         // the process of the named end did not run, as it found itself
};

// Address of a parameter server that does not run on the last switch, or multicast group of a channel's results.
struct Endpoint {
    std::uint8_t family = 0;           // 4 or 6; 0: none
    std::uint16_t port = 0;            // UDP port
    std::array<std::byte, 16> host{};  // the first 4 bytes for IPv4

    bool operator==(const Endpoint&) const = default;
};

// A link of the tree that failed, and the end of it that the finder names.
struct Edge {
    EdgeKind kind = EdgeKind::member;       // what the edge connects
    Evidence evidence = Evidence::silence;  // how the failure was found
    std::uint8_t unit = 0;                  // unit of the member, or of the switch
    std::uint8_t member = 0;                // bit of the member in its unit; 0 for a switch
    std::uint32_t silent_ms = 0;            // milliseconds since the finder received something on this edge
    std::uint32_t detail = 0;               // path MTU in bytes with IP headers, 0 if it is not known; otherwise 0
    // address of the named end as the finder has it, of the switch if a member receives nothing, or family 0
    Endpoint at{};

    bool operator==(const Edge&) const = default;
};

// What some members say that they called, after their operations differed.
struct Statement {
    std::uint16_t count = 0;  // members that say so
    std::uint8_t unit = 0;    // unit of one of them
    std::uint8_t member = 0;  // bit of that member in its unit
    std::string text{};       // the operation, its size and its type

    bool operator==(const Statement&) const = default;
};

// Which member the others wait for.
struct Pace {
    // of the time in which the packets of one child alone were missing, the share of this member or its unit; 0: not
    // known
    std::uint8_t share_percent = 0;
    std::uint8_t last_percent = 0;      // share of the fragments that it completed as the last one
    std::uint8_t unit = 0;              // its unit
    std::uint8_t member = 0;            // its bit in the unit; 0 if `whole_unit`
    bool whole_unit = false;            // no member of the unit is known to be the reason
    std::uint16_t waited_permille = 0;  // share of the whole time in which only its packets were missing

    bool operator==(const Pace&) const = default;
};

// The members of one unit that join: all of them, or one.
struct JoiningUnit {
    std::uint8_t unit = 0;               // bit of bitmap1
    std::uint32_t members = 0;           // members that join with this message, as bits of bitmap0
    std::uint32_t mask0 = 0;             // all members of the unit
    bool direct = false;                 // the unit is one worker under the switch of the server
    std::vector<std::uint16_t> ranks{};  // ranks of `members`, lowest bit first

    bool operator==(const JoiningUnit&) const = default;
};

// Terms of a channel, equal in the JOINs of all members.
struct ChannelTerms {
    std::uint32_t job = 0;          // number of the job
    std::uint64_t token = 0;        // of the incarnation
    std::uint16_t channel = 0;      // number of the channel in the job
    std::uint16_t lanes = 0;        // lanes of a full fragment, the audit lane included
    std::uint8_t window_log2 = 0;   // log2 of the slots W
    bool audit = false;             // packets carry the audit lane
    std::uint32_t aggregators = 0;  // the number for the index function; 0 makes every index 0
    std::uint32_t first_seq = 0;    // number of the first fragment
    std::uint32_t mask1 = 0;        // all units of the job
    double scale = 0;               // factor of floats
    Endpoint server{};              // where the server runs; family 0: on the last switch
    Endpoint group{};               // family 0: each member gets its own copy of a result
    Endpoint root{};  // switch of level 1 above all switches of level 0; family 0: each has a parent of its own

    [[nodiscard]] bool has_single_unit() const { return std::has_single_bit(mask1); }
    bool operator==(const ChannelTerms&) const = default;
};

// What proves that the sender of a JOIN has a key. It begins at `code_at`, in front of the padding.
struct JoinCode {
    std::uint32_t key = 0;  // id of the key
    // of a switch that joins for a tenant of its own: id of that tenant's key; 0: the tenant of `key`
    std::uint32_t charged = 0;
    std::string name{};                // of the switch at which the key joins
    std::array<std::byte, 16> code{};  // code of all bytes in front of it

    bool operator==(const JoinCode&) const = default;
};

// What proves that a JOINED comes from a switch that has the key of its receiver.
struct JoinedCode {
    std::uint64_t cookie = 0;          // of the receiver's next JOIN
    std::uint64_t boot = 0;            // of the RETRY, for others who have the key
    std::uint32_t key = 0;             // id of the key with which the receiver joined
    std::uint32_t charged = 0;         // id of the key whose tenant has the job: of the JOIN, or `key`
    std::array<std::byte, 16> code{};  // code of all bytes in front of it

    bool operator==(const JoinedCode&) const = default;
};

// What proves that a REFUSED or LEAVE comes from the other end of the session.
struct PlainCode {
    std::array<std::byte, 16> code{};  // code of all bytes in front of it

    bool operator==(const PlainCode&) const = default;
};

// JOIN: a worker, or a switch for all members below it, joins a channel. Sent by: worker, switch.
struct Join {
    // random, new at each start of the sender and for each channel that a switch joins; answers repeat it
    std::uint64_t nonce = 0;
    ChannelTerms terms{};      // equal in the JOINs of all members
    std::uint64_t cookie = 0;  // of the last RETRY of the receiver; 0: none
    std::uint32_t epoch = 0;   // number of this JOIN or LEAVE of the sender in the channel, from 1
    std::uint8_t level = 0;    // level of the receiver: 0 and 1 aggregate, 2 hosts the server only
    bool begun = false;  // the sender, or a member below it, received `ready` before: the server must know the channel
    bool receives_group = false;  // a packet to the group of the terms arrived here recently
    // a switch in the path of a member adds only int32 lanes: set by that switch, or by a receiver of such a JOIN
    bool int32_path = false;
    std::array<std::byte, 16> ticket{};  // of the last JOINED of the receiver that had one; 0: none
    std::vector<JoiningUnit> units{};    // the units that join
    Pace pace{};                         // among the members below the sender
    std::vector<Edge> edges{};           // why the sender misses a member, or its parent
    // of the sender and the members below it, at most one for each text; none: nothing differed
    std::vector<Statement> statements{};
    // what people call the job; empty, or missing in a JOIN of an earlier program: it has no name
    std::string job_name{};
};

// JOINED: state of the tree; `ready` if it is complete up to the server. Sent by: switch. It has the job and channel of
// the JOIN.
struct Joined {
    std::uint64_t nonce = 0;  // of the JOIN; 0 in a JOINED to a group
    std::uint32_t job = 0;
    std::uint64_t token = 0;  // of the JOIN; in a JOINED to a group, the group number
    std::uint16_t channel = 0;
    std::uint32_t epoch = 0;   // of the last JOIN of the receiver; 0 in a JOINED to a group
    std::uint32_t number = 0;  // number of this JOINED of the sending process, from 1
    // random: results by group carry it instead of the token; 0: no results come by group
    std::uint64_t group_number = 0;
    bool ready = false;                 // at each level up to the server all members are there, and the server exists
    std::uint32_t missing_units = 0;    // units of which a member's JOIN is missing
    std::uint32_t missing_members = 0;  // members of the receiver's unit whose JOIN is missing
    bool int32_lanes = false;           // if ready: integers of int16 and int8 are sent as int32 in this incarnation
    std::uint32_t hold_ms = 0;          // hold time of the sender in milliseconds; 0: not stated
    // proves in later JOINs, also to the next process of this switch, that the channel was ready here; 0: none, and in
    // a JOINED to a group
    std::array<std::byte, 16> ticket{};
    Pace pace{};                          // among all members, as far as the sender knows it
    std::vector<Edge> edges{};            // why the tree is no longer ready
    std::vector<Statement> statements{};  // of all members that have stated one
};

// REFUSED: the request is refused, with the reason. Sent by: switch. It has the nonce, job, token and channel of the
// request.
struct Refused {
    std::uint64_t nonce = 0;
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint16_t channel = 0;
    Refusal reason = Refusal::malformed;  // see REFUSED
    std::string text{};                   // for people
};

// LEAVE: a member leaves. Sent by: worker, switch. It has the nonce, job, token and channel of the JOIN.
struct Leave {
    std::uint64_t nonce = 0;
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint16_t channel = 0;
    std::uint32_t epoch = 0;    // number of this JOIN or LEAVE of the sender in the channel, from 1
    std::uint8_t unit = 0;      // unit of the member
    std::uint8_t member = 0;    // bit of the member in its unit
    std::vector<Edge> edges{};  // why the member failed; none: it leaves in order
};

// RETRY: repeat the JOIN or STATS with this cookie. Sent by: switch.
struct Retry {
    std::uint64_t nonce = 0;    // of the JOIN or STATS
    std::uint32_t job = 0;      // of the JOIN; 0 for a STATS
    std::uint64_t token = 0;    // of the JOIN; 0 for a STATS
    std::uint16_t channel = 0;  // of the JOIN; 0 for a STATS
    std::uint64_t cookie = 0;   // proves that the sender receives at its address
    // random for each start of the switch, for the codes of its sessions; 0: it asks for no key
    std::uint64_t boot = 0;
    // of the switch, at which keys join; "*": it has the tenant's own key; empty: it asks for no key
    std::string name{};
};

// The name, such as "restarted"; "unknown" for other values.
[[nodiscard]] std::string_view to_string(Refusal value);
[[nodiscard]] std::string_view to_string(EdgeKind value);
[[nodiscard]] std::string_view to_string(Evidence value);

// End of the written part.

}  // namespace atp::wire
