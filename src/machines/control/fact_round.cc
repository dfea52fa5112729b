// SPDX-License-Identifier: Apache-2.0
#include "control/fact_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/dissent.h"
#include "control/breaks.h"
#include "wire/bytes.h"

namespace atp::control {
inline namespace ATP_VARIANT {
namespace {

constexpr std::size_t world_bytes = 4;

std::uint32_t world_of(std::string_view value) {
    std::uint32_t world = 0;
    wire::ByteReader(std::as_bytes(std::span(value))).field(world);
    return world;
}

// Its peer is the rank with which the text begins, if it does: so the error is equal on the rank that finds it and on
// those that read its notice.
Failure disagreement(const std::string& text) {
    constexpr std::string_view label = "rank ";
    std::uint32_t rank = 0;
    const bool names_rank =
        text.starts_with(label) &&
        std::from_chars(text.data() + label.size(), text.data() + text.size(), rank).ec == std::errc();
    if (names_rank) return fail_by_rank(Operation::rendezvous, Reason::mismatched, rank, text);
    return fail(Operation::rendezvous, Reason::mismatched, {}, text);
}

std::string others_than(std::uint32_t rank, std::size_t ranks) {
    return ranks == 2 ? fmt::format("rank {}", 1 - rank) : "the others";
}

}  // namespace

std::string stamped(std::uint32_t world, std::string_view message) {
    std::string value(world_bytes, '\0');
    wire::ByteWriter(std::as_writable_bytes(std::span(value))).field(world);
    return value += message;
}

std::string stamped(const wire::GaveUp& notice) { return stamped(0, message_text(notice)); }

std::optional<wire::GaveUp> notice_in(std::string_view value) {
    if (value.size() < world_bytes || world_of(value) != 0) return std::nullopt;
    const auto notice = wire::decode<wire::GaveUp>(std::as_bytes(std::span(value.substr(world_bytes))));
    return notice.value_or(wire::GaveUp{.rank = 0, .reason = wire::most_reason, .text = "for an unknown reason"});
}

FactRound::FactRound(std::uint32_t world, std::vector<std::uint32_t> ranks) : world_(world), ranks_(std::move(ranks)) {}

void FactRound::take(std::uint32_t rank, std::string_view value) {
    const auto taken = std::ranges::find(taken_, rank, &std::pair<std::uint32_t, std::string>::first);
    if (taken == taken_.end()) taken_.emplace_back(rank, value);
}

bool FactRound::complete() const {
    const std::size_t needed = ranks_.size() - (ATP_CONTROL_BREAK(plans_from_part) ? 1 : 0);
    return taken_.size() >= needed;
}

std::vector<std::uint32_t> FactRound::missing() const {
    std::vector<std::uint32_t> absent;
    std::ranges::copy_if(ranks_, std::back_inserter(absent), [&](std::uint32_t rank) {
        return std::ranges::find(taken_, rank, &std::pair<std::uint32_t, std::string>::first) == taken_.end();
    });
    return absent;
}

std::optional<wire::GaveUp> FactRound::notice() const {
    for (const auto& [rank, value] : taken_) {
        if (auto notice = notice_in(value)) return notice;
    }
    return std::nullopt;
}

std::uint32_t FactRound::widest() const {
    std::uint32_t most = world_;
    for (const auto& [rank, value] : taken_) most = std::max(most, world_of(value));
    return std::min<std::uint32_t>(most, wire::max_ranks);
}

Result<std::vector<std::string>> FactRound::values() const {
    if (const auto given_up = notice()) return failure_of(*given_up);
    std::vector<std::pair<std::uint32_t, std::string>> ordered = taken_;
    if (!ATP_CONTROL_BREAK(values_as_read)) std::ranges::sort(ordered);
    // Of a rank that was not read, this rank assumes its own number.
    std::vector<std::string> worlds(world_, std::to_string(world_));
    for (const auto& [rank, value] : ordered) worlds[rank] = std::to_string(world_of(value));
    if (const auto dissent = dissent_of(worlds)) {
        // errors.md, forms, mismatched
        return disagreement(fmt::format("rank {} expects a world of {} ranks, {} {}: use one world size", dissent->rank,
                                        dissent->own, others_than(dissent->rank, world_), dissent->others));
    }
    std::vector<std::string> messages;
    for (auto& [rank, value] : ordered) messages.push_back(value.substr(std::min(world_bytes, value.size())));
    return messages;
}

Failure failure_of(const wire::GaveUp& notice) {
    const auto reason = static_cast<Reason>(notice.reason - 1);
    if (reason == Reason::mismatched) return disagreement(notice.text);
    // errors.md, forms, any: another rank gave up first; its error follows
    const std::string text = "gave up: " + notice.text;
    return fail_by_rank(Operation::rendezvous, reason, notice.rank, text);
}

wire::GaveUp notice_of(std::uint32_t rank, const Error& error) {
    // A disagreement names the rank that differs, whichever rank found it.
    return {.rank = static_cast<std::uint16_t>(rank),
            .reason = static_cast<std::uint8_t>(static_cast<unsigned>(error.reason) + 1),
            .text = error.reason == Reason::mismatched ? error.text : to_string(error)};
}

Result<std::vector<wire::RankFacts>> agreed_facts(std::span<const std::string> values, std::uint32_t own) {
    std::vector<std::uint32_t> ranks(values.size());
    std::iota(ranks.begin(), ranks.end(), 0U);
    auto facts = messages_of(values, ranks, wire::decode<wire::RankFacts>);
    if (!facts) return facts;
    std::vector<std::string> terms;
    for (const wire::RankFacts& each : *facts) terms.push_back(each.terms);
    auto dissent = dissent_of(terms);
    if (!dissent) return facts;
    if (ATP_CONTROL_BREAK(blames_first_other)) {
        const auto other = std::ranges::find_if(terms, [&](const std::string& each) { return each != terms[own]; });
        dissent->rank = static_cast<std::uint32_t>(other - terms.begin());
    }
    // errors.md, forms, mismatched: both texts have only the options that differ
    return disagreement(fmt::format("rank {} has the options \"{}\", {} \"{}\": use equal options on all ranks",
                                    dissent->rank, words_only_in(dissent->own, dissent->others),
                                    others_than(dissent->rank, values.size()),
                                    words_only_in(dissent->others, dissent->own)));
}

}  // namespace ATP_VARIANT

#ifndef ATP_BREAKABLE
Failure unreadable(std::string_view value, std::uint32_t rank) {
    const std::uint8_t version = value.empty() ? 0 : wire::load_u8(std::as_bytes(std::span(value)).data());
    const std::string text =
        version >> 4U != wire::control_version >> 4U || version == wire::control_version
            // errors.md, forms, version mismatch: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
            ? std::string("its message in the store cannot be read: run the same version of atp on all ranks")
            // errors.md, forms, version mismatch: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
            : fmt::format("it has version {} of the messages, this rank {}: run the same version of atp on all ranks",
                          version & 0xFU, wire::control_version & 0xFU);
    return fail_by_rank(Operation::rendezvous, Reason::version_mismatch, rank, text);
}
#endif

}  // namespace atp::control
