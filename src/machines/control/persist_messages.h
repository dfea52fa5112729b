// SPDX-License-Identifier: Apache-2.0
// Parts of messages in the saved state of a machine (protocol/archive.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/archive.h"
#include "wire/control.h"

namespace atp::control {

template <protocol::Archive Archive>
void persist_text(std::string& text, Archive& archive) {
    auto size = static_cast<std::uint16_t>(text.size());
    archive.value(size);
    text.resize(size);
    archive.bytes(std::as_writable_bytes(std::span(text)));
}

template <protocol::Archive Archive>
void persist_edge(wire::Edge& edge, Archive& archive) {
    archive.value(edge.kind), archive.value(edge.evidence), archive.value(edge.unit), archive.value(edge.member);
    archive.value(edge.silent_ms), archive.value(edge.detail);
    archive.value(edge.at.family), archive.value(edge.at.port), archive.value(edge.at.host);
}

template <protocol::Archive Archive>
void persist_edge(std::optional<wire::Edge>& edge, Archive& archive) {
    bool has_value = edge.has_value();
    archive.value(has_value);
    if (!has_value) return edge.reset();
    if (!edge) edge.emplace();
    persist_edge(*edge, archive);
}

template <protocol::Archive Archive>
void persist_statements(std::vector<wire::Statement>& statements, Archive& archive) {
    auto size = static_cast<std::uint8_t>(statements.size());
    archive.value(size);
    statements.resize(size);
    for (wire::Statement& statement : statements) {
        archive.value(statement.count), archive.value(statement.unit), archive.value(statement.member);
        persist_text(statement.text, archive);
    }
}

}  // namespace atp::control
