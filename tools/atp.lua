-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissector for packets and control messages of ATP: docs/reference/traces.md#captures.
--
-- usage: wireshark -X lua_script:tools/atp.lua, tshark -X lua_script:tools/atp.lua, or a copy in the folder of plugins.
-- UDP port 4790 is taken for ATP; datagrams of other ports if their first bytes fit. Wireshark 3.6 or later.

-- tools/write_wire writes the tables from src/machines/wire/wire.toml.
local VERSION = 0xA5
local CONTROL_VERSION = 0xA5
local HEADER_BYTES = 56
local LANE_BYTES = 4
local PREFIX_BYTES = 4

local ENUMS = {
    type = {
        { number = 1, name = "GRADIENT", text = "up: lanes of one worker, or a sum of several" },
        { number = 2, name = "ACK", text = "down: the sum; releases the aggregator" },
        { number = 3, name = "NACK", text = "down: the workers in the bitmaps send seq again" },
        { number = 4, name = "PROBE", text = "up: this worker has sent seq and has no ACK" },
        { number = 5, name = "WAIT", text = "down: answer to a PROBE that needs no resend; argument 1: mismatched" },
        { number = 6, name = "FLUSH", text = "down: the switch at level `hop` returns its partial sum of seq and releases the aggregator" },
        { number = 7, name = "READY", text = "up: this worker takes the results before `argument`" },
        { number = 8, name = "ACK_LIST", text = "down: ACKs without lanes of several fragments, whose aggregators are free" },
    },
    flag = {
        { number = 1, name = "RESEND", text = "sent again: never claims; fetches the partial sum of level 0" },
        { number = 2, name = "BYPASS", text = "no switch aggregates it; on a NACK: resend with BYPASS, and release the aggregator" },
        { number = 4, name = "COLLISION", text = "its aggregator held another fragment" },
        { number = 8, name = "ECN", text = "a contribution met congestion on its way up" },
        { number = 16, name = "OVERFLOW", text = "a sum overflowed: the lanes are invalid" },
        { number = 32, name = "WHOLE", text = "each unit in bitmap1 is included with all its members; bitmap0 has no meaning" },
        { number = 64, name = "AUDIT", text = "the last lane is the audit lane, a sum modulo 2^32" },
        { number = 128, name = "PLAIN", text = "unscaled integers; the result is integers too" },
        { number = 256, name = "ALTERNATE_FREE", text = "the alternate aggregator of the fragment is free" },
        { number = 512, name = "ONE_SENDER", text = "the lanes of one worker are the result" },
        { number = 1024, name = "ECN_DOWN", text = "a worker met congestion on its downlink" },
        { number = 2048, name = "PROOF", text = "the last four lanes are proof words, sums modulo 2^32; excludes AUDIT" },
        { number = 4096, name = "LAST_RANK", text = "last packet of the last rank of a member" },
    },
    dtype = {
        { number = 0, name = "NONE", text = "header only" },
        { number = 1, name = "INT32", text = "one element in each lane" },
        { number = 2, name = "FLOAT32", text = "one element in each lane" },
        { number = 3, name = "INT16", text = "two elements in each lane" },
        { number = 4, name = "INT8", text = "four elements in each lane" },
    },
    refusal = {
        { number = 1, name = "VERSION", text = "the sender uses another version" },
        { number = 2, name = "MALFORMED", text = "undecodable" },
        { number = 3, name = "FULL", text = "no free entry for another job or channel" },
        { number = 4, name = "TOKEN", text = "reserved: another token is another job" },
        { number = 5, name = "TERMS", text = "terms of members differ" },
        { number = 6, name = "PLACE", text = "two members claim one position" },
        { number = 7, name = "RESTARTED", text = "the state of the server is lost: form the job again" },
        { number = 8, name = "PARENT", text = "the switch does not reach its parent" },
        { number = 9, name = "UNSUPPORTED", text = "the switch does not support this" },
        { number = 10, name = "KEY", text = "the switch has tenants, and the JOIN proves no key of them" },
    },
    edge_kind = {
        { number = 1, name = "MEMBER", text = "a member and its switch: the member" },
        { number = 2, name = "LEAF", text = "the switch of a unit and the root: the switch of the unit" },
        { number = 3, name = "PARENT", text = "a switch and its parent: the parent" },
        { number = 4, name = "SERVER", text = "the last switch and the host of the server: the host" },
        { number = 5, name = "PATH_MTU", text = "a member and its switch: `detail` is the MTU of this path" },
    },
    evidence = {
        { number = 1, name = "SILENCE", text = "nothing was received for the hold time" },
        { number = 2, name = "LEFT", text = "a LEAVE without a cause" },
        { number = 3, name = "CLOSED", text = "ICMP: no process has the port" },
        { number = 4, name = "TOO_LONG", text = "the sender's kernel or ICMP: a packet does not fit the path" },
        { number = 5, name = "ONE_DIRECTION", text = "the named end receives nothing, but is heard" },
        { number = 6, name = "PAUSED", text = "the process of the named end did not run, as it found itself" },
    },
}

