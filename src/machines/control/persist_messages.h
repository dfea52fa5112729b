// SPDX-License-Identifier: Apache-2.0
// Messages and their parts in the saved state of a machine (protocol/archive.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/archive.h"
#include "wire/control.h"
#include "wire/joining_message.h"

namespace atp::control {

// A vector whose entries `persist_entry` saves or restores.
template <class Entry, protocol::Archive Archive, class PersistEntry>
void persist_list(std::vector<Entry>& entries, Archive& archive, PersistEntry&& persist_entry) {
    auto size = static_cast<std::uint16_t>(entries.size());
    archive.value(size);
    entries.resize(size);
    for (Entry& entry : entries) persist_entry(entry);
}

template <protocol::Archive Archive>
void persist_text(std::string& text, Archive& archive) {
    auto size = static_cast<std::uint16_t>(text.size());
    archive.value(size);
    text.resize(size);
    archive.bytes(std::as_writable_bytes(std::span(text)));
}

template <protocol::Archive Archive>
void persist_endpoint(wire::Endpoint& endpoint, Archive& archive) {
    archive.value(endpoint.family), archive.value(endpoint.port), archive.value(endpoint.host);
}

template <protocol::Archive Archive>
void persist_edge(wire::Edge& edge, Archive& archive) {
    archive.value(edge.kind), archive.value(edge.evidence), archive.value(edge.unit), archive.value(edge.member);
    archive.value(edge.silent_ms), archive.value(edge.detail), persist_endpoint(edge.at, archive);
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
void persist_pace(wire::Pace& pace, Archive& archive) {
    archive.value(pace.share_percent), archive.value(pace.last_percent), archive.value(pace.unit),
        archive.value(pace.member);
    archive.value(pace.whole_unit), archive.value(pace.waited_permille);
}

template <protocol::Archive Archive>
void persist_statements(std::vector<wire::Statement>& statements, Archive& archive) {
    persist_list(statements, archive, [&](wire::Statement& statement) {
        archive.value(statement.count), archive.value(statement.unit), archive.value(statement.member);
        persist_text(statement.text, archive);
    });
}

template <protocol::Archive Archive>
void persist_unit(wire::JoiningUnit& unit, Archive& archive) {
    archive.value(unit.unit), archive.value(unit.members), archive.value(unit.mask0), archive.value(unit.direct);
    persist_list(unit.ranks, archive, [&](std::uint16_t& rank) { archive.value(rank); });
}

template <protocol::Archive Archive>
void persist_units(std::vector<wire::JoiningUnit>& units, Archive& archive) {
    persist_list(units, archive, [&](wire::JoiningUnit& unit) { persist_unit(unit, archive); });
}

template <protocol::Archive Archive>
void persist_terms(wire::ChannelTerms& terms, Archive& archive) {
    archive.value(terms.job), archive.value(terms.token), archive.value(terms.channel), archive.value(terms.lanes);
    archive.value(terms.window_log2), archive.value(terms.audit), archive.value(terms.aggregators);
    archive.value(terms.first_seq), archive.value(terms.mask1), archive.value(terms.scale);
    persist_endpoint(terms.server, archive), persist_endpoint(terms.group, archive);
    persist_endpoint(terms.root, archive);
}

namespace persisting {

template <class Message>
void assign(wire::JoiningMessage& message, const std::optional<Message>& decoded) {
    if (decoded) message = *decoded;
}

}  // namespace persisting

// In its form on the wire.
template <protocol::Archive Archive>
void persist_message(wire::JoiningMessage& message, Archive& archive) {
    constexpr std::size_t longest_message = 2048;
    std::array<std::byte, longest_message> room{};
    auto type = static_cast<std::uint8_t>(message.index());
    std::uint16_t size = 0;
    if constexpr (!Archive::reads) size = static_cast<std::uint16_t>(wire::encode(message, room));
    archive.value(type), archive.value(size);
    const std::span bytes = std::span(room).first(size);
    archive.bytes(bytes);
    if constexpr (Archive::reads) {
        switch (type) {
            case 0: return persisting::assign(message, wire::decode<wire::Join>(bytes));
            case 1: return persisting::assign(message, wire::decode<wire::Joined>(bytes));
            case 2: return persisting::assign(message, wire::decode<wire::Refused>(bytes));
            case 3: return persisting::assign(message, wire::decode<wire::Leave>(bytes));
            default: return persisting::assign(message, wire::decode<wire::Retry>(bytes));
        }
    }
}

}  // namespace atp::control
