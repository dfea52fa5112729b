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

constexpr std::string_view informed = "informed";

std::string did_not_come(std::string_view name, const std::vector<std::string>& ranks, std::uint32_t world) {
    // errors.md, forms, timed out: the named ranks did not create the group, or do not reach rank 0
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

Rendezvous::Rendezvous(Store& store, Party party, const std::optional<crypto::TenantKey>& key)
    : store_(store),
      party_(std::move(party)),
      giving_up_(party_.rank, party_.world),
      sealing_(fmt::format("{}/{}", party_.prefix, party_.generation), party_.rank, party_.world, key) {}

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

// Errors of the store are ignored: this rank fails anyway.
void Rendezvous::give_up(const Error& error, std::span<const std::string_view> names) {
    if (names.empty() || !check(names.front())) return;
    auto farewell = giving_up_.give_up(error, names.front());
    if (!farewell) return;
    if (!farewell->value.empty()) farewell->value = sealing_.sealed_notice(std::move(farewell->value));
    leave(*farewell, names);
    static_cast<void>(store_.set(key_of(informed, party_.rank), "1"));
    if (farewell->waits) wait_until_informed(names.front(), farewell->ranks);
}

void Rendezvous::leave(const control::Farewell& farewell, std::span<const std::string_view> names) {
    if (farewell.is_new && !store_.set(key_of_giving_up(), farewell.value)) return;
    if (farewell.value.empty()) return;
    for (const std::string_view name : names) {
        if (!store_.set(key_of(name, party_.rank), farewell.value)) return;
    }
    if (!farewell.is_new) return;
    const auto missing = store_.missing(keys_of(farewell.round, first_ranks(farewell.ranks)));
    if (!missing) return;
    for (const std::string& key : *missing) {
        if (!store_.set(key, farewell.value)) return;
    }
}

void Rendezvous::wait_until_informed(std::string_view first_name, std::uint32_t ranks) {
    std::vector<std::string> arrivals = keys_of(first_name, first_ranks(ranks));
    for (std::string& key : arrivals) key = arrival_of(key);
    const auto missing = store_.missing(arrivals);
    if (!missing) return;
    std::vector<std::string> awaited;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const bool came = std::ranges::find(*missing, arrivals[rank]) == missing->end();
        if (came) awaited.push_back(key_of(informed, rank));
    }
    static_cast<void>(store_.wait(awaited, net::after(net::now(), control::longest_farewell)));
}

std::optional<Failure> Rendezvous::given_up() {
    auto value = store_.get(key_of_giving_up(), net::now());
    const auto opened = value ? sealing_.opened_notice(*std::move(value)) : std::nullopt;
    const auto notice = opened ? control::notice_in(*opened) : std::nullopt;
    if (!notice) return std::nullopt;
    giving_up_.handle_notice(*notice);
    return control::failure_of(*notice);
}

Result<void> Rendezvous::check(std::string_view name) const {
    const auto malformed = [](std::string text) {
        return fail(Operation::rendezvous, Reason::malformed, {}, std::move(text));
    };
    if (party_.rank >= party_.world) {
        return malformed(
            fmt::format("rank {} is out of range; a world of {} ranks counts from 0", party_.rank, party_.world));
    }
    // errors.md, calls, malformed
    if (party_.prefix.empty()) return malformed("the name of the communicator is empty; use 1 or more characters");
    if (name.empty() || name.find('/') != std::string_view::npos) {
        // errors.md, calls, malformed: the `name` of the options
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
    giving_up_.enter(name);
    const std::string key = key_of(name, party_.rank);
    const auto arrivals = store_.add(arrival_of(key), 1);
    if (!arrivals) return Failure(arrivals.error());
    if (auto alone = giving_up_.handle_arrivals(*arrivals); !alone) return alone;
    return store_.set(key, sealing_.sealed(key, control::stamped(party_.world, value)));
}

Result<std::vector<std::string>> Rendezvous::collect(std::string_view name, const std::vector<std::uint32_t>& ranks,
                                                     Time deadline) {
    if (auto checked = check(name); !checked) return Failure(std::move(checked).error());
    giving_up_.enter(name);
    const Time begin = net::now();
    const std::vector<std::string> keys = keys_of(name, ranks);
    auto values = store_.get_all(keys, deadline);
    if (!values && values.error().reason == Reason::timed_out) {
        return missing_parties(name, ranks, std::move(values).error());
    }
    if (values) values = sealing_.opened(ranks, keys, *std::move(values));
    if (!values) return values;
    control::FactRound round(party_.world, ranks);
    for (std::size_t at = 0; at < ranks.size(); ++at) round.take(ranks[at], (*values)[at]);
    giving_up_.handle_round(round);
    auto messages = round.values();
    if (!messages && round.notice()) messages.error().elapsed = net::now() - begin;
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
        error.ranks.push_back(ranks[at]);
        ++next;
    }
    error.text = did_not_come(name, names, party_.world);
    return Failure(std::move(error));
}

}  // namespace atp::store