local PACKET = {
    { name = "version", kind = "u8", text = "ATP_VERSION", size = 1 },
    { name = "type", kind = "u8", text = "enum atp_type", size = 1, enum = "type", least = 1, most = 8 },
    { name = "flags", kind = "u16", text = "enum atp_flag", size = 2, flags = "flag", most = 8191 },
    { name = "hop", kind = "u8", text = "next level that may aggregate it; FLUSH: the level addressed", size = 1, most = 2 },
    { name = "lanes", kind = "u8", text = "type and form of the words", size = 1, parts = { { name = "form", mask = 240, text = "form that all workers use for the fragment: 1 int32, 3 int16, 4 int8; 0 in a packet without lanes" }, { name = "type", mask = 15, text = "type of the words: 0 none, 1 int32, 2 float32, 3 int16, 4 int8. NACK: the type that the server requests" } } },
    { name = "window_log2", kind = "u8", text = "log2 of the slots W: lets a switch derive that seq - W is finished", size = 1, most = 16 },
    { name = "scale", kind = "u8", text = "of scaled integers: 2^(scale - 128), 0: the scale of the job", size = 1 },
    { name = "job", kind = "u32", text = "number of the job", size = 4, hex = true },
    { name = "channel", kind = "u16", text = "number of the channel in the job", size = 2 },
    { name = "worker", kind = "u16", text = "up: sender; down: receiver, or ATP_WORKER_ALL", size = 2 },
    { name = "token", kind = "u64", text = "random for each incarnation of a job, which it identifies and authorises; never 0", size = 8, hex = true, least = 1 },
    { name = "seq", kind = "u32", text = "number of the fragment", size = 4 },
    { name = "index", kind = "u32", text = "index of the aggregator", size = 4 },
    { name = "argument", kind = "u32", text = "ACK: index for seq + W; GRADIENT: purpose and format; WAIT: 1 if mismatched; READY: end of what it takes", size = 4 },
    { name = "peer", kind = "u16", text = "owner of the fragment; answers about others: worker whose packet caused them; ATP_WORKER_ALL: all or none", size = 2 },
    { name = "sending", kind = "u8", text = "number of this sending of the fragment, modulo 256; answers repeat that of the packet that caused them", size = 1 },
    { name = "part", kind = "u8", text = "part of a fragment that travels in several packets", size = 1, parts = { { name = "packet", mask = 192, text = "number of the packet, if words wider than the form need several. NACK: 0, since the worker sends all packets again" }, { name = "rank", mask = 63, text = "rank within the member, from 1; 0: the whole member" } } },
    { name = "bitmap0", kind = "u32", text = "included members of one unit; down: members addressed", size = 4, hex = true },
    { name = "mask0", kind = "u32", text = "all members of that unit", size = 4, hex = true },
    { name = "bitmap1", kind = "u32", text = "included units, or the unit of bitmap0", size = 4, hex = true },
    { name = "mask1", kind = "u32", text = "all units of the job", size = 4, hex = true },
}

local PREFIX = {
    { name = "version", kind = "u8", text = "`0xA5`", size = 1 },
    { name = "type", kind = "u8", text = "16 to 24", size = 1 },
    { name = "code_at", kind = "u16", text = "bytes in front of the [code](codes.md) that ends the message; 0: it has none", size = 2 },
}

