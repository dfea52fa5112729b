// SPDX-License-Identifier: Apache-2.0
// The rows of decide.json at a pipeline (pipeline/decide_pipeline.h): most leave the same packet, and the others are
// safe.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decide_pipeline_vectors.h"
#include "vector_file.h"
#include "wire/packet.h"

namespace atp::conformance {
namespace {

TEST(PipelineVectors, EachPassAccessesEachCellAtMostOnce) {
    for (const PipelineVector& vector : decide_pipeline_vectors()) {
        for (const PipelinePass& pass : vector.passes) {
            for (unsigned cell = 0; cell < ATP_CELL_COUNT; ++cell)
                EXPECT_LE(pass.accesses >> (4U * cell) & 0xFU, 1U) << vector.row.description << ", cell " << cell;
        }
    }
}

TEST(PipelineVectors, NoPacketMakesMoreThanThreePasses) {
    std::map<std::size_t, unsigned> rows;
    for (const PipelineVector& vector : decide_pipeline_vectors()) ++rows[vector.passes.size()];
    EXPECT_EQ(rows.rbegin()->first, 3U);
    // Nearly all packets that a switch absorbs need one pass: the numbers are in docs/develop/p4.md.
    RecordProperty("one", static_cast<int>(rows[1]));
    RecordProperty("two", static_cast<int>(rows[2]));
    RecordProperty("three", static_cast<int>(rows[3]));
}

// A row that differs leaves the packet alone: its lanes go to the server, which adds them.
bool is_left_alone(const PipelineVector& vector) {
    atp_header alone = vector.before.packet;
    (void)atp_forward_alone(&alone, ATP_EVENT_MISFIT);
    atp_header collided = vector.before.packet;
    (void)atp_collide(&collided);
    const auto leaves = [&vector](const atp_header& packet) {
        return wire::to_string(vector.after.packet, 0) == wire::to_string(packet, 0) &&
               vector.after.lanes == vector.before.lanes;
    };
    return vector.packet_action() == ATP_PACKET_FORWARD && (leaves(alone) || leaves(collided));
}

// A resend goes on to the server, as if nothing were held, and what is held stays.
bool is_resend_passed_on(const PipelineVector& vector) {
    return (vector.before.packet.flags & ATP_FLAG_RESEND) != 0 && vector.packet_action() == ATP_PACKET_FORWARD &&
           vector.event() == ATP_EVENT_RESENT && vector.after.lanes == vector.before.lanes;
}

bool has_overflow(const PipelineVector& vector) {
    return (vector.row.after.aggregator.flags & ATP_AGGREGATOR_OVERFLOW) != 0;
}

// A job that a pipeline admits has one mask for each place, so these packets do not occur.
bool has_another_mask(const PipelineVector& vector) {
    return atp_level_mask(&vector.before.packet) != vector.place.mask;
}

bool holds_narrow_lanes(const PipelineVector& vector) {
    return (vector.row.before.aggregator.flags & (ATP_AGGREGATOR_INT16 | ATP_AGGREGATOR_INT8)) != 0;
}

// A FLUSH that names no unit reaches a worker, which drops it.
bool is_flush_for_nobody(const PipelineVector& vector) {
    return vector.before.packet.type == ATP_TYPE_FLUSH && vector.place.place == 0;
}

bool holds_another_length(const PipelineVector& vector) {
    return vector.row.before.aggregator.status != ATP_AGGREGATOR_FREE &&
           vector.row.before.aggregator.lanes != vector.full_lanes;
}

TEST(PipelineVectors, RowsThatDifferAreSafe) {
    for (const PipelineVector& vector : decide_pipeline_vectors()) {
        if (vector.same()) continue;
        EXPECT_TRUE(is_left_alone(vector) || is_resend_passed_on(vector) || has_overflow(vector) ||
                    has_another_mask(vector) || holds_narrow_lanes(vector) || holds_another_length(vector) ||
                    is_flush_for_nobody(vector))
            << vector.row.description;
    }
}

// docs/develop/p4.md states these numbers.
TEST(PipelineVectors, DocumentedNumberOfRowsIsTheSame) {
    const std::vector<PipelineVector> vectors = decide_pipeline_vectors();
    EXPECT_EQ(vectors.size(), 331U);
    EXPECT_EQ(std::ranges::count_if(vectors, &PipelineVector::same), 243);
}

// A plain int32 row of the full length without overflow differs only in what docs/develop/p4.md lists.
TEST(PipelineVectors, UsualRowsAreTheSame) {
    unsigned usual = 0;
    for (const PipelineVector& vector : decide_pipeline_vectors()) {
        const atp_header& packet = vector.before.packet;
        const bool has_pairs = packet.type != ATP_TYPE_GRADIENT ||
                               (packet.lanes == ATP_INT32_LANES && vector.before.lanes.size() == vector.full_lanes);
        if (!has_pairs || holds_narrow_lanes(vector) || holds_another_length(vector) || has_overflow(vector) ||
            has_another_mask(vector) || is_flush_for_nobody(vector))
            continue;
        const bool set_of_several =
            packet.type == ATP_TYPE_GRADIENT && !atp_is_one_bit(atp_contribution(&packet)) && packet.hop < ATP_LEVELS;
        EXPECT_TRUE(vector.same() || set_of_several) << vector.row.description;
        ++usual;
    }
    EXPECT_GT(usual, 150U);
}

// The events of both are counted by the same rule.
TEST(PipelineVectors, RowsThatAreTheSameCountTheSameEvent) {
    for (const PipelineVector& vector : decide_pipeline_vectors()) {
        // A packet behind the last level, or of a place that is not served, is not judged.
        if (!vector.same() || vector.place.place == 0) continue;
        EXPECT_EQ(event_name(vector.event()), event_name(vector.row.decision.event)) << vector.row.description;
    }
}

TEST(PipelineVectors, RowsCoverEveryPassAndLanesAction) {
    std::set<unsigned> kinds;
    std::set<unsigned> lanes;
    for (const PipelineVector& vector : decide_pipeline_vectors()) {
        for (const PipelinePass& pass : vector.passes) {
            kinds.insert(pass.kind);
            lanes.insert(pass.outcome.lanes);
        }
    }
    EXPECT_EQ(kinds.size(), 7U);
    EXPECT_EQ(lanes.size(), 6U);
}

TEST(PipelineVectors, FileMatchesTheOutputOfItsWriter) {
    EXPECT_TRUE(committed_text("decide_pipeline.json") == text_of(decide_pipeline_vectors()))
        << "tests/conformance/decide_pipeline.json is not what write_decide_pipeline_vectors writes";
}

}  // namespace
}  // namespace atp::conformance
