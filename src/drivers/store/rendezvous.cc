// SPDX-License-Identifier: Apache-2.0
#include "store/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "base/text.h"
#include "control/fact_round.h"
#include "net/clock.h"

namespace atp::store {
namespace {

// Rank 0 waits so long for ranks that have not read why the formation failed.
constexpr Duration longest_farewell = std::chrono::seconds(1);
constexpr std::string_view informed = "informed";

std::string did_not_come(std::string_view name, const std::vector<std::string>& ranks, std::uint32_t world) {
    return fmt::format("'{}': {} {} of {} did not arrive: check that these processes run", name,
                       ranks.size() == 1 ? "rank" : "ranks", list_some(ranks), world);
}

// A second value under this key shows that two processes have one rank.
std::string arrival_of(const std::string& key) { return key + "/came"; }

std::vector<std::uint32_t> first_ranks(std::uint32_t count) {
    std::vector<std::uint32_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0U);
    return ranks;
}

}  // namespace

std::vector<std::uint32_t> Party::ranks() const { return first_ranks(world); }

Result<std::vector<std::string>> Rendezvous::all_gather(std::string_view name, std::string_view value, Time deadline) {
    if (auto left = announce(name, value); !left) return Failure(std::move(left).error());
    return collect(name, party_.ranks(), deadline);
}

bool Rendezvous::has_come(std::string_view name, std::uint32_t rank) {
    const std::string key = key_of(name, rank);
    const auto missing = store_.missing({&key, 1});
    return missing && missing->empty();
}

Result<void> Rendezvous::barrier(std::string_view name, Time deadline) {
    auto arrivals = all_gather(name, {}, deadline);
    if (!arrivals) return Failure(std::move(arrivals).error());
    return {};
}

void Rendezvous::give_up(const Error& error, std::span<const std::string_view> names) {
    if (displaced_ || names.empty() || !check(names.front())) return;
    report(error, names);
    static_cast<void>(store_.set(key_of(informed, party_.rank), "1"));
    if (party_.rank == 0) wait_until_informed(names.front());
}

void Rendezvous::report(const Error& error, std::span<const std::string_view> names) {
    if (std::exchange(notified_, true)) {
        // A rank that waits for this one may be past the operation in which the first reason came.
        static_cast<void>(repeat(std::exchange(notice_, {}), names));
        return;
    }
    const std::string value = control::stamped(control::notice_of(party_.rank, error));
    if (!store_.set(key_of_giving_up(), value)) return;
    if (!repeat(value, names)) return;
    // Ranks that wait in that operation wait for all values, so this rank sets the missing values.
    const std::string_view last = last_name_.empty() ? names.front() : std::string_view(last_name_);
    const auto missing = store_.missing(keys_of(last, first_ranks(widest_)));
    if (!missing) return;
    for (const std::string& key : *missing) {
        if (!store_.set(key, value)) return;
    }
}

void Rendezvous::wait_until_informed(std::string_view first_name) {
    const std::vector<std::uint32_t> others = first_ranks(widest_);
    std::vector<std::string> arrivals;
    for (const std::uint32_t rank : others) arrivals.push_back(arrival_of(key_of(first_name, rank)));
    const auto missing = store_.missing(arrivals);
    if (!missing) return;
    std::vector<std::string> awaited;
    auto absent = missing->begin();  // in the order of the keys
    for (std::size_t rank = 0; rank < arrivals.size(); ++rank) {
        if (absent != missing->end() && *absent == arrivals[rank]) {
            ++absent;
        } else {
            awaited.push_back(key_of(informed, others[rank]));
        }
    }
    static_cast<void>(store_.wait(awaited, net::after(net::now(), longest_farewell)));
}

bool Rendezvous::repeat(const std::string& notice, std::span<const std::string_view> names) {
    return notice.empty() || std::ranges::all_of(names, [&](std::string_view name) {
               return store_.set(key_of(name, party_.rank), notice).has_value();
           });
}

std::optional<Failure> Rendezvous::given_up() {
    const auto value = store_.get(key_of_giving_up(), net::now());
    if (!value) return std::nullopt;
    control::FactRound round(party_.world, {party_.rank});
    round.take(party_.rank, *value);
    const auto notice = round.notice();
    if (!notice) return std::nullopt;
    learn(*notice);
    return control::failure_of(*notice);
}

void Rendezvous::learn(const wire::GaveUp& notice) {
    notified_ = true;
    notice_ = control::stamped(notice);
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

std::vector<std::string> Rendezvous::keys_of(std::string_view name, const std::vector<std::uint32_t>& ranks) const {
    std::vector<std::string> keys;
    keys.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) keys.push_back(key_of(name, rank));
    return keys;
}

std::string Rendezvous::key_of_giving_up() const {
    return fmt::format("{}/{}/gave-up", party_.prefix, party_.generation);
}

Result<void> Rendezvous::announce(std::string_view name, std::string_view value) {
    if (auto checked = check(name); !checked) return checked;
    last_name_ = name;
    const std::string key = key_of(name, party_.rank);
    const auto arrivals = store_.add(arrival_of(key), 1);
    if (!arrivals) return Failure(arrivals.error());
    if (*arrivals > 1) {
        displaced_ = true;
        return fail(Operation::rendezvous, Reason::mismatched, {},
                    fmt::format("'{}': rank {} arrived twice: give each process its own rank, and each communicator "
                                "its own name",
                                name, party_.rank));
    }
    return store_.set(key, control::stamped(party_.world, value));
}

Result<std::vector<std::string>> Rendezvous::collect(std::string_view name, const std::vector<std::uint32_t>& ranks,
                                                     Time deadline) {
    if (auto checked = check(name); !checked) return Failure(std::move(checked).error());
    last_name_ = name;
    const Time begin = net::now();
    auto values = store_.get_all(keys_of(name, ranks), deadline);
    if (!values && values.error().reason == Reason::timed_out) {
        return missing_parties(name, ranks, std::move(values).error());
    }
    if (!values) return values;
    control::FactRound round(party_.world, ranks);
    for (std::size_t at = 0; at < ranks.size(); ++at) round.take(ranks[at], (*values)[at]);
    widest_ = std::max(widest_, round.widest());
    auto messages = round.values();
    if (messages) return messages;
    if (const auto notice = round.notice()) {
        learn(*notice);
        messages.error().elapsed = net::now() - begin;
    }
    return messages;
}

// A rank that arrived after the timeout is not listed.
Failure Rendezvous::missing_parties(std::string_view name, const std::vector<std::uint32_t>& ranks, Error error) {
    const std::vector<std::string> keys = keys_of(name, ranks);
    const auto missing = store_.missing(keys);
    if (!missing || missing->empty()) return Failure(std::move(error));
    std::vector<std::string> names;
    auto next = missing->begin();  // in the order of the keys
    for (std::size_t at = 0; at < ranks.size() && next != missing->end(); ++at) {
        if (*next != keys[at]) continue;
        names.push_back(std::to_string(ranks[at]));
        ++next;
    }
    error.text = did_not_come(name, names, party_.world);
    return Failure(std::move(error));
}

}  // namespace atp::store