local STRUCTS = {
    endpoint = {
        { name = "family", kind = "u8", text = "4 or 6; 0: none", size = 1 },
        { name = "port", kind = "u16", text = "UDP port", size = 2 },
        { name = "host", kind = "bytes", text = "the first 4 bytes for IPv4", size = 16 },
    },
    edge = {
        { name = "kind", kind = "u8", text = "what the edge connects", size = 1, enum = "edge_kind", least = 1, most = 5 },
        { name = "evidence", kind = "u8", text = "how the failure was found", size = 1, enum = "evidence", least = 1, most = 6 },
        { name = "unit", kind = "u8", text = "unit of the member, or of the switch", size = 1, most = 31 },
        { name = "member", kind = "u8", text = "bit of the member in its unit; 0 for a switch", size = 1, most = 31 },
        { name = "silent_ms", kind = "u32", text = "milliseconds since the finder received something on this edge", size = 4 },
        { name = "detail", kind = "u32", text = "path MTU in bytes with IP headers, 0 if it is not known; otherwise 0", size = 4 },
        { name = "at", kind = "endpoint", text = "address of the named end as the finder has it, of the switch if a member receives nothing, or family 0" },
    },
    statement = {
        { name = "count", kind = "u16", text = "members that say so", size = 2, least = 1 },
        { name = "unit", kind = "u8", text = "unit of one of them", size = 1, most = 31 },
        { name = "member", kind = "u8", text = "bit of that member in its unit", size = 1, most = 31 },
        { name = "text", kind = "text", text = "the operation, its size and its type" },
    },
    pace = {
        { name = "share_percent", kind = "u8", text = "of the time in which the packets of one child alone were missing, the share of this member or its unit; 0: not known", size = 1, most = 100 },
        { name = "last_percent", kind = "u8", text = "share of the fragments that it completed as the last one", size = 1, most = 100 },
        { name = "unit", kind = "u8", text = "its unit", size = 1, most = 31 },
        { name = "member", kind = "u8", text = "its bit in the unit; 0 if `whole_unit`", size = 1, most = 31 },
        { name = "whole_unit", kind = "flag", text = "no member of the unit is known to be the reason", size = 1 },
        { name = "waited_permille", kind = "u16", text = "share of the whole time in which only its packets were missing", size = 2, most = 1000 },
    },
    unit = {
        { name = "unit", kind = "u8", text = "bit of bitmap1", size = 1 },
        { name = "direct", kind = "flag", text = "the unit is one worker under the switch of the server", size = 1 },
        { name = "members", kind = "u32", text = "members that join with this message, as bits of bitmap0", size = 4, hex = true },
        { name = "mask0", kind = "u32", text = "all members of the unit", size = 4, hex = true },
        { name = "ranks", kind = "list", text = "ranks of `members`, lowest bit first", each = "u16", bits_of = "members" },
    },
    terms = {
        { name = "job", kind = "u32", text = "number of the job", size = 4, hex = true },
        { name = "token", kind = "u64", text = "of the incarnation", size = 8, hex = true, least = 1 },
        { name = "channel", kind = "u16", text = "number of the channel in the job", size = 2 },
        { name = "lanes", kind = "u16", text = "lanes of a full fragment, the audit lane included", size = 2, least = 1, most = 16362 },
        { name = "window_log2", kind = "u8", text = "log2 of the slots W", size = 1, most = 16 },
        { name = "audit", kind = "flag", text = "packets carry the audit lane", size = 1 },
        { name = "aggregators", kind = "u32", text = "the number for the index function; 0 makes every index 0", size = 4 },
        { name = "first_seq", kind = "u32", text = "number of the first fragment", size = 4 },
        { name = "mask1", kind = "u32", text = "all units of the job", size = 4, hex = true },
        { name = "scale", kind = "f64", text = "factor of floats", size = 8 },
        { name = "server", kind = "endpoint", text = "where the server runs; family 0: on the last switch" },
        { name = "group", kind = "endpoint", text = "family 0: each member gets its own copy of a result" },
        { name = "root", kind = "endpoint", text = "switch of level 1 above all switches of level 0; family 0: each has a parent of its own" },
    },
    join_code = {
        { name = "key", kind = "u32", text = "id of the key", size = 4, least = 1 },
        { name = "charged", kind = "u32", text = "of a switch that joins for a tenant of its own: id of that tenant's key; 0: the tenant of `key`", size = 4 },
        { name = "name", kind = "text", text = "of the switch at which the key joins" },
        { name = "code", kind = "bytes", text = "code of all bytes in front of it", size = 16 },
    },
    joined_code = {
        { name = "cookie", kind = "u64", text = "of the receiver's next JOIN", size = 8, hex = true, least = 1 },
        { name = "boot", kind = "u64", text = "of the RETRY, for others who have the key", size = 8, hex = true, least = 1 },
        { name = "key", kind = "u32", text = "id of the key with which the receiver joined", size = 4, least = 1 },
        { name = "charged", kind = "u32", text = "id of the key whose tenant has the job: of the JOIN, or `key`", size = 4, least = 1 },
        { name = "code", kind = "bytes", text = "code of all bytes in front of it", size = 16 },
    },
    plain_code = {
        { name = "code", kind = "bytes", text = "code of all bytes in front of it", size = 16 },
    },
    path_switch = {
        { name = "id", kind = "u64", text = "random, new at each start", size = 8, hex = true },
        { name = "aggregators", kind = "u32", text = "that one channel can use", size = 4 },
        { name = "lanes", kind = "u16", text = "of one aggregator", size = 2 },
    },
}

