// SPDX-License-Identifier: Apache-2.0
#include "decide_vectors.h"

#include <array>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "json_fields.h"

namespace atp::conformance {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t highest = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
constexpr std::uint32_t now_us = 9'000'000;
constexpr std::uint32_t ageing_us = 500'000;
constexpr std::uint32_t window = 256;
constexpr std::uint32_t seq = 1000;
constexpr std::uint16_t purpose = 0xC0DE;
constexpr std::uint64_t job_token = 0x5EEDFACE01234567;

constexpr std::array<std::string_view, 3> packet_action_names = {"drop", "forward", "return"};
constexpr std::array<std::string_view, 5> lanes_action_names = {"none", "store", "add", "add_emit", "emit"};
constexpr std::array<std::string_view, ATP_EVENT_COUNT> event_names = {
    "passed",     "claimed",    "added",   "completed", "single",  "duplicate", "reemitted",
    "collided",   "bypassed",   "late",    "resent",    "fetched", "released",  "expired",
    "taken_over", "superseded", "flushed", "closed",    "misfit"};

// A gradient at the switch of level `hop`: at level 0 of member `bit` of unit 2, at level 1 of the whole unit `bit`.
atp_header gradient(std::uint8_t hop, unsigned bit) {
    atp_header packet{};
    packet.version = ATP_VERSION;
    packet.type = ATP_TYPE_GRADIENT;
    packet.hop = hop;
    packet.lanes = ATP_INT32_LANES;
    packet.window_log2 = 8;
    packet.job = 0x01020304;
    packet.token = job_token;
    packet.channel = 0x0A0B;
    packet.worker = static_cast<std::uint16_t>(0x20 + bit);
    packet.seq = seq;
    packet.index = 5;
    packet.argument = purpose;
    packet.peer = ATP_WORKER_ALL;
    packet.sending = static_cast<std::uint8_t>(3 + bit);
    packet.bitmap0 = hop == 0 ? 1U << bit : 0xF;
    packet.mask0 = 0xF;
    packet.bitmap1 = hop == 0 ? 0x4 : 1U << bit;
    packet.mask1 = 0x7;
    return packet;
}

atp_header gradient_with(std::uint8_t hop, unsigned bit, unsigned flags) {
    atp_header packet = gradient(hop, bit);
    packet.flags = static_cast<std::uint16_t>(flags);
    return packet;
}

atp_header gradient_at(std::uint8_t hop, unsigned bit, std::uint32_t other_seq) {
    atp_header packet = gradient(hop, bit);
    packet.seq = other_seq;
    return packet;
}

atp_header down(atp_type type, std::uint8_t lanes, unsigned flags = 0) {
    atp_header packet = gradient_with(0, 0, flags);
    packet.type = static_cast<std::uint8_t>(type);
    packet.lanes = lanes;
    packet.worker = ATP_WORKER_ALL;
    packet.argument = type == ATP_TYPE_ACK ? 77 : 0;
    packet.bitmap0 = 0;
    packet.bitmap1 = 0x7;
    return packet;
}

atp_header flush(std::uint8_t hop) {
    atp_header packet = gradient(hop, 0);
    packet.type = ATP_TYPE_FLUSH;
    packet.lanes = ATP_DTYPE_NONE;
    packet.worker = ATP_WORKER_ALL;
    packet.argument = 0;
    packet.bitmap0 = hop == 0 ? 0x6 : 0;
    packet.mask0 = hop == 0 ? 0xF : 0;
    packet.bitmap1 = hop == 0 ? 0x4 : 0x7;
    return packet;
}

std::uint32_t full(std::uint8_t hop) { return hop == 0 ? 0xF : 0x7; }

// The aggregator of gradient(hop, …), which holds `bitmap` and was touched recently.
atp_aggregator holding(std::uint8_t hop, std::uint32_t bitmap, unsigned flags = 0) {
    atp_aggregator aggregator{};
    aggregator.job = 0x01020304;
    aggregator.token = job_token;
    aggregator.seq = seq;
    aggregator.channel = 0x0A0B;
    aggregator.status = bitmap == full(hop) ? ATP_AGGREGATOR_COMPLETE : ATP_AGGREGATOR_GATHERING;
    aggregator.bitmap = bitmap;
    aggregator.lanes = 3;
    aggregator.purpose = purpose;
    aggregator.flags = static_cast<std::uint8_t>(flags);
    aggregator.unit = hop == 0 ? 0x4 : 0;
    aggregator.touched_us = now_us - 100;
    return aggregator;
}

atp_aggregator released(atp_aggregator aggregator) {
    aggregator.status = ATP_AGGREGATOR_FREE;
    return aggregator;
}

atp_aggregator touched(atp_aggregator aggregator, std::uint32_t when_us) {
    aggregator.touched_us = when_us;
    return aggregator;
}

template <class Field, class Value>
atp_aggregator changed(atp_aggregator aggregator, Field atp_aggregator::*field, Value value) {
    aggregator.*field = static_cast<Field>(value);
    return aggregator;
}

template <class Field, class Value>
atp_header changed(atp_header packet, Field atp_header::*field, Value value) {
    packet.*field = static_cast<Field>(value);
    return packet;
}

atp_header short_gradient(std::uint8_t hop, unsigned bit) {
    return changed(gradient(hop, bit), &atp_header::lanes, ATP_INT16_LANES);
}

// Purpose of int16 fragments: workers use another one for fragments with wider lanes.
constexpr std::uint16_t purpose_of_shorts = purpose ^ 0x100;

atp_header gradient_of_shorts(std::uint8_t hop, unsigned bit, unsigned flags = 0) {
    atp_header packet = gradient_with(hop, bit, flags);
    packet.lanes = ATP_INT16_LANES;
    packet.argument = purpose_of_shorts;
    return packet;
}

atp_aggregator holding_shorts(std::uint8_t hop, std::uint32_t bitmap, unsigned flags = 0) {
    return changed(holding(hop, bitmap, flags | ATP_AGGREGATOR_INT16), &atp_aggregator::purpose, purpose_of_shorts);
}

// One lane with two int16 elements: `first` in the upper half, `second` in the lower half.
constexpr std::int32_t int16_lanes(int first, int second) {
    const auto bits = [](int number) { return static_cast<std::uint32_t>(number) & 0xFFFFU; };
    return static_cast<std::int32_t>(bits(first) << 16U | bits(second));
}

// Collects rows. Most rows use the same time and the same lanes.
class Table {
  public:
    void add(std::string description, atp_header packet, atp_aggregator aggregator, bool flush_here = false) {
        const bool has_lanes = packet.type == ATP_TYPE_GRADIENT || packet.type == ATP_TYPE_ACK;
        DecideLanes held{10, 20, -30};
        held.resize(aggregator.lanes);
        add_lanes(std::move(description), packet, has_lanes ? DecideLanes{1, -2, 300'000'000} : DecideLanes{},
                  aggregator, std::move(held), flush_here);
    }
    void add_lanes(std::string description, atp_header packet, DecideLanes lanes, atp_aggregator aggregator,
                   DecideLanes held, bool flush_here = false, std::uint32_t now = now_us) {
        DecideVector row;
        row.description = std::move(description) + (packet.hop == 0 ? ", level 0" : ", level 1");
        row.before = {.packet = packet, .lanes = std::move(lanes), .aggregator = aggregator, .held = std::move(held)};
        row.now_us = now;
        row.ageing_us = ageing_us;
        row.flush_here = flush_here;
        carry_out(row);
        rows_.push_back(std::move(row));
    }
    std::vector<DecideVector> take() { return std::move(rows_); }

