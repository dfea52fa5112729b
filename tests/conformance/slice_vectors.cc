// SPDX-License-Identifier: Apache-2.0
#include "slice_vectors.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace atp::conformance {
namespace {

using Json = nlohmann::ordered_json;
using Steps = std::vector<SliceStep>;

SliceStep slice(std::uint32_t base, std::uint32_t size) { return {.slice = atp_range{base, size}}; }
SliceStep end() { return {.ends_change = true}; }
SliceStep packet(std::uint32_t seq, std::uint32_t index, std::optional<std::uint32_t> place,
                 std::uint16_t channel = 0) {
    return {.packet = SliceStep::Packet{channel, seq, index, place}};
}

SliceVector entry(std::string description, Steps steps) {
    return {.description = std::move(description), .aggregators = 16, .window_log2 = 2, .steps = std::move(steps)};
}

SliceVector division(std::string description, std::uint32_t aggregators, std::vector<control::SliceClaim> claims,
                     std::vector<atp_range> slices, bool powers_of_two = false) {
    return {.description = std::move(description),
            .aggregators = aggregators,
            .claims = std::move(claims),
            .powers_of_two = powers_of_two,
            .slices = std::move(slices)};
}

void add_entries(std::vector<SliceVector>& vectors) {
    vectors.push_back(entry("an open switch has no slices", {packet(0, 0, 0), packet(1, 15, 15)}));
    vectors.push_back(entry("an index beyond the table has no aggregator", {packet(0, 16, {})}));
    vectors.push_back(entry("an index is modulo the size, plus the base",
                            {slice(4, 8), packet(0, 0, 4), packet(1, 7, 11), packet(2, 8, 4), packet(3, 15, 11)}));
    vectors.push_back(entry("an empty slice has no aggregator", {slice(4, 0), packet(0, 0, {})}));
    vectors.push_back(entry("an index beyond the table has none in a slice either", {slice(4, 8), packet(0, 16, {})}));
    vectors.push_back(
        entry("before the first packet, a slice changes at once", {slice(0, 8), slice(8, 8), packet(0, 1, 9)}));
    vectors.push_back(entry("a change applies from the highest seq plus W",
                            {slice(0, 8), packet(5, 1, 1), packet(3, 2, 2), slice(8, 4), packet(8, 5, 5),
                             packet(9, 5, 9), packet(3, 2, 2)}));
    vectors.push_back(
        entry("packets during a change do not move it", {slice(0, 8), packet(5, 1, 1), slice(8, 4), packet(8, 0, 0),
                                                         packet(20, 1, 9), packet(8, 0, 0), packet(9, 0, 8)}));
    vectors.push_back(entry("after a change, old numbers use the new slice",
                            {slice(0, 8), packet(5, 1, 1), slice(8, 4), packet(5, 1, 1), end(), packet(5, 1, 9)}));
    vectors.push_back(entry("a further change begins where the stream is by then",
                            {slice(0, 8), packet(5, 1, 1), slice(8, 4), packet(11, 1, 9), end(), slice(0, 16),
                             packet(14, 3, 11), packet(15, 3, 3)}));
    vectors.push_back(entry("numbers wrap during a change",
                            {slice(0, 8), packet(0xFFFFFFFF, 1, 1), slice(8, 4), packet(2, 1, 1), packet(3, 1, 9)}));
    vectors.push_back(entry("each channel has numbers of its own",
                            {slice(0, 8), packet(100, 1, 1, 0), packet(5, 1, 1, 1), slice(8, 4), packet(9, 2, 10, 1),
                             packet(103, 2, 2, 0), packet(0, 3, 11, 2)}));
    vectors.push_back(entry("a change from an empty slice has nothing to wait for",
                            {slice(0, 0), packet(5, 1, {}), slice(8, 4), packet(5, 1, 9)}));
    vectors.push_back(entry("a change to an empty slice leaves the fragments that are on their way",
                            {slice(0, 8), packet(5, 1, 1), slice(0, 0), packet(8, 1, 1), packet(9, 1, {})}));
}

void add_divisions(std::vector<SliceVector>& vectors) {
    vectors.push_back(division("one tenant has all of the table", 4096, {{}}, {{0, 4096}}));
    vectors.push_back(division("weights 3 and 1", 4096, {{.weight = 3}, {.weight = 1}}, {{0, 3072}, {3072, 1024}}));
    vectors.push_back(division("three equal ones and a remainder", 100, {{}, {}, {}}, {{0, 33}, {33, 33}, {66, 34}}));
    vectors.push_back(division("a guarantee above the part by weight", 1000, {{.least = 500}, {.weight = 4}},
                               {{0, 500}, {500, 500}}));
    vectors.push_back(division("a guarantee below the part by weight", 1000, {{.least = 100}, {.weight = 4}},
                               {{0, 200}, {200, 800}}));
    vectors.push_back(division("one guarantee makes another one count", 1000,
                               {{.least = 600}, {.least = 200}, {.weight = 2}}, {{0, 600}, {600, 200}, {800, 200}}));
    vectors.push_back(division("powers of two for a pipeline", 4096, {{.weight = 3}, {.weight = 1}},
                               {{0, 2048}, {3072, 1024}}, true));
    vectors.push_back(division("a table without aggregators", 0, {{}, {}}, {{0, 0}, {0, 0}}));
}

Json json_of(const atp_range& range) { return Json{range.base, range.size}; }

Json json_of(const SliceStep& step) {
    if (step.slice) return Json{{"slice", json_of(*step.slice)}};
    if (step.ends_change) return Json{{"end", true}};
    Json row{{"channel", step.packet->channel}, {"seq", step.packet->seq}, {"index", step.packet->index}};
    row["place"] = step.packet->place ? Json(*step.packet->place) : Json(nullptr);
    return row;
}

}  // namespace

std::vector<SliceVector> slice_vectors() {
    std::vector<SliceVector> vectors;
    add_entries(vectors);
    add_divisions(vectors);
    return vectors;
}

Json to_json(const SliceVector& vector) {
    Json row{{"description", vector.description}, {"aggregators", vector.aggregators}};
    if (!vector.steps.empty()) {
        row["window_log2"] = vector.window_log2;
        row["steps"] = Json::array();
        for (const SliceStep& step : vector.steps) row["steps"].push_back(json_of(step));
        return row;
    }
    row["powers_of_two"] = vector.powers_of_two;
    row["claims"] = Json::array();
    for (const control::SliceClaim& claim : vector.claims) {
        row["claims"].push_back(Json{{"least", claim.least}, {"weight", claim.weight}});
    }
    row["slices"] = Json::array();
    for (const atp_range& range : vector.slices) row["slices"].push_back(json_of(range));
    return row;
}

}  // namespace atp::conformance