local MESSAGES = {
    [16] = { name = "join", text = "a worker, or a switch for all members below it, joins a channel", fields = {
        { name = "nonce", kind = "u64", text = "random, new at each start of the sender and for each channel that a switch joins; answers repeat it", size = 8, hex = true },
        { name = "terms", kind = "terms", text = "equal in the JOINs of all members" },
        { name = "cookie", kind = "u64", text = "of the last RETRY of the receiver; 0: none", size = 8, hex = true },
        { name = "epoch", kind = "u32", text = "number of this JOIN or LEAVE of the sender in the channel, from 1", size = 4 },
        { name = "level", kind = "u8", text = "level of the receiver: 0 and 1 aggregate, 2 hosts the server only", size = 1, most = 2 },
        { name = "begun", kind = "flag", text = "the sender, or a member below it, received `ready` before: the server must know the channel", size = 1 },
        { name = "receives_group", kind = "flag", text = "a packet to the group of the terms arrived here recently", size = 1 },
        { name = "int32_path", kind = "flag", text = "a switch in the path of a member adds only int32 lanes: set by that switch, or by a receiver of such a JOIN", size = 1 },
        { name = "ticket", kind = "bytes", text = "of the last JOINED of the receiver that had one; 0: none", size = 16 },
        { name = "unit_count", kind = "u8", text = "number of units", size = 1, counts = "units" },
        { name = "units", kind = "list", text = "the units that join", each = "unit", count = "unit_count" },
        { name = "pace", kind = "pace", text = "among the members below the sender" },
        { name = "edge_count", kind = "u8", text = "number of edges", size = 1, counts = "edges" },
        { name = "edges", kind = "list", text = "why the sender misses a member, or its parent", each = "edge", count = "edge_count" },
        { name = "statement_count", kind = "u8", text = "number of statements", size = 1, counts = "statements" },
        { name = "statements", kind = "list", text = "of the sender and the members below it, at most one for each text; none: nothing differed", each = "statement", count = "statement_count" },
        { name = "job_name", kind = "text", text = "what people call the job; empty, or missing in a JOIN of an earlier program: it has no name", later = true },
    } },
    [17] = { name = "joined", text = "state of the tree; `ready` if it is complete up to the server", fields = {
        { name = "nonce", kind = "u64", text = "of the JOIN; 0 in a JOINED to a group", size = 8, hex = true },
        { name = "job", kind = "u32", text = "of the JOIN", size = 4, hex = true },
        { name = "token", kind = "u64", text = "of the JOIN; in a JOINED to a group, the group number", size = 8, hex = true },
        { name = "channel", kind = "u16", text = "of the JOIN", size = 2 },
        { name = "epoch", kind = "u32", text = "of the last JOIN of the receiver; 0 in a JOINED to a group", size = 4 },
        { name = "number", kind = "u32", text = "number of this JOINED of the sending process, from 1", size = 4 },
        { name = "group_number", kind = "u64", text = "random: results by group carry it instead of the token; 0: no results come by group", size = 8, hex = true },
        { name = "ready", kind = "flag", text = "at each level up to the server all members are there, and the server exists", size = 1 },
        { name = "missing_units", kind = "u32", text = "units of which a member's JOIN is missing", size = 4, hex = true },
        { name = "missing_members", kind = "u32", text = "members of the receiver's unit whose JOIN is missing", size = 4, hex = true },
        { name = "int32_lanes", kind = "flag", text = "if ready: integers of int16 and int8 are sent as int32 in this incarnation", size = 1 },
        { name = "hold_ms", kind = "u32", text = "hold time of the sender in milliseconds; 0: not stated", size = 4 },
        { name = "ticket", kind = "bytes", text = "proves in later JOINs, also to the next process of this switch, that the channel was ready here; 0: none, and in a JOINED to a group", size = 16 },
        { name = "pace", kind = "pace", text = "among all members, as far as the sender knows it" },
        { name = "edge_count", kind = "u8", text = "number of edges", size = 1, counts = "edges" },
        { name = "edges", kind = "list", text = "why the tree is no longer ready", each = "edge", count = "edge_count" },
        { name = "statement_count", kind = "u8", text = "number of statements", size = 1, counts = "statements" },
        { name = "statements", kind = "list", text = "of all members that have stated one", each = "statement", count = "statement_count" },
    } },
    [18] = { name = "refused", text = "the request is refused, with the reason", fields = {
        { name = "nonce", kind = "u64", text = "of the request", size = 8, hex = true },
        { name = "job", kind = "u32", text = "of the request", size = 4, hex = true },
        { name = "token", kind = "u64", text = "of the request", size = 8, hex = true },
        { name = "channel", kind = "u16", text = "of the request", size = 2 },
        { name = "reason", kind = "u8", text = "see REFUSED", size = 1, enum = "refusal", least = 1, most = 10 },
        { name = "text", kind = "text", text = "for people" },
    } },
    [19] = { name = "leave", text = "a member leaves", fields = {
        { name = "nonce", kind = "u64", text = "of the JOIN", size = 8, hex = true },
        { name = "job", kind = "u32", text = "of the JOIN", size = 4, hex = true },
        { name = "token", kind = "u64", text = "of the JOIN", size = 8, hex = true, least = 1 },
        { name = "channel", kind = "u16", text = "of the JOIN", size = 2 },
        { name = "epoch", kind = "u32", text = "number of this JOIN or LEAVE of the sender in the channel, from 1", size = 4 },
        { name = "unit", kind = "u8", text = "unit of the member", size = 1, most = 31 },
        { name = "member", kind = "u8", text = "bit of the member in its unit", size = 1, most = 31 },
        { name = "edge_count", kind = "u8", text = "number of edges", size = 1, counts = "edges" },
        { name = "edges", kind = "list", text = "why the member failed; none: it leaves in order", each = "edge", count = "edge_count" },
    } },
    [20] = { name = "hello", text = "requests the path of a switch, and tests whether a message of this length arrives", fields = {
        { name = "nonce", kind = "u64", text = "random; the answer repeats it", size = 8, hex = true },
    } },
    [21] = { name = "welcome", text = "answer to a HELLO, as long up to 9,000 bytes, with its ECN bits", fields = {
        { name = "nonce", kind = "u64", text = "of the HELLO", size = 8, hex = true },
        { name = "received_bytes", kind = "u32", text = "length of the HELLO as received", size = 4 },
        { name = "switch_count", kind = "u8", text = "number of switches", size = 1, counts = "path" },
        { name = "path", kind = "list", text = "from the receiver of the HELLO to the root", each = "path_switch", count = "switch_count" },
        { name = "software", kind = "text", text = "such as \"atp 0.1.0\"" },
    } },
    [22] = { name = "stats", text = "requests one part of a report; as long as the longest REPORT", fields = {
        { name = "nonce", kind = "u64", text = "random; the answer repeats it", size = 8, hex = true },
        { name = "snapshot", kind = "u32", text = "0: current state; otherwise the snapshot that part 0 named", size = 4 },
        { name = "part", kind = "u16", text = "from 0", size = 2 },
        { name = "cookie", kind = "u64", text = "of the last RETRY to a STATS of this address; 0: none", size = 8, hex = true },
    } },
    [23] = { name = "report", text = "that part of the report", fields = {
        { name = "nonce", kind = "u64", text = "of the STATS", size = 8, hex = true },
        { name = "snapshot", kind = "u32", text = "number of the report", size = 4 },
        { name = "part", kind = "u16", text = "of this text", size = 2 },
        { name = "parts", kind = "u16", text = "of the report", size = 2 },
        { name = "text", kind = "text", text = "part of the report, JSON" },
    } },
    [24] = { name = "retry", text = "repeat the JOIN or STATS with this cookie", fields = {
        { name = "nonce", kind = "u64", text = "of the JOIN or STATS", size = 8, hex = true },
        { name = "job", kind = "u32", text = "of the JOIN; 0 for a STATS", size = 4, hex = true },
        { name = "token", kind = "u64", text = "of the JOIN; 0 for a STATS", size = 8, hex = true },
        { name = "channel", kind = "u16", text = "of the JOIN; 0 for a STATS", size = 2 },
        { name = "cookie", kind = "u64", text = "proves that the sender receives at its address", size = 8, hex = true, least = 1 },
        { name = "boot", kind = "u64", text = "random for each start of the switch, for the codes of its sessions; 0: it asks for no key", size = 8, hex = true },
        { name = "name", kind = "text", text = "of the switch, at which keys join; \"*\": it has the tenant's own key; empty: it asks for no key" },
    } },
}
-- End of the written part.