  private:
    std::vector<DecideVector> rows_;
};

void add_gathering(Table& table, std::uint8_t hop) {
    const std::uint32_t all_but_1 = full(hop) & ~0x2U;
    table.add("a gradient claims an aggregator that was never used", gradient(hop, 0), atp_aggregator{});
    table.add("a claim keeps ecn, overflow and audit",
              gradient_with(hop, 0, ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_AUDIT), atp_aggregator{});
    table.add("a claim keeps plain", gradient_with(hop, 0, ATP_FLAG_PLAIN), atp_aggregator{});
    table.add("a gradient claims an aggregator released by another fragment", gradient_at(hop, 2, seq + 1),
              released(holding(hop, full(hop))));
    table.add("a gradient is added", gradient(hop, 1), holding(hop, 0x1));
    table.add("ecn and overflow of a gradient are added", gradient_with(hop, 1, ATP_FLAG_ECN | ATP_FLAG_OVERFLOW),
              holding(hop, 0x1));
    table.add("the last gradient leaves with the sum", gradient(hop, 1), holding(hop, all_but_1));
    table.add("the last gradient leaves with the flags of all", gradient_with(hop, 1, ATP_FLAG_AUDIT),
              holding(hop, all_but_1, ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_AUDIT));
    table.add("the last plain gradient leaves with the sum, plain", gradient_with(hop, 1, ATP_FLAG_PLAIN),
              holding(hop, all_but_1, ATP_FLAG_PLAIN));
    table.add("a plain duplicate after completion leaves with the result, plain", gradient_with(hop, 0, ATP_FLAG_PLAIN),
              holding(hop, full(hop), ATP_FLAG_PLAIN));
    table.add("a set that is all of its level passes without an aggregator",
              hop == 0 ? changed(gradient(0, 0), &atp_header::mask0, 0x1U)
                       : changed(gradient(1, 0), &atp_header::mask1, 0x1U),
              holding(hop, 0x1));
    table.add("a duplicate is absorbed, but its ecn counts", gradient_with(hop, 0, ATP_FLAG_ECN), holding(hop, 0x1));
    table.add("a duplicate after completion leaves with the result", gradient(hop, 0),
              holding(hop, full(hop), ATP_FLAG_ECN));
}

void add_overflow(Table& table, std::uint8_t hop) {
    const std::uint32_t all_but_1 = full(hop) & ~0x2U;
    table.add_lanes("an addition that leaves 32 bits upwards", gradient(hop, 1), {1, 1, 1}, holding(hop, 0x1),
                    {highest, 5, lowest});
    table.add_lanes("an addition that leaves 32 bits downwards", gradient(hop, 1), {-1, -1, lowest}, holding(hop, 0x1),
                    {lowest, 5, 0});
    table.add_lanes("the last addition leaves 32 bits", gradient(hop, 1), {1, 1, 1}, holding(hop, all_but_1),
                    {highest, highest - 1, -5});
    table.add_lanes("the extremes alone are no overflow", gradient(hop, 1), {0, 0, highest}, holding(hop, all_but_1),
                    {highest, lowest, 0});
    table.add_lanes("the lowest integer is an operand like any other", gradient_with(hop, 1, ATP_FLAG_PLAIN),
                    {lowest, lowest, 0}, holding(hop, all_but_1, ATP_FLAG_PLAIN), {0, highest, lowest});
    table.add_lanes("the audit lane wraps without overflow", gradient_with(hop, 1, ATP_FLAG_AUDIT), {1, 1, highest},
                    holding(hop, all_but_1, ATP_FLAG_AUDIT), {1, 1, highest});
}

// Every word is a different number, so that a switch that adds one to the wrong place fails.
void add_proofs(Table& table, std::uint8_t hop) {
    const atp_header packet = gradient_with(hop, 1, ATP_FLAG_PROOF);
    const auto holds = [hop](std::uint32_t bitmap, unsigned flags = 0) {
        return changed(holding(hop, bitmap, flags | ATP_AGGREGATOR_PROOF), &atp_aggregator::lanes, 6);
    };
    const DecideLanes addends{1, -2, highest, lowest, -1, 7};
    const DecideLanes held{10, 20, 1, -1, -1, 8};
    const atp_aggregator all_but_1 = holds(full(hop) & ~0x2U);
    table.add_lanes("proof words claim", packet, addends, atp_aggregator{}, {});
    table.add_lanes("proof words wrap without overflow", packet, addends, holds(0x1), held);
    table.add_lanes("the last gradient leaves with the proof words", packet, addends, all_but_1, held);
    table.add_lanes("an element beside proof words saturates", packet, {1, highest, 1, 2, 3, 4}, all_but_1, held);
    table.add_lanes("an odd number of elements and proof words", packet, {1, 2, 3, highest, -1, 1, 5},
                    changed(all_but_1, &atp_aggregator::lanes, 7), {4, 5, 6, 1, -1, lowest, 7});
    table.add_lanes("a duplicate adds no proof words", gradient_with(hop, 0, ATP_FLAG_PROOF), addends, holds(0x1),
                    held);
    table.add_lanes("a duplicate after completion takes the proof words", gradient_with(hop, 0, ATP_FLAG_PROOF),
                    addends, holds(full(hop)), held);
    table.add_lanes("a resend takes the proof words", gradient_with(hop, 1, ATP_FLAG_PROOF | ATP_FLAG_RESEND), addends,
                    holds(0x1), held);
    table.add_lanes("proof words of 16-bit lanes have 32 bits", gradient_of_shorts(hop, 1, ATP_FLAG_PROOF),
                    {int16_lanes(1, -2), int16_lanes(3, 4), highest, -1, 1, 2},
                    changed(changed(all_but_1, &atp_aggregator::purpose, purpose_of_shorts), &atp_aggregator::flags,
                            ATP_AGGREGATOR_PROOF | ATP_AGGREGATOR_INT16),
                    {int16_lanes(5, 6), int16_lanes(-7, 8), 1, -1, -1, -2});
    table.add_lanes("a gradient without proof words is sent alone", gradient(hop, 1), addends, holds(0x1), held);
    table.add_lanes("a flush returns the proof words", flush(hop), {}, holds(0x3, ATP_FLAG_ECN), held, true);
}

void add_congestion(Table& table, std::uint8_t hop) {
    const std::uint32_t all_but_1 = full(hop) & ~0x2U;
    const atp_header marked = gradient_with(hop, 1, ATP_FLAG_ECN_DOWN);
    table.add("a claim keeps a mark of a downlink", marked, atp_aggregator{});
    table.add("a mark of a downlink is added to one of the way up", marked, holding(hop, 0x1, ATP_AGGREGATOR_ECN));
    table.add("the last gradient leaves with the marks of both directions", marked,
              holding(hop, all_but_1, ATP_AGGREGATOR_ECN));
    table.add("the last gradient leaves with the mark of another's downlink", gradient(hop, 1),
              holding(hop, all_but_1, ATP_AGGREGATOR_ECN_DOWN));
    table.add("a duplicate is absorbed, but the mark of its downlink counts", gradient_with(hop, 0, ATP_FLAG_ECN_DOWN),
              holding(hop, 0x1));
    table.add("a flush returns the marks of both directions", flush(hop),
              holding(hop, 0x3, ATP_AGGREGATOR_ECN | ATP_AGGREGATOR_ECN_DOWN), true);
}

// Words of another type than the form of the fragment meet no aggregator.
void add_forms(Table& table, std::uint8_t hop) {
    for (const std::uint8_t lanes :
         {atp_lanes_of(ATP_DTYPE_INT16, ATP_DTYPE_INT32), atp_lanes_of(ATP_DTYPE_INT16, ATP_DTYPE_FLOAT32),
          atp_lanes_of(ATP_DTYPE_INT8, ATP_DTYPE_INT32)}) {
        const std::string what = "lanes " + std::to_string(lanes) + ", wider than their form, are sent alone";
        table.add(what, changed(gradient(hop, 1), &atp_header::lanes, lanes), atp_aggregator{});
        table.add(what + ", also by an aggregator of that form", changed(gradient(hop, 1), &atp_header::lanes, lanes),
                  holding(hop, 0x1, ATP_AGGREGATOR_INT16));
    }
}

void add_shorts(Table& table, std::uint8_t hop) {
    constexpr int high = std::numeric_limits<std::int16_t>::max();
    constexpr int low = std::numeric_limits<std::int16_t>::min();
    const atp_header packet = gradient_of_shorts(hop, 1);
    const atp_aggregator some = holding_shorts(hop, 0x1);
    const atp_aggregator all_but_1 = holding_shorts(hop, full(hop) & ~0x2U);
    const auto add = [&table](const char* what, const atp_header& header, DecideLanes lanes,
                              const atp_aggregator& aggregator, DecideLanes held, bool flush_here = false) {
        table.add_lanes(what, header, std::move(lanes), aggregator, std::move(held), flush_here);
    };
    add("16-bit lanes claim", packet, {int16_lanes(1, -2), int16_lanes(high, low), int16_lanes(0, 3)}, atp_aggregator{},
        {});
    add("16-bit lanes are added, each half by itself", packet,
        {int16_lanes(1, 1), int16_lanes(-1, -1), int16_lanes(0, 1)}, some,
        {int16_lanes(10, -1), int16_lanes(1, 5), int16_lanes(high, high - 1)});
    add("a 16-bit lane that leaves 16 bits upwards saturates alone", packet, {int16_lanes(1, 1), int16_lanes(1, -1), 0},
        some, {int16_lanes(high, 5), int16_lanes(5, 5), 0});
    add("a 16-bit lane that leaves 16 bits downwards saturates alone", packet,
        {int16_lanes(1, -1), 0, int16_lanes(low, 2)}, some, {int16_lanes(5, low), 0, int16_lanes(-1, 3)});
    add("the last 16-bit gradient leaves with the sum", packet,
        {int16_lanes(1, -2), int16_lanes(3, 4), int16_lanes(-5, 6)}, all_but_1,
        {int16_lanes(10, 20), int16_lanes(-30, 40), int16_lanes(50, -60)});
    add("the last 16-bit addition leaves 16 bits", packet, {int16_lanes(1, 1), 0, int16_lanes(-1, 0)}, all_but_1,
        {int16_lanes(high, high), int16_lanes(1, 2), int16_lanes(low, low)});
    add("the extremes of 16 bits alone are no overflow", packet, {int16_lanes(0, high), int16_lanes(low, 0), 0},
        all_but_1, {int16_lanes(high, 0), int16_lanes(0, low), int16_lanes(high, low)});
    add("the last 16-bit gradient leaves with the flags of all", gradient_of_shorts(hop, 1, ATP_FLAG_ECN),
        {int16_lanes(1, 1), int16_lanes(2, 2), 0}, holding_shorts(hop, full(hop) & ~0x2U, ATP_FLAG_OVERFLOW),
        {0, 0, 0});
    add("the audit lane of 16-bit lanes wraps as one of 32 bits", gradient_of_shorts(hop, 1, ATP_FLAG_AUDIT),
        {int16_lanes(1, 2), int16_lanes(3, 4), highest}, holding_shorts(hop, full(hop) & ~0x2U, ATP_FLAG_AUDIT),
        {int16_lanes(5, 6), int16_lanes(7, 8), highest});
    add("a 16-bit duplicate is absorbed", gradient_of_shorts(hop, 0), {int16_lanes(1, 1), 0, 0}, some,
        {int16_lanes(1, 1), 0, 0});
    add("a 16-bit duplicate after completion leaves with the result", gradient_of_shorts(hop, 0), {0, 0, 0},
        holding_shorts(hop, full(hop)), {int16_lanes(1, -1), int16_lanes(high, low), int16_lanes(7, 8)});
    add("a 16-bit resend of a fragment held without it", gradient_of_shorts(hop, 1, ATP_FLAG_RESEND),
        {int16_lanes(1, 2), int16_lanes(-1, -2), int16_lanes(high, 0)}, some,
        {int16_lanes(3, 4), int16_lanes(5, 6), int16_lanes(1, low)});
    add("a flush returns 16-bit lanes as they are", flush(hop), {}, holding_shorts(hop, 0x3),
        {int16_lanes(1, -1), int16_lanes(high, low), int16_lanes(7, 8)}, true);
    add("a flush returns 16-bit lanes with their audit lane and flags", flush(hop), {},
        holding_shorts(hop, 0x3, ATP_FLAG_AUDIT | ATP_FLAG_ECN | ATP_FLAG_OVERFLOW), {int16_lanes(1, -1), 5, -7}, true);
    add("an ack releases 16-bit lanes", changed(down(ATP_TYPE_ACK, ATP_INT16_LANES), &atp_header::hop, hop),
        {int16_lanes(1, 2), int16_lanes(3, 4), int16_lanes(5, 6)}, holding_shorts(hop, full(hop)),
        {int16_lanes(1, 2), int16_lanes(3, 4), int16_lanes(5, 6)});
}

// One lane with four int8 elements, the first in the highest byte.
std::int32_t int8_lane(int a, int b, int c, int d) {
    std::uint32_t lane = 0;
    for (const int element : {a, b, c, d}) lane = lane << 8U | (static_cast<std::uint32_t>(element) & 0xFFU);
    return static_cast<std::int32_t>(lane);
}

void add_bytes(Table& table, std::uint8_t hop) {
    constexpr std::uint16_t purpose_of_bytes = purpose ^ 0x200;
    const auto gradient_of_bytes = [hop](unsigned bit, unsigned flags = 0) {
        atp_header packet = gradient_with(hop, bit, flags);
        packet.lanes = ATP_INT8_LANES;
        packet.argument = purpose_of_bytes;
        return packet;
    };
    const auto holding_bytes = [hop](std::uint32_t bitmap, unsigned flags = 0) {
        return changed(holding(hop, bitmap, flags | ATP_AGGREGATOR_INT8), &atp_aggregator::purpose, purpose_of_bytes);
    };
    const auto add = [&table](const std::string& what, const atp_header& packet, DecideLanes lanes,
                              const atp_aggregator& aggregator, DecideLanes held, bool flush_here = false) {
        table.add_lanes(what, packet, std::move(lanes), aggregator, std::move(held), flush_here);
    };
    const atp_aggregator some = holding_bytes(0x1);
    const atp_aggregator all_but_1 = holding_bytes(full(hop) & ~0x2U);
    const DecideLanes lanes{int8_lane(1, -1, 2, -2), int8_lane(127, -128, 0, 5), int8_lane(-1, -1, -1, -1)};
    const DecideLanes held{int8_lane(-1, 1, 3, 4), int8_lane(0, 0, 6, 7), int8_lane(-1, 1, 0, 100)};
    add("8-bit lanes claim", gradient_of_bytes(1), lanes, atp_aggregator{}, {});
    add("8-bit lanes are added, each quarter by itself", gradient_of_bytes(1), lanes, some, held);
    add("the last 8-bit gradient leaves with the sum", gradient_of_bytes(1), lanes, all_but_1, held);
    for (unsigned place = 0; place < 4; ++place) {
        const auto shifted = [place](int element) {
            return static_cast<std::int32_t>((static_cast<std::uint32_t>(element) & 0xFFU) << (24 - 8 * place));
        };
        const std::string which = "quarter " + std::to_string(place) + " of an 8-bit lane ";
        add(which + "leaves 8 bits upwards and saturates alone", gradient_of_bytes(1), {shifted(1), shifted(127), 0},
            some, {shifted(127), shifted(127), shifted(-1)});
        add(which + "leaves 8 bits downwards and saturates alone", gradient_of_bytes(1),
            {shifted(-1), shifted(-128), shifted(127)}, all_but_1, {shifted(-128), shifted(-128), shifted(-128)});
    }
    add("carries and borrows between 8-bit elements", gradient_of_bytes(1),
        {int8_lane(1, -1, 1, -1), int8_lane(-1, 1, -1, 1), int8_lane(-1, -1, -1, -1)}, some,
        {int8_lane(-1, 1, -1, 1), int8_lane(1, -1, 1, -1), int8_lane(1, 1, 1, 1)});
    add("the extremes of 8 bits alone are no overflow", gradient_of_bytes(1), {int8_lane(0, 127, -128, 0), 0, 0},
        all_but_1, {int8_lane(127, 0, 0, -128), 0, 0});
    add("the audit lane of 8-bit lanes wraps as one of 32 bits", gradient_of_bytes(1, ATP_FLAG_AUDIT), {1, 2, highest},
        holding_bytes(full(hop) & ~0x2U, ATP_FLAG_AUDIT), {3, 4, highest});
    add("proof words of 8-bit lanes have 32 bits", gradient_of_bytes(1, ATP_FLAG_PROOF), {lanes[0], highest, -1, 1, 2},
        changed(holding_bytes(0x1, ATP_AGGREGATOR_PROOF), &atp_aggregator::lanes, 5), {held[0], 1, -1, -1, -2});
    add("an 8-bit duplicate is absorbed", gradient_of_bytes(0), lanes, some, held);
    add("an 8-bit duplicate after completion leaves with the result", gradient_of_bytes(0), {0, 0, 0},
        holding_bytes(full(hop)), held);
    add("an 8-bit resend of a fragment held without it", gradient_of_bytes(1, ATP_FLAG_RESEND), lanes, some, held);
    add("a 16-bit gradient is not added to 8-bit lanes", gradient_of_shorts(hop, 1), lanes, some, held);
    add("a flush returns 8-bit lanes as they are", flush(hop), {}, holding_bytes(0x3), held, true);
    add("an ack releases 8-bit lanes", changed(down(ATP_TYPE_ACK, ATP_INT8_LANES), &atp_header::hop, hop), lanes,
        holding_bytes(full(hop)), held);
}

void add_others(Table& table, std::uint8_t hop) {
    const atp_aggregator held = holding(hop, 0x1);
    const auto add = [&](const char* what, const atp_aggregator& other) { table.add(what, gradient(hop, 1), other); };
    add("another job collides", changed(held, &atp_aggregator::job, 9));
    add("another token collides", changed(held, &atp_aggregator::token, 9));
    add("a token that differs in its upper half collides",
        changed(held, &atp_aggregator::token, job_token ^ std::uint64_t{1} << 63U));
    add("a token that differs in its lower half collides", changed(held, &atp_aggregator::token, job_token ^ 1U));
    add("another channel collides", changed(held, &atp_aggregator::channel, 9));
    add("a newer fragment in the way collides", changed(held, &atp_aggregator::seq, seq + window));
    add("a predecessor less than a window behind collides", changed(held, &atp_aggregator::seq, seq - window + 1));
    add("a predecessor a window behind is superseded", changed(held, &atp_aggregator::seq, seq - window));
    add("a complete predecessor more than a window behind is superseded",
        changed(holding(hop, full(hop)), &atp_aggregator::seq, seq - 3 * window));
    add("a predecessor a window behind, of another token, collides",
        changed(changed(held, &atp_aggregator::seq, seq - window), &atp_aggregator::token, 9));
    table.add("a predecessor is superseded across the wrap of sequence numbers", gradient_at(hop, 1, 7),
              changed(held, &atp_aggregator::seq, 7 - window));
    const atp_aggregator other = changed(held, &atp_aggregator::job, 9);
    add("another, idle for longer than the ageing time, is taken over", touched(other, now_us - ageing_us - 1));
    add("another, idle for just the ageing time, collides", touched(other, now_us - ageing_us));
    add("another, touched later than now, collides", touched(other, now_us + 5));
    table.add_lanes("another is taken over across the wrap of the clock", gradient(hop, 1), {1, 2, 3},
                    touched(other, 0U - ageing_us), {4, 5, 6}, false, 1);
    add("a latecomer of a released fragment is sent alone", released(held));
    add("a latecomer with a released aggregator of another token claims",
        changed(released(held), &atp_aggregator::token, 9));
}

void add_misfits(Table& table, std::uint8_t hop) {
    const atp_aggregator held = holding(hop, 0x1);
    table.add("bypass passes", gradient_with(hop, 1, ATP_FLAG_BYPASS), held);
    table.add("bypass does not claim", gradient_with(hop, 1, ATP_FLAG_BYPASS), atp_aggregator{});
    table.add("bypass with resend passes", gradient_with(hop, 1, ATP_FLAG_BYPASS | ATP_FLAG_RESEND), held);
    table.add("floats are sent alone", changed(gradient(hop, 1), &atp_header::lanes, ATP_FLOAT32_LANES), held);
    table.add("floats do not claim", changed(gradient(hop, 1), &atp_header::lanes, ATP_FLOAT32_LANES),
              atp_aggregator{});
    table.add("16-bit numbers are not added to wider ones", short_gradient(hop, 1), held);
    table.add("wider numbers are not added to 16-bit ones", gradient(hop, 1), holding(hop, 0x1, ATP_AGGREGATOR_INT16));
    table.add_lanes("another number of lanes is sent alone", gradient(hop, 1), {1, 2}, held, {10, 20, 30});
    table.add_lanes("one lane claims", gradient(hop, 1), {42}, atp_aggregator{}, {});
    table.add_lanes("a short fragment claims what a long one left", gradient_at(hop, 1, seq + 1), {7},
                    released(holding(hop, full(hop))), {10, 20, -30});
    table.add_lanes("a short fragment is added", gradient(hop, 1), {7},
                    changed(holding(hop, full(hop) & ~0x2U), &atp_aggregator::lanes, 1), {10});
    table.add_lanes("a longer fragment is sent alone", gradient(hop, 1), {1, 2, 3, 4}, held, {10, 20, 30});
    table.add("another purpose is sent alone", changed(gradient(hop, 1), &atp_header::argument, 9), held);
    table.add("a duplicate of another purpose is sent alone", changed(gradient(hop, 0), &atp_header::argument, 9),
              holding(hop, full(hop)));
    table.add("a resend of another purpose passes",
              changed(gradient_with(hop, 1, ATP_FLAG_RESEND), &atp_header::argument, 9), held);
    table.add("another purpose claims what is released",
              changed(gradient_at(hop, 1, seq + 1), &atp_header::argument, 9), released(holding(hop, full(hop))));
    table.add("another level is sent alone", gradient(hop, 1), changed(held, &atp_aggregator::unit, hop == 0 ? 0 : 4));
    table.add("audit against none is sent alone", gradient_with(hop, 1, ATP_FLAG_AUDIT), held);
    table.add("plain against scaled is sent alone", gradient_with(hop, 1, ATP_FLAG_PLAIN), held);
    table.add("scaled against plain is sent alone", gradient(hop, 1), holding(hop, 0x1, ATP_FLAG_PLAIN));
    atp_header pair = gradient_with(hop, 0, hop == 1 ? ATP_FLAG_WHOLE : 0);
    (hop == 0 ? pair.bitmap0 : pair.bitmap1) = 0x3;
    table.add("a set that overlaps what is held is sent alone", pair, held);
    table.add("a resend of a set that overlaps what is held",
              changed(pair, &atp_header::flags, pair.flags | ATP_FLAG_RESEND), held);
    table.add("a set of two joins what is held", pair, holding(hop, 0x4));
    const auto with_mask = [hop](atp_header packet, std::uint32_t mask) {
        (hop == 0 ? packet.mask0 : packet.mask1) = mask;
        return packet;
    };
    table.add("a mask that does not cover what is held is sent alone", with_mask(gradient(hop, 1), 0x6),
              holding(hop, 0x1));
    table.add("a resend whose mask does not cover what is held passes",
              with_mask(gradient_with(hop, 1, ATP_FLAG_RESEND), 0x6), holding(hop, 0x1));
    table.add("a flush whose mask does not cover what is held ends", with_mask(flush(hop), 0x6), holding(hop, 0x1),
              true);
    if (hop == 0) {
        table.add("another unit is sent alone", gradient(0, 1), changed(held, &atp_aggregator::unit, 0x1));
        return;
    }
    table.add("half a unit is sent alone", changed(gradient(1, 1), &atp_header::bitmap0, 0x5U), held);
    table.add("half a unit does not claim", changed(gradient(1, 1), &atp_header::bitmap0, 0x5U), atp_aggregator{});
    table.add("a gradient behind the last level passes", changed(gradient(1, 1), &atp_header::hop, ATP_LEVELS), held);
}

void add_resends(Table& table, std::uint8_t hop) {
    const atp_header resend = gradient_with(hop, 1, ATP_FLAG_RESEND);
    table.add("a resend passes a free aggregator and closes it", resend, atp_aggregator{});
    table.add("a resend passes its tombstone", resend, released(holding(hop, 0x1)));
    table.add("a resend of a fragment held without it", resend, holding(hop, 0x5, ATP_FLAG_ECN));
    table.add("a resend of a fragment held with it", resend, holding(hop, 0x3));
    table.add("a resend of a plain fragment held without it", gradient_with(hop, 1, ATP_FLAG_RESEND | ATP_FLAG_PLAIN),
              holding(hop, 0x5, ATP_FLAG_PLAIN));
    table.add("a plain resend of a fragment held as scaled passes",
              gradient_with(hop, 1, ATP_FLAG_RESEND | ATP_FLAG_PLAIN), holding(hop, 0x5));
    table.add("a resend of a complete fragment", resend, holding(hop, full(hop)));
    table.add("a resend passes another", resend, changed(holding(hop, 0x1), &atp_aggregator::job, 9));
    table.add("a resend passes another that is abandoned", resend,
              touched(changed(holding(hop, 0x1), &atp_aggregator::job, 9), now_us - ageing_us - 1));
    table.add("a resend passes a predecessor", resend, changed(holding(hop, 0x1), &atp_aggregator::seq, seq - window));
    table.add("a resend of another number of lanes passes", resend,
              changed(holding(hop, 0x1), &atp_aggregator::lanes, 2));
    table.add_lanes("a resend whose addition leaves 32 bits", resend, {1, 1, 1}, holding(hop, 0x1), {highest, 0, 0});
}

void add_releases(Table& table, std::uint8_t hop) {
    const atp_aggregator held = holding(hop, 0x3);
    const atp_aggregator other = changed(held, &atp_aggregator::job, 9);
    const atp_header ack = changed(down(ATP_TYPE_ACK, ATP_FLOAT32_LANES), &atp_header::hop, hop);
    const atp_header nack = changed(down(ATP_TYPE_NACK, ATP_DTYPE_INT32), &atp_header::hop, hop);
    const atp_header singly = changed(nack, &atp_header::flags, ATP_FLAG_BYPASS);
    table.add("an ack releases its aggregator", ack, held);
    table.add("an ack releases its complete aggregator", ack, holding(hop, full(hop)));
    table.add("an ack passes a free aggregator", ack, released(held));
    table.add("an ack passes another", ack, other);
    table.add("an ack passes another token", ack, changed(held, &atp_aggregator::token, 9));
    table.add("an ack passes another fragment", ack, changed(held, &atp_aggregator::seq, seq + 1));
    table.add("an ack expires another that is abandoned", ack, touched(other, now_us - ageing_us - 1));
    table.add("a nack passes", nack, held);
    table.add("a nack with bypass releases", singly, held);
    table.add("a nack with bypass closes a free aggregator", singly, atp_aggregator{});
    table.add("a nack with bypass closes the tombstone of another", singly, released(other));
    table.add("a nack passes a free aggregator", nack, atp_aggregator{});
    table.add("a nack with bypass passes another", singly, other);
    table.add("a nack with bypass expires another that is abandoned", singly, touched(other, now_us - ageing_us - 1));
    table.add("a probe passes", changed(down(ATP_TYPE_PROBE, ATP_DTYPE_NONE), &atp_header::hop, hop), held);
    table.add("a ready passes", changed(down(ATP_TYPE_READY, ATP_DTYPE_NONE), &atp_header::hop, hop), held);
    // The first ACK of the list names the fragment that is held, the second one the next.
    const atp_header list = changed(down(ATP_TYPE_ACK_LIST, ATP_DTYPE_NONE), &atp_header::hop, hop);
    table.add_lanes("a list of acks passes and frees nothing", list, {static_cast<std::int32_t>(seq + 1), 7, 0xFFFF, 0},
                    held, {10, 20, -30});
    table.add("a wait passes", changed(down(ATP_TYPE_WAIT, ATP_DTYPE_NONE), &atp_header::hop, hop), held);
}

void add_flushes(Table& table, std::uint8_t hop) {
    const atp_aggregator held = holding(hop, 0x3, ATP_FLAG_ECN | ATP_FLAG_AUDIT);
    table.add("a flush returns what is held", flush(hop), held, true);
    table.add("a flush returns what is complete", flush(hop), holding(hop, full(hop), ATP_FLAG_OVERFLOW), true);
    table.add("a flush returns plain integers as plain", flush(hop), holding(hop, 0x3, ATP_FLAG_PLAIN), true);
    table.add("a flush closes a free aggregator", flush(hop), atp_aggregator{}, true);
    table.add("a flush closes the tombstone of another", flush(hop),
              changed(released(held), &atp_aggregator::seq, seq - window), true);
    table.add("a flush ends at another", flush(hop), changed(held, &atp_aggregator::job, 9), true);
    table.add("a flush ends at its fragment of another level", flush(hop),
              changed(held, &atp_aggregator::unit, hop == 0 ? 0 : 4), true);
    table.add("a flush ends at another fragment", flush(hop), changed(held, &atp_aggregator::seq, seq + 1), true);
    table.add("a flush for one worker returns with its scale, for all",
              changed(changed(flush(hop), &atp_header::scale, 140), &atp_header::worker, 5), held, true);
    table.add("a flush returns what is short as it is", flush(hop), changed(held, &atp_aggregator::lanes, 2), true);
    if (hop == 0) {
        table.add("a flush for no unit ends at the fragment of level 1", changed(flush(0), &atp_header::bitmap1, 0),
                  holding(1, 0x3), true);
    }
    table.add("a flush ends at its fragment of another unit", flush(hop), changed(held, &atp_aggregator::unit, 0x2),
              true);
    table.add("a flush for another level passes", flush(hop), held, false);
}

bool add_lane(std::int32_t addend, std::int32_t& sum) {
    const std::int64_t exact = std::int64_t{sum} + addend;
    sum = exact > highest ? highest : exact < lowest ? lowest : static_cast<std::int32_t>(exact);
    return exact != sum;
}

// Adds the narrow elements of a lane separately. Returns true if one of the sums overflows.
bool add_narrow_lane(unsigned bits, std::int32_t addend, std::int32_t& sum) {
    const int most = (1 << (bits - 1)) - 1;
    bool overflowed = false;
    std::uint32_t sums = 0;
    for (unsigned shift = 0; shift < 32; shift += bits) {
        const auto element = [=](std::int32_t lane) {
            const auto moved = static_cast<std::int32_t>(static_cast<std::uint32_t>(lane) << (32 - bits - shift));
            return moved >> (32 - bits);
        };
        const int exact = element(addend) + element(sum);
        const int saturated = exact > most ? most : exact < -most - 1 ? -most - 1 : exact;
        overflowed |= exact != saturated;
        sums |= (static_cast<std::uint32_t>(saturated) & ((1U << bits) - 1U)) << shift;
    }
    sum = static_cast<std::int32_t>(sums);
    return overflowed;
}

bool add_element_lane(std::uint8_t lanes, std::int32_t addend, std::int32_t& sum) {
    if (lanes == ATP_INT32_LANES) return add_lane(addend, sum);
    return add_narrow_lane(lanes == ATP_INT16_LANES ? 16 : 8, addend, sum);
}

// Adds all lanes. Returns true if a number overflows. The audit lane and the proof words, the last ones, always have 32
// bits and wrap.
bool add_lanes(const DecideLanes& addends, const atp_header& packet, DecideLanes& sums) {
    const std::size_t elements = addends.size() - tail_lanes_of(atp_aggregator_flags_of(&packet));
    bool overflowed = false;
    for (std::size_t lane = 0; lane < addends.size(); ++lane) {
        if (lane >= elements) {
            sums[lane] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[lane]) +
                                                   static_cast<std::uint32_t>(addends[lane]));
        } else {
            overflowed |= add_element_lane(packet.lanes, addends[lane], sums[lane]);
        }
    }
    return overflowed;
}

}  // namespace

