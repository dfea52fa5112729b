// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/giving_up.h"
#include "crypto/tenant_key.h"
#include "store/sealing.h"
#include "store/store.h"

namespace atp::store {

// Identifies a rank, its communicator, and how often that communicator has formed. A communicator that forms again uses
// the next generation, so it does not read values of the previous one.
struct Party {
    std::string prefix;            // name of the communicator; all keys must fit max_key_bytes
    std::uint32_t generation = 0;  // grows each time the communicator forms
    std::uint32_t rank = 0;        // below `world`
    std::uint32_t world = 1;       // number of ranks

    [[nodiscard]] std::vector<std::uint32_t> ranks() const;
};

// Rounds of ranks that share only a store: each leaves a value, and reads those that it needs. control::FactRound
// judges them. docs/spec/formation.md is normative.
//
// Ownership: borrows the store, which must outlive the rendezvous.
// Calling order: every rank calls the same operations with the same names. A name is used once in a generation; it is
//   not empty and has no '/'.
// Threads: none. One thread drives one rendezvous.
// Failure: that of the store, and
//   timed_out   some ranks did not call in time; the text lists them
//   mismatched  two processes have the same rank, a name was used twice, or ranks have different values of `world` or
//               different keys, or somebody else wrote to the store of ranks that have one
//   malformed   the party or the name is invalid.
//   If a rank has given up, the others fail with its reason, and the error names that rank. If the ranks disagree, the
//   error names the rank that differs from most others, on all ranks.
class Rendezvous {
  public:
    // With a key, all values are sealed; all ranks need the same.
    Rendezvous(Store& store, Party party, const std::optional<crypto::TenantKey>& key = std::nullopt);

    // Leaves the value of this rank, which has at most max_value_bytes - 4 - crypto::seal_overhead bytes.
    [[nodiscard]] Result<void> announce(std::string_view name, std::string_view value);
    // Waits for the values of these ranks, ascending, and returns them in this order.
    [[nodiscard]] Result<std::vector<std::string>> collect(std::string_view name,
                                                           const std::vector<std::uint32_t>& ranks, Time deadline);
    // The rank has left its value. Does not wait.
    [[nodiscard]] bool has_come(std::string_view name, std::uint32_t rank);
    // announce() and collect(), of all ranks.
    [[nodiscard]] Result<std::vector<std::string>> all_gather(std::string_view name, std::string_view value,
                                                              Time deadline);
    // The same with messages of wire/formation_messages.h. The error names a rank whose message cannot be read.
    template <class Message>
    [[nodiscard]] Result<void> announce_message(std::string_view name, const Message& message) {
        return announce(name, control::message_text(message));
    }
    template <class Message>
    [[nodiscard]] Result<std::vector<Message>> collect_messages(
        std::string_view name, const std::vector<std::uint32_t>& ranks, Time deadline,
        std::optional<Message> (*decode)(std::span<const std::byte>)) {
        const auto values = collect(name, ranks, deadline);
        if (!values) return Failure(values.error());
        return control::messages_of(*values, ranks, decode);
    }
    template <class Message>
    [[nodiscard]] Result<std::vector<Message>> exchange(std::string_view name, const Message& own,
                                                        const std::vector<std::uint32_t>& ranks, Time deadline,
                                                        std::optional<Message> (*decode)(std::span<const std::byte>)) {
        if (auto left = announce_message(name, own); !left) return Failure(std::move(left).error());
        return collect_messages(name, ranks, deadline, decode);
    }
    // No rank returns before all ranks have called.
    [[nodiscard]] Result<void> barrier(std::string_view name, Time deadline);
    // Reports to the other ranks that this rank gives up, and why. Ranks that wait in the last operation of this rank
    // then fail; so do ranks that later call an operation of `names`. If this rank knows that another rank gave up, it
    // passes that reason on to the ranks that wait for it. Does nothing if another process has this rank. Errors of the
    // store are ignored. Rank 0, whose process often serves the store, returns when the others know, or after a second.
    void give_up(const Error& error, std::span<const std::string_view> names);
    // Why a rank gave up; nullopt: none did. Queries the store and does not wait for keys.
    [[nodiscard]] std::optional<Failure> given_up();

    // A secret that only the ranks know, which nobody sends; nullopt: there is no key. All ranks get the same between
    // the same two rounds of all ranks.
    [[nodiscard]] std::optional<Secret> secret(std::string_view purpose, std::uint32_t number) const {
        return sealing_.secret(purpose, number);
    }
    [[nodiscard]] std::optional<crypto::SecretKey> key(std::string_view purpose) const { return sealing_.key(purpose); }

    [[nodiscard]] bool has_key() const { return sealing_.has_key(); }

    [[nodiscard]] const Party& party() const { return party_; }

  private:
    [[nodiscard]] Result<void> check(std::string_view name) const;
    [[nodiscard]] std::string key_of(std::string_view name, std::uint32_t rank) const;
    [[nodiscard]] std::vector<std::string> keys_of(std::string_view name,
                                                   const std::vector<std::uint32_t>& ranks) const;
    [[nodiscard]] std::string key_of_giving_up() const;
    [[nodiscard]] Failure missing_parties(std::string_view name, const std::vector<std::uint32_t>& ranks, Error error);
    void leave(const control::Farewell& farewell, std::span<const std::string_view> names);
    void wait_until_informed(std::string_view first_name, std::uint32_t ranks);

    Store& store_;
    Party party_;
    control::GivingUp giving_up_;
    Sealing sealing_;
};

}  // namespace atp::store