local PORT = 4790
local PREFIX = "atpnet" -- of filters: Wireshark knows AppleTalk's protocol as "atp"
local LANES_SHOWN = 64 -- as numbers; atpnet.payload has the bytes of all

local atp = Proto(PREFIX, "ATP, aggregation in the network")
local expert_cut = ProtoExpert.new(PREFIX .. ".cut", "The datagram ends before its last field",
    expert.group.MALFORMED, expert.severity.ERROR)
local expert_limit = ProtoExpert.new(PREFIX .. ".limit", "The value is outside its range",
    expert.group.PROTOCOL, expert.severity.WARN)
atp.experts = { expert_cut, expert_limit }

local MAKERS = {
    u8 = ProtoField.uint8, u16 = ProtoField.uint16, u32 = ProtoField.uint32, u64 = ProtoField.uint64,
}
local registered = {}

local all_fields = {}

local function register(name, field)
    registered[name] = field
    table.insert(all_fields, field)
end

local function names_of(enum)
    local names = {}
    for _, value in ipairs(ENUMS[enum]) do
        names[value.number] = value.name
    end
    return names
end

-- Adds the filter field of `field` with the name `path`, and one for each of its bits that has a name.
local function register_field(path, field)
    if registered[path] then
        return
    end
    local maker = MAKERS[field.kind]
    if maker then
        local display = (field.hex or field.flags) and base.HEX or base.DEC
        register(path, maker(path, field.name, display, field.enum and names_of(field.enum) or nil, nil, field.text))
    elseif field.kind == "flag" then
        register(path, ProtoField.bool(path, field.name, base.NONE, nil, nil, field.text))
    elseif field.kind == "f64" then
        register(path, ProtoField.double(path, field.name))
    elseif field.kind == "text" then
        register(path, ProtoField.string(path, field.name, base.UNICODE, field.text))
    else
        register(path, ProtoField.bytes(path, field.name, base.NONE, field.text))
    end
    if field.flags then
        for _, value in ipairs(ENUMS[field.flags]) do
            local name = path .. "." .. value.name:lower()
            register(name, ProtoField.bool(name, value.name, 8 * field.size, nil, value.number, value.text))
        end
    end
    for _, part in ipairs(field.parts or {}) do
        local name = path .. "." .. part.name
        register(name, maker(name, part.name, base.DEC, nil, part.mask, part.text))
    end