nlohmann::ordered_json packet_to_json(const atp_header& header) {
    Json fields = to_json(header);
    fields.erase("version");
    return fields;
}

nlohmann::ordered_json to_json(const atp_aggregator& aggregator) {
    return Json{{"job", aggregator.job},         {"token", aggregator.token},          {"seq", aggregator.seq},
                {"channel", aggregator.channel}, {"status", aggregator.status},        {"flags", aggregator.flags},
                {"bitmap", aggregator.bitmap},   {"lanes", aggregator.lanes},          {"purpose", aggregator.purpose},
                {"unit", aggregator.unit},       {"touched_us", aggregator.touched_us}};
}

std::string_view packet_action_name(unsigned action) { return packet_action_names.at(action); }
std::string_view lanes_action_name(unsigned action) { return lanes_action_names.at(action); }
std::string_view event_name(unsigned event) { return event_names.at(event); }

void carry_out(DecideVector& vector) {
    vector.after = vector.before;
    DecideState& state = vector.after;
    const auto lanes = static_cast<std::uint16_t>(state.lanes.size());
    vector.decision =
        atp_decide(&state.packet, lanes, vector.flush_here ? 1 : 0, &state.aggregator, vector.now_us, vector.ageing_us);
    bool overflowed = false;
    switch (vector.decision.lanes) {
        case ATP_LANES_STORE: state.held = state.lanes; break;
        case ATP_LANES_ADD: overflowed = add_lanes(state.lanes, state.packet, state.held); break;
        case ATP_LANES_ADD_EMIT:
            overflowed = add_lanes(state.lanes, state.packet, state.held);
            state.lanes = state.held;
            break;
        case ATP_LANES_EMIT: state.lanes = state.held; break;
        default: break;
    }
    if (overflowed) atp_overflowed(&state.packet, vector.decision, &state.aggregator);
}

