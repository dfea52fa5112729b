// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/persist_messages.h"
#include "protocol/archive.h"
#include "wire/control.h"

namespace atp::control {

// Why a channel is not ready on one switch: the failed edges that the switch found, or that its children and its parent
// reported. Each has a source: the position of a child, the edge to the parent, or the report of the parent. A source
// names one edge at a time. An edge is forgotten when its source is well again, so that the edge that failed first of
// those that still fail is the cause.
//
// Ownership: owns its edges, at most one for each position and two more.
// Calling order: any. Threads: none. Failure: none.
class BranchFailures {
  public:
    // The bit of the child in the upper byte; in the lower one its member within its unit, or `whole_unit`.
    using Position = std::uint16_t;
    static constexpr std::uint8_t whole_unit = 0xFF;

    // The child of this position failed. If its position already names an edge, that edge came first and stays.
    void note_child(Position position, const wire::Edge& edge) { note(position, edge); }
    // What the child of this position reports; nullopt: it reports no failed edge any more.
    void report_of_child(Position position, const std::optional<wire::Edge>& edge) { replace(position, edge); }
    // The edge to the parent failed, or is well again.
    void note_parent(const wire::Edge& edge) { note(parent, edge); }
    void forget_parent() { replace(parent, std::nullopt); }
    // What the parent reports; nullopt: nothing.
    void report_of_parent(const std::optional<wire::Edge>& edge) { replace(above, edge); }
    void clear() { failures_.clear(); }

    // The cause. nullopt: no edge failed.
    [[nodiscard]] std::optional<wire::Edge> first() const;
    // The cause among the edges that the parent did not report: it does not know them yet.
    [[nodiscard]] std::optional<wire::Edge> first_own() const;
    // A child failed, or reports that an edge failed.
    [[nodiscard]] bool of_children() const;

    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    using Source = std::uint32_t;
    static constexpr Source parent = 0x10000;  // sources below are positions
    static constexpr Source above = 0x10001;

    struct Failure {
        Source source = 0;
        wire::Edge edge;
    };

    void note(Source source, const wire::Edge& edge);
    void replace(Source source, const std::optional<wire::Edge>& edge);
    [[nodiscard]] static bool concerns(Source known, Source source);

    std::vector<Failure> failures_;  // in the order of their first report
};

template <protocol::Archive Archive>
void BranchFailures::persist(Archive& archive) {
    auto size = static_cast<std::uint16_t>(failures_.size());
    archive.value(size);
    failures_.resize(size);
    for (Failure& failure : failures_) archive.value(failure.source), persist_edge(failure.edge, archive);
}

}  // namespace atp::control