end

local in_packet = {}
for _, field in ipairs(PACKET) do
    in_packet[field.name] = field.kind
    register_field(PREFIX .. "." .. field.name, field)
end

-- A field of a message that a packet has too shares its name, so that one filter finds both.
local function path_of(prefix, field)
    if in_packet[field.name] == field.kind then
        return PREFIX .. "." .. field.name
    end
    return prefix .. "." .. field.name
end

local function register_fields(prefix, fields)
    for _, field in ipairs(fields) do
        local path = path_of(prefix, field)
        if STRUCTS[field.kind] then
            register_fields(path, STRUCTS[field.kind])
        elseif field.kind == "list" and STRUCTS[field.each] then
            register_fields(path, STRUCTS[field.each])
        elseif field.kind == "list" then
            register_field(path, { name = field.name, kind = field.each, text = field.text })
        else
            register_field(path, field)
        end
    end
end

local function register_own(name, maker, label, ...)
    register(PREFIX .. "." .. name, maker(PREFIX .. "." .. name, label, ...))
end

local message_names = {}
for number, message in pairs(MESSAGES) do
    message_names[number] = message.name:upper()
    register_fields(PREFIX .. "." .. message.name, message.fields)
end
for _, name in ipairs({ "join_code", "joined_code", "plain_code" }) do
    register_fields(PREFIX .. ".code", STRUCTS[name])
