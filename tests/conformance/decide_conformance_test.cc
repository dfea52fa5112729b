// SPDX-License-Identifier: Apache-2.0
// Checks atp_decide() and the software switch against the committed decide.json, which the test reads like an
// implementation in another language.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decide_rows.h"
#include "decide_vectors.h"
#include "protocol/switch.h"
#include "vector_file.h"
#include "wire/packet.h"

namespace atp::conformance {
namespace {

using Bytes = std::vector<std::byte>;

void expect_same_packet(const atp_header& actual, const atp_header& expected) {
    EXPECT_EQ(wire::to_string(actual, 0), wire::to_string(expected, 0));
}

void expect_same_id(const atp_aggregator& actual, const atp_aggregator& expected) {
    EXPECT_EQ(actual.status, expected.status);
    EXPECT_EQ(actual.job, expected.job);
    EXPECT_EQ(actual.token, expected.token);
    EXPECT_EQ(actual.seq, expected.seq);
    EXPECT_EQ(actual.channel, expected.channel);
}

TEST(DecideVectors, EveryRowIsDecidedAsInTheFile) {
    for (const DecideRow& row : committed_rows()) {
        SCOPED_TRACE(row.given.description);
        DecideVector vector = row.given;
        carry_out(vector);
        EXPECT_EQ(packet_action_name(vector.decision.packet), row.packet_action);
        EXPECT_EQ(lanes_action_name(vector.decision.lanes), row.lanes_action);
        EXPECT_EQ(event_name(vector.decision.event), row.event);
        expect_same_packet(vector.after.packet, row.after.packet);
        EXPECT_EQ(to_json(vector.after.aggregator), to_json(row.after.aggregator));
        EXPECT_EQ(vector.after.lanes, row.after.lanes);
        EXPECT_EQ(vector.after.held, row.after.held);
    }
}

// --- the software switch: persist() sets and reads its table

// Lanes as the software switch stores them: narrow lanes in packet order, all other lanes, the audit lane and proof
// words in host order. The function is its own inverse.
DecideLanes as_held(DecideLanes lanes, const atp_aggregator& aggregator) {
    if ((aggregator.flags & (ATP_AGGREGATOR_INT16 | ATP_AGGREGATOR_INT8)) == 0) return lanes;
    const std::size_t numbers = lanes.size() - tail_lanes_of(aggregator.flags);
    for (std::size_t lane = 0; lane < numbers; ++lane) {
        lanes[lane] = static_cast<std::int32_t>(wire::swap_from_big_endian(static_cast<std::uint32_t>(lanes[lane])));
    }
    return lanes;
}

// Puts one aggregator at `index` into a table that is otherwise empty. `fields_` has the order in which persist()
// visits the fields.
class Loader {
  public:
    static constexpr bool reads = true;

    Loader(std::uint32_t index, const atp_aggregator& aggregator, const DecideLanes& held) : held_(held) {
        for (std::uint32_t before = 0; before < index; ++before) fields_.insert(fields_.end(), 5, 0);
        fields_.insert(fields_.end(),
                       {aggregator.status, aggregator.job, aggregator.token, aggregator.channel, aggregator.seq});
        if (aggregator.status == ATP_AGGREGATOR_FREE) return;
        fields_.insert(fields_.end(), {aggregator.unit, aggregator.bitmap, aggregator.lanes, aggregator.purpose,
                                       aggregator.flags, aggregator.touched_us});
    }

    template <std::integral T>
    void value(T& field) {
        // The job has no slice.
        field = static_cast<T>(next_ == fields_.size() ? 0 : fields_[next_++]);
    }
    void stamp_us(std::uint32_t& field) { value(field); }
    void unread(std::uint8_t& field) { value(field); }
    void time(Time&) {}
    void bytes(std::span<std::byte> lanes) {
        ASSERT_EQ(lanes.size(), held_.size() * sizeof held_[0]);
        std::memcpy(lanes.data(), held_.data(), lanes.size());
    }

  private:
    std::vector<std::uint64_t> fields_;
    std::size_t next_ = 0;
    DecideLanes held_;
};

// Reads the lanes of the only aggregator in use.
struct LaneReader {
    static constexpr bool reads = false;

    DecideLanes held;

