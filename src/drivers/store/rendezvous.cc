// SPDX-License-Identifier: Apache-2.0
#include "store/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "base/dissent.h"
#include "base/text.h"
#include "net/clock.h"

namespace atp::store {
namespace {

// Each value begins with its owner's number of ranks, in four bytes, big-endian.
constexpr std::size_t world_bytes = 4;

// Limit of the ranks to which a rank that gives up reports, when others expect a wider world.
constexpr std::uint32_t most_ranks = 4096;

// In place of the number of ranks: the owner of the value has given up. The rank, the number of the reason and a text
// follow, separated by blanks.
constexpr std::uint32_t gave_up = 0;

std::string with_world(std::uint32_t world, std::string_view value) {
    std::string stamped;
    for (const unsigned shift : {24U, 16U, 8U, 0U}) stamped.push_back(static_cast<char>(world >> shift & 0xFFU));
    return stamped += value;
}

std::optional<std::uint32_t> world_of(std::string_view stamped) {
    if (stamped.size() < world_bytes) return std::nullopt;
    std::uint32_t world = 0;
    for (const char byte : stamped.substr(0, world_bytes)) world = world << 8U | static_cast<std::uint8_t>(byte);
    return world;
}

// The number that `text` begins with, which is removed together with the blank after it.
std::optional<std::uint32_t> take_number(std::string_view& text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return number;
}

std::string did_not_come(std::string_view name, const std::vector<std::string>& ranks, std::uint32_t world) {
    return fmt::format("'{}': {} {} of {} did not arrive: check that these processes run", name,
                       ranks.size() == 1 ? "rank" : "ranks", list_some(ranks), world);
}

}  // namespace

Result<std::vector<std::string>> Rendezvous::all_gather(std::string_view name, std::string_view value, Time deadline) {
    if (auto left = announce(name, value); !left) return Failure(std::move(left).error());
    last_name_ = name;
    std::vector<std::uint32_t> all_ranks(party_.world);
    std::iota(all_ranks.begin(), all_ranks.end(), 0U);
    return collect(name, all_ranks, deadline);
}

Result<std::string> Rendezvous::broadcast_from_zero(std::string_view name, std::string_view value, Time deadline) {
    if (party_.rank == 0) {
        if (auto left = announce(name, value); !left) return Failure(std::move(left).error());
        return std::string(value);
    }
    if (auto checked = check(name); !checked) return Failure(std::move(checked).error());
    last_name_ = name;
    auto values = collect(name, {0}, deadline);
    if (!values) return Failure(std::move(values).error());
    return std::move(values->front());
}

Result<void> Rendezvous::barrier(std::string_view name, Time deadline) {
    auto arrivals = all_gather(name, {}, deadline);
    if (!arrivals) return Failure(std::move(arrivals).error());
    return {};
}

void Rendezvous::give_up(const Error& error, std::span<const std::string_view> names) {
    if (displaced_ || names.empty() || !check(names.front())) return;
    if (std::exchange(notified_, true)) {
        // A rank that waits for this one may be past the operation in which the first reason came.
        static_cast<void>(repeat(std::exchange(notice_, {}), names));
        return;
    }
    // A disagreement names the rank that differs, whichever rank found it.
    const std::string whole = error.reason == Reason::mismatched ? error.text : to_string(error);
    const std::string text = whole.substr(0, max_value_bytes / 2);
    const std::string value =
        with_world(gave_up, fmt::format("{} {} {}", party_.rank, static_cast<unsigned>(error.reason), text));
    if (!store_.set(key_of_giving_up(), value)) return;
    if (!repeat(value, names)) return;
    // Ranks that wait in that operation wait for all values, so this rank sets the missing values.
    const auto missing = store_.missing(keys_of(last_name_.empty() ? names.front() : last_name_, widest_));
    if (!missing) return;
    for (const std::string& key : *missing) {
        if (!store_.set(key, value)) return;
    }
}

bool Rendezvous::repeat(const std::string& notice, std::span<const std::string_view> names) {
    return notice.empty() || std::ranges::all_of(names, [&](std::string_view name) {
               return store_.set(key_of(name, party_.rank), notice).has_value();
           });
}

std::optional<Failure> Rendezvous::given_up() {
    const std::string key = key_of_giving_up();
    const auto missing = store_.missing({&key, 1});
    if (!missing || !missing->empty()) return std::nullopt;
    const auto value = store_.get(key, net::now());
    if (!value || world_of(*value) != gave_up) return std::nullopt;
    return reason_of_giving_up(*value);
}

Failure Rendezvous::reason_of_giving_up(std::string_view value) {
    notified_ = true;
    notice_ = value;
    value.remove_prefix(world_bytes);
    const auto rank = take_number(value);
    const auto reason = take_number(value);
    const bool known = reason && *reason <= static_cast<std::uint32_t>(Reason::failed);
    if (rank && known && static_cast<Reason>(*reason) == Reason::mismatched) return mismatched(std::string(value));
    return fail(Operation::rendezvous, known ? static_cast<Reason>(*reason) : Reason::failed,
                rank ? fmt::format("rank {}", party_.number_of(*rank)) : "another rank",
                fmt::format("gave up: {}", value));
}

Result<void> Rendezvous::forget(std::uint32_t generation) {
    if (auto checked = check("everything"); !checked) return checked;
    auto removed = store_.remove(fmt::format("{}/{}/", party_.prefix, generation));
    if (!removed) return Failure(std::move(removed).error());
    return {};
}

Result<void> Rendezvous::check(std::string_view name) const {
    const auto malformed = [](std::string text) {
        return fail(Operation::rendezvous, Reason::malformed, {}, std::move(text));
    };
    if (party_.rank >= party_.world) {
        return malformed(
            fmt::format("rank {} is out of range; a world of {} ranks counts from 0", party_.rank, party_.world));
    }
    if (party_.prefix.empty()) return malformed("the name of the communicator is empty; use 1 or more characters");
    if (name.empty() || name.find('/') != std::string_view::npos) {
        return malformed(fmt::format("'{}' is not a name; use 1 or more characters without '/'", name));
    }
    return {};
}

// A name has no '/', so no two pairs of name and rank have the same key.
std::string Rendezvous::key_of(std::string_view name, std::uint32_t rank) const {
    return fmt::format("{}/{}/{}/{}", party_.prefix, party_.generation, name, rank);
}

std::vector<std::string> Rendezvous::keys_of(std::string_view name, std::uint32_t ranks) const {
    std::vector<std::string> keys;
    keys.reserve(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) keys.push_back(key_of(name, rank));
    return keys;
}

std::string Rendezvous::key_of_giving_up() const {
    return fmt::format("{}/{}/gave-up", party_.prefix, party_.generation);
}

Result<void> Rendezvous::announce(std::string_view name, std::string_view value) {
    if (auto checked = check(name); !checked) return checked;
    const std::string key = key_of(name, party_.rank);
    const auto arrivals = store_.add(key + "/came", 1);
    if (!arrivals) return Failure(arrivals.error());
    if (*arrivals > 1) {
        displaced_ = true;
        return mismatched(fmt::format(
            "'{}': rank {} arrived twice: give each process its own rank, and each communicator its own name", name,
            party_.number_of(party_.rank)));
    }
    return store_.set(key, with_world(party_.world, value));
}

Result<std::vector<std::string>> Rendezvous::collect(std::string_view name, const std::vector<std::uint32_t>& ranks,
                                                     Time deadline) {
    std::vector<std::string> keys;
    keys.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) keys.push_back(key_of(name, rank));
    const Time begin = net::now();
    auto values = store_.get_all(keys, deadline);
    if (!values && values.error().reason == Reason::timed_out) {
        return missing_parties(name, ranks, std::move(values).error());
    }
    if (!values) return values;
    std::vector<std::string> worlds(party_.world, std::to_string(party_.world));
    for (std::size_t at = 0; at < ranks.size(); ++at) {
        const std::uint32_t world = world_of((*values)[at]).value_or(1);
        if (world == gave_up) {
            Failure failure = reason_of_giving_up((*values)[at]);
            failure.value().elapsed = net::now() - begin;
            return failure;
        }
        worlds[ranks[at]] = std::to_string(world);
        widest_ = std::max(widest_, std::min(world, most_ranks));
    }
    if (const auto dissent = dissent_of(worlds)) {
        return mismatched(fmt::format("rank {} expects a world of {} ranks, the others {}: use one world size",
                                      party_.number_of(dissent->rank), dissent->own, dissent->others));
    }
    for (std::string& value : *values) value.erase(0, world_bytes);
    return values;
}

// A rank that arrived after the timeout is not listed.
Failure Rendezvous::missing_parties(std::string_view name, const std::vector<std::uint32_t>& ranks, Error error) {
    std::vector<std::string> keys;
    keys.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) keys.push_back(key_of(name, rank));
    const auto missing = store_.missing(keys);
    if (!missing || missing->empty()) return Failure(std::move(error));
    std::vector<std::string> names;
    auto next = missing->begin();  // in the order of the keys
    for (std::size_t at = 0; at < ranks.size() && next != missing->end(); ++at) {
        if (*next != keys[at]) continue;
        names.push_back(std::to_string(party_.number_of(ranks[at])));
        ++next;
    }
    error.text = did_not_come(name, names, party_.world);
    return Failure(std::move(error));
}

Failure Rendezvous::mismatched(std::string text) const {
    return fail(Operation::rendezvous, Reason::mismatched, {}, std::move(text));
}

}  // namespace atp::store