end
register_own("message", ProtoField.uint8, "message", base.DEC, message_names)
register_own("padding", ProtoField.bytes, "padding")
register_own("lane_count", ProtoField.uint32, "number of lanes")
register_own("payload", ProtoField.bytes, "lanes")
register_own("lane.int32", ProtoField.int32, "lane")
register_own("lane.float32", ProtoField.float, "lane")
register_own("lane.int16", ProtoField.int16, "element")
register_own("lane.int8", ProtoField.int8, "element")

atp.fields = all_fields

-- ---------------------------------------------------------------------------------------------------------- dissection

local LANES_TYPE_BITS = 16 -- the type of the words is `lanes` modulo this
local ELEMENT_BYTES = { INT16 = 2, INT8 = 1 } -- of elements that are shorter than a lane
local TYPES, DTYPES = names_of("type"), names_of("dtype")

local function own(name)
    return registered[PREFIX .. "." .. name]
end

local function number_of(range)
    return range:len() == 8 and range:uint64() or range:uint()
end

local function add_integer(tree, path, field, range)
    local item = tree:add(registered[path], range)
    local value = number_of(range)
    local function limit(number)
        return range:len() == 8 and UInt64(number) or number
    end
    if (field.least and value < limit(field.least)) or (field.most and value > limit(field.most)) then
        item:add_proto_expert_info(expert_limit)
    end
    if field.flags then
        for _, flag in ipairs(ENUMS[field.flags]) do
            item:add(registered[path .. "." .. flag.name:lower()], range)
        end
    end
    for _, part in ipairs(field.parts or {}) do
        item:add(registered[path .. "." .. part.name], range)
    end
    return value
end

local Reader = {}
Reader.__index = Reader

-- The next `size` bytes; nil behind the end, which the tree then shows.
function Reader:take(size)
    if self.cut or self.buffer:len() - self.at < size then
        if not self.cut then
            self.tree:add_proto_expert_info(expert_cut)
        end
        self.cut = true
        return nil
    end
    self.at = self.at + size
    return self.buffer(self.at - size, size)
end

local SIZES = { u8 = 1, u16 = 2, u32 = 4, u64 = 8, f64 = 8, flag = 1 }

local function bits_in(value)
    local count = 0
    while value ~= 0 do
        count = count + value % 2
        value = math.floor(value / 2)
    end
    return count
end

function Reader:struct(tree, path, name, fields)
    if self.at == self.buffer:len() then
        self:take(1)
        return
    end
    local begin = self.at
    local inner = tree:add(atp, self.buffer(begin), name)
    self:fields(inner, path, fields)
    inner:set_len(self.at - begin)
end

function Reader:items(tree, path, field, count)
    for _ = 1, count do
        if self.cut then
            return
        end
        if STRUCTS[field.each] then
            self:struct(tree, path, field.name, STRUCTS[field.each])
        else
            local range = self:take(SIZES[field.each])
            if range then
                tree:add(registered[path], range)
            end
        end
    end
end

function Reader:field(tree, path, field, values)
    if STRUCTS[field.kind] then
        self:struct(tree, path, field.name, STRUCTS[field.kind])
        return
    end
    if field.kind == "list" then
        self:items(tree, path, field, field.count and values[field.count] or bits_in(values[field.bits_of]))
        return
    end
    local size = field.size
    if field.kind == "text" then
        local length = self:take(2)
        size = length and length:uint() or 0
        if length and size == 0 then
            tree:add(registered[path], length, "")
        end
    elseif field.count then
        size = values[field.count]
    end
    local range = size > 0 and self:take(size)
    if not range then
        return
    end
    if MAKERS[field.kind] then
        values[field.name] = add_integer(tree, path, field, range)
    else
        tree:add(registered[path], range)
    end
