// SPDX-License-Identifier: Apache-2.0
#include "store/sealing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/dissent.h"
#include "control/fact_round.h"
#include "keys/key_file.h"

namespace atp::store {
namespace {

std::string label_of(std::optional<std::uint32_t> key) { return key ? fmt::format("key {}", *key) : "no key"; }

Failure disagreement(std::uint32_t rank, std::string text) {
    return fail_by_rank(Operation::rendezvous, Reason::mismatched, rank, std::move(text));
}

}  // namespace

Sealing::Sealing(std::string formation, std::uint32_t rank, std::uint32_t world,
                 const std::optional<crypto::TenantKey>& key)
    : formation_(std::move(formation)), rank_(rank), world_(world) {
    if (key) seal_.emplace(*key);
}

std::string Sealing::sealed(std::string_view place, std::string value) const {
    return seal_ ? seal_->seal(place, value, keys::random_nonce()) : std::move(value);
}

std::string Sealing::sealed_notice(std::string value) const {
    return seal_ ? seal_->seal_notice(formation_, value, keys::random_nonce()) : std::move(value);
}

Result<std::vector<std::string>> Sealing::opened(const std::vector<std::uint32_t>& ranks,
                                                 const std::vector<std::string>& places,
                                                 std::vector<std::string> values) {
    if (auto compared = compare_keys(ranks, values); !compared) return Failure(std::move(compared).error());
    if (!seal_) return values;
    std::vector<std::string> plain;
    std::vector<std::uint32_t> closed;
    for (std::size_t at = 0; at < values.size(); ++at) {
        auto value = seal_->open(places[at], formation_, values[at]);
        if (!value) closed.push_back(ranks[at]);
        plain.push_back(std::move(value).value_or(std::string()));
    }
    if (!closed.empty()) {
        const std::uint32_t rank = blamed(closed);
        return disagreement(
            // errors.md, forms, mismatched: a program wrote to the ranks' store, or two keys have one id
            rank, fmt::format("rank {} left a value that does not open: give all ranks the same key file "
                              "(ATP_KEY_FILE), and let nothing else write to their store",
                              rank));
    }
    if (ranks.size() == world_) seal_->close_round(values);
    return plain;
}

std::optional<std::string> Sealing::opened_notice(std::string value) const {
    if (!seal_) return value;
    return seal_->open({}, formation_, value);
}

std::optional<Secret> Sealing::secret(std::string_view purpose, std::uint32_t number) const {
    if (!seal_) return std::nullopt;
    return seal_->secret(purpose, number);
}

std::optional<crypto::SecretKey> Sealing::key(std::string_view purpose) const {
    if (!seal_) return std::nullopt;
    return seal_->key(purpose);
}

// Of a rank that is not read here, its own key is assumed.
Result<void> Sealing::compare_keys(const std::vector<std::uint32_t>& ranks,
                                   const std::vector<std::string>& values) const {
    const auto own = seal_ ? std::optional<std::uint32_t>(seal_->id()) : std::nullopt;
    if (std::ranges::all_of(values, [&](const auto& value) { return crypto::key_of_sealed(value) == own; })) return {};
    std::vector<std::string> labels(world_, label_of(own));
    for (std::size_t at = 0; at < values.size(); ++at) {
        const auto key = crypto::key_of_sealed(values[at]);
        // A rank that gives up says so in the places of others too.
        const auto notice = key ? std::nullopt : control::notice_in(values[at]);
        const std::uint32_t rank = notice ? notice->rank : ranks[at];
        if (rank < world_) labels[rank] = label_of(key);
    }
    const auto dissent = dissent_of(labels);
    if (!dissent) return {};
    return disagreement(
        // errors.md, forms, mismatched: [keys](../operate/secure.md#keys)
        dissent->rank,
        fmt::format("rank {} has {}, {} {}: give all ranks the same key file (ATP_KEY_FILE)", dissent->rank,
                    dissent->own, world_ == 2 ? fmt::format("rank {}", 1 - dissent->rank) : "the others",
                    dissent->others));
}

// If this rank opens hardly any value, its own key is the odd one.
std::uint32_t Sealing::blamed(const std::vector<std::uint32_t>& closed) const {
    return 2 * closed.size() > world_ ? rank_ : closed.front();
}

}  // namespace atp::store