    void value(const auto&) {}
    void stamp_us(std::uint32_t&) {}
    void unread(std::uint8_t&) {}
    void time(Time&) {}
    void bytes(std::span<std::byte> lanes) {
        held.resize(lanes.size() / sizeof held[0]);
        std::memcpy(held.data(), lanes.data(), lanes.size());
    }
};

protocol::Switch switch_for(const DecideVector& given) {
    const atp_header& packet = given.before.packet;
    protocol::Switch machine(
        {.aggregators = packet.index + 1, .lanes = 8, .jobs = 1, .ageing = std::chrono::microseconds(given.ageing_us)});
    EXPECT_TRUE(machine.admit(packet.job, packet.token, level_of(given)));
    const atp_aggregator& aggregator = given.before.aggregator;
    Loader loader(packet.index, aggregator, as_held(given.before.held, aggregator));
    machine.persist(loader);
    return machine;
}

void expect_switch_does(const DecideRow& row) {
    protocol::Switch machine = switch_for(row.given);
    const atp_header& packet = row.given.before.packet;
    Bytes bytes = bytes_of(packet, row.given.before.lanes);
    const std::size_t size = bytes.size();
    bytes.resize(256);
    protocol::PacketBuffer packet_buffer{.data = bytes.data(),
                                         .size = static_cast<std::uint32_t>(size),
                                         .capacity = static_cast<std::uint32_t>(bytes.size()),
                                         .congested = false,
                                         .verdict = {}};
    machine.handle_packet(packet_buffer, Time{std::chrono::microseconds(row.given.now_us)});
    bytes.resize(packet_buffer.size);

    // A packet that has already passed the level of the switch is forwarded without a decision.
    const bool behind = packet.hop >= ATP_LEVELS;
    EXPECT_EQ(event_name(packet_buffer.verdict.event), behind ? event_name(ATP_EVENT_PASSED) : row.event);
    EXPECT_EQ(packet_buffer.verdict.route == protocol::Route::drop, row.packet_action == "drop");
    if (row.packet_action != "drop") {
        EXPECT_EQ(bytes, bytes_of(row.after.packet, row.after.lanes));
    }
    const atp_aggregator& actual = machine.aggregator(packet.index);
    expect_same_id(actual, row.after.aggregator);
    if (actual.status == ATP_AGGREGATOR_FREE) return;  // the remaining fields of a free aggregator have no meaning
    EXPECT_EQ(to_json(actual), to_json(row.after.aggregator));
    LaneReader reader;
    machine.persist(reader);
    EXPECT_EQ(as_held(reader.held, actual), row.after.held);
}

TEST(DecideVectors, SoftwareSwitchSendsTheBytesOfEveryRow) {
    for (const DecideRow& row : committed_rows()) {
        SCOPED_TRACE(row.given.description);
        expect_switch_does(row);
    }
}

TEST(DecideVectors, RowsCoverEveryActionAndEventAtBothLevels) {
    std::set<std::string> packet_actions;
    std::set<std::string> lanes_actions;
    std::set<std::pair<int, std::string>> events;
    for (const DecideRow& row : committed_rows()) {
        packet_actions.insert(row.packet_action);
        lanes_actions.insert(row.lanes_action);
        events.insert({row.given.before.packet.hop, row.event});
    }
    EXPECT_EQ(packet_actions.size(), 3U);
    EXPECT_EQ(lanes_actions.size(), 5U);
    for (unsigned event = 0; event < ATP_EVENT_COUNT; ++event) {
        for (int hop = 0; hop < static_cast<int>(ATP_LEVELS); ++hop) {
            if (event == ATP_EVENT_FETCHED && hop == 1)
                continue;  // level 1 never answers a resend with its sum: a FLUSH fetches it
            EXPECT_TRUE(events.contains({hop, std::string(event_name(event))})) << event_name(event) << hop;
        }
    }
}

TEST(DecideVectors, RowsCoverEveryActionOnNarrowLanesAndProofWords) {
    for (const unsigned kind : {ATP_AGGREGATOR_INT16, ATP_AGGREGATOR_INT8, ATP_AGGREGATOR_PROOF}) {
        std::set<std::string> lanes_actions;
        bool overflowed = false;
        for (const DecideRow& row : committed_rows()) {
            if ((row.after.aggregator.flags & kind) == 0) continue;
            lanes_actions.insert(row.lanes_action);
            overflowed = overflowed || (row.after.aggregator.flags & ~row.given.before.aggregator.flags &
                                        static_cast<unsigned>(ATP_FLAG_OVERFLOW)) != 0;
        }
        EXPECT_EQ(lanes_actions.size(), 5U) << kind;
        EXPECT_TRUE(overflowed) << kind;
    }
}

TEST(DecideVectors, EveryRowHasItsOwnDescription) {
    std::set<std::string> descriptions;
    for (const DecideRow& row : committed_rows())
        EXPECT_TRUE(descriptions.insert(row.given.description).second) << row.given.description;
}

TEST(DecideVectors, FileMatchesTheOutputOfItsWriter) {
    // No EXPECT_EQ: it would print both files. `write_decide_vectors
    // diff tests/conformance/decide.json -` shows the changes.
    EXPECT_TRUE(committed_text("decide.json") == text_of(decide_vectors()))
        << "tests/conformance/decide.json is not what write_decide_vectors writes";
}

}  // namespace
}  // namespace atp::conformance