std::vector<DecideVector> decide_vectors() {
    Table table;
    for (std::uint8_t hop = 0; hop < ATP_LEVELS; ++hop) {
        add_gathering(table, hop);
        add_overflow(table, hop);
        add_shorts(table, hop);
        add_proofs(table, hop);
        add_bytes(table, hop);
        add_congestion(table, hop);
        add_forms(table, hop);
        add_others(table, hop);
        add_misfits(table, hop);
        add_resends(table, hop);
        add_releases(table, hop);
        add_flushes(table, hop);
    }
    return table.take();
}

nlohmann::ordered_json to_json(const DecideVector& vector) {
    const auto state = [](const DecideState& at) {
        return Json{{"packet", packet_to_json(at.packet)},
                    {"lanes", at.lanes},
                    {"aggregator", to_json(at.aggregator)},
                    {"held", at.held}};
    };
    return Json{{"description", vector.description},
                {"now_us", vector.now_us},
                {"ageing_us", vector.ageing_us},
                {"flush_here", vector.flush_here},
                {"before", state(vector.before)},
                {"packet_action", packet_action_name(vector.decision.packet)},
                {"lanes_action", lanes_action_name(vector.decision.lanes)},
                {"event", event_name(vector.decision.event)},
                {"after", state(vector.after)}};
}

}  // namespace atp::conformance