end

function Reader:fields(tree, prefix, fields)
    local values = {}
    for _, field in ipairs(fields) do
        -- Earlier programs end a message in front of a later field.
        if self.cut or (field.later and self.at == self.stop) then
            return
        end
        self:field(tree, path_of(prefix, field), field, values)
    end
end

local function dissect_message(buffer, pinfo, tree)
    local message = MESSAGES[buffer(1, 1):uint()]
    tree:add(own("message"), buffer(1, 1))
    pinfo.cols.info = message.name:upper()
    local code_at = buffer(2, 2):uint()
    local stop = code_at ~= 0 and code_at or buffer:len()
    local reader = setmetatable({ buffer = buffer, at = PREFIX_BYTES, stop = stop, tree = tree }, Reader)
    reader:fields(tree, PREFIX .. "." .. message.name, message.fields)
    if not reader.cut and code_at == reader.at then
        reader:struct(tree, PREFIX .. ".code", "code", STRUCTS[message.name .. "_code"] or STRUCTS.plain_code)
    end
    if not reader.cut and reader.at < buffer:len() then
        tree:add(own("padding"), buffer(reader.at))
    end
end

local function add_lanes(buffer, tree, dtype)
    local bytes = buffer:len() - HEADER_BYTES
    tree:add(own("lane_count"), math.floor(bytes / LANE_BYTES)):set_generated()
    if bytes == 0 then
        return
    end
    local lanes = tree:add(own("payload"), buffer(HEADER_BYTES))
    local name = DTYPES[dtype]
    local field = own("lane." .. (name or ""):lower())
    local size = ELEMENT_BYTES[name] or LANE_BYTES
    for at = HEADER_BYTES, math.min(buffer:len() - size, HEADER_BYTES + LANES_SHOWN * LANE_BYTES - size), size do
        if field then
            lanes:add(field, buffer(at, size))
        end
    end
end

local function dissect_packet(buffer, pinfo, tree)
    if buffer:len() < HEADER_BYTES then
        tree:add_proto_expert_info(expert_cut)
        return
    end
    local at = 0
    local values = {}
    for _, field in ipairs(PACKET) do
        if field.kind == "zero" then
            tree:add(own(field.name), buffer(at, field.size))
        else
            values[field.name] = add_integer(tree, PREFIX .. "." .. field.name, field, buffer(at, field.size))
        end
        at = at + field.size
    end
    add_lanes(buffer, tree, values.lanes % LANES_TYPE_BITS)
    local lanes = math.floor((buffer:len() - HEADER_BYTES) / LANE_BYTES)
    local name = TYPES[values.type] or string.format("type %d", values.type)
    pinfo.cols.info = string.format("%s job=%08x ch=%d seq=%d w=%d hop=%d lanes=%d", name, values.job, values.channel,
        values.seq, values.worker, values.hop, lanes)
end

-- 0: the datagram is not of this version of ATP.
function atp.dissector(buffer, pinfo, tree)
    if buffer:len() < 2 then
        return 0
    end
    local version = buffer(0, 1):uint()
    local is_message = version == CONTROL_VERSION and buffer:len() >= PREFIX_BYTES and MESSAGES[buffer(1, 1):uint()]
    if version ~= VERSION and not is_message then
        return 0
    end
    pinfo.cols.protocol = "ATP"
    local branch = tree:add(atp, buffer())
    if is_message then
        dissect_message(buffer, pinfo, branch)
    else
        dissect_packet(buffer, pinfo, branch)
    end
    return buffer:len()
end

-- Ports of ranks are drawn by the system, and threads of a switch have ports of their own.
local function looks_like_atp(buffer, pinfo, tree)
    if buffer:len() < PREFIX_BYTES then
        return false
    end
    local version, kind = buffer(0, 1):uint(), buffer(1, 1):uint()
    local is_packet = version == VERSION and buffer:len() >= HEADER_BYTES and TYPES[kind] ~= nil
    local is_message = version == CONTROL_VERSION and MESSAGES[kind] ~= nil
    if not is_packet and not is_message then
        return false
    end
    atp.dissector(buffer, pinfo, tree)
    return true
end

atp:register_heuristic("udp", looks_like_atp)
DissectorTable.get("udp.port"):add(PORT, atp)
