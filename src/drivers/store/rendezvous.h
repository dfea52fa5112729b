// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace atp::store {

// Who meets, and the how-manieth time: a communicator that forms anew has the next generation and so does not meet what
// the former one has left behind.
struct Party {
    std::string prefix;  // the communicator's name; some hundred bytes at most
    std::uint32_t generation = 0;
    std::uint32_t rank = 0;
    std::uint32_t world = 1;  // how many ranks there are
};

// What ranks do together before they have anything but a store.
//
// Calling order: every rank calls the same with the same name, each name once in a generation. A name is not empty and
// has no '/'. Borrows: the store. Threads: as the store's. Failure: the store's, and
//   timed_out   the text says which ranks did not come
//   mismatched  two processes have one rank, a name was used twice, or ranks disagree about how many they are
//   malformed   the party or the name is none.
// If a rank has given up, the others fail with its reason, and the error names that rank.
class Rendezvous {
  public:
    Rendezvous(Store& store, Party party) : store_(store), party_(std::move(party)) {}

    // Every rank's value, by rank. A value is up to max_value_bytes - 4.
    [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string_view name, std::string_view value,
                                                              Time deadline);
    // Rank 0's value, for everybody; the others' is not looked at. Rank 0 waits for nobody.
    [[nodiscard]] Result<std::string> broadcast_from_zero(std::string_view name, std::string_view value, Time deadline);
    // Nobody returns before everybody has called.
    [[nodiscard]] Result<void> barrier(std::string_view name, Time deadline);
    // Tells the other ranks that this rank gives up, and why. Wakes the ranks that wait where this rank came last;
    // ranks that call with one of `names` later fail too. Does nothing if another rank gave up before and this rank
    // knows it, or if another process has this rank. Best effort: errors of the store are ignored.
    void give_up(const Error& error, std::span<const std::string_view> names);
    // Why a rank gave up, if one did. Asks the store and does not wait.
    [[nodiscard]] std::optional<Failure> given_up();
    // Removes what a generation has left in the store: one rank's business, once no rank can be in that generation.
    [[nodiscard]] Result<void> forget(std::uint32_t generation);

    [[nodiscard]] const Party& party() const { return party_; }

  private:
    [[nodiscard]] Result<void> check(std::string_view name) const;
    [[nodiscard]] std::string key_of(std::string_view name, std::uint32_t rank) const;
    [[nodiscard]] Result<void> leave(std::string_view name, std::string_view value);
    [[nodiscard]] Result<std::vector<std::string>> collect(std::string_view name,
                                                           const std::vector<std::uint32_t>& ranks, Time deadline);
    [[nodiscard]] Failure who_is_missing(std::string_view name, const std::vector<std::uint32_t>& ranks, Error error);
    [[nodiscard]] Failure mismatched(std::string text) const;
    [[nodiscard]] std::vector<std::string> keys_of(std::string_view name) const;
    [[nodiscard]] std::string key_of_giving_up() const;
    // Of the value that a rank that gave up has set; the rank's number is in it.
    [[nodiscard]] Failure reason_of_giving_up(std::string_view value);

    Store& store_;
    Party party_;
    std::string last_name_;   // where this rank came last
    bool told_ = false;       // all ranks know that the communicator does not form
    bool displaced_ = false;  // another process has this rank: what this one finds is no matter of the others
};

}  // namespace atp::store
