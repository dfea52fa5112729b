// SPDX-License-Identifier: Apache-2.0
// The values of one round of a formation. All ranks that read the same values come to the same result, in whatever
// order they read them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "protocol/variant.h"
#include "wire/control.h"

namespace atp::control {
inline namespace ATP_VARIANT {

// What a rank leaves in the store: its number of ranks in four bytes, then a message.
[[nodiscard]] std::string stamped(std::uint32_t world, std::string_view message);
// In place of a value, with 0 as the number of ranks.
[[nodiscard]] std::string stamped(const wire::GaveUp& notice);
// nullopt: the value is none of those.
[[nodiscard]] std::optional<wire::GaveUp> notice_in(std::string_view value);

// Collects the values of some ranks.
//
// Ownership: a value.
// Calling order: take() for each rank, in any order, until complete(); then values().
// Threads: none.
// Failure: values() fails if a rank gave up (with its reason), or if ranks expect different numbers of ranks: then the
//   error names the rank that differs from most others, on all ranks.
class FactRound {
  public:
    // `ranks`: whose values this rank needs, ascending.
    FactRound(std::uint32_t world, std::vector<std::uint32_t> ranks);

    void take(std::uint32_t rank, std::string_view value);
    [[nodiscard]] bool complete() const;
    // Whose values have not come.
    [[nodiscard]] std::vector<std::uint32_t> missing() const;
    // In the order of `ranks`.
    [[nodiscard]] Result<std::vector<std::string>> values() const;

    // Of the first of `ranks` that gave up; nullopt: none did.
    [[nodiscard]] std::optional<wire::GaveUp> notice() const;
    // Most ranks that any rank expects.
    [[nodiscard]] std::uint32_t widest() const;

  private:
    std::uint32_t world_;
    std::vector<std::uint32_t> ranks_;
    std::vector<std::pair<std::uint32_t, std::string>> taken_;  // in the order of reading
};

// Why a rank that gave up did, for the ranks that read it.
[[nodiscard]] Failure failure_of(const wire::GaveUp& notice);
// The notice of a rank that fails with this error.
[[nodiscard]] wire::GaveUp notice_of(std::uint32_t rank, const Error& error);

// The facts in the order of ranks. Failure: a value cannot be read, or options differ that must be equal: then the
// error names the rank that differs from most others, and what differs. `own`: the rank that reads.
[[nodiscard]] Result<std::vector<wire::RankFacts>> agreed_facts(std::span<const std::string> values, std::uint32_t own);

}  // namespace ATP_VARIANT

// The bytes of a message, for stamped().
template <class Message>
[[nodiscard]] std::string message_text(const Message& message) {
    std::string bytes(wire::max_control_bytes, '\0');
    bytes.resize(wire::encode(message, std::as_writable_bytes(std::span(bytes))));
    return bytes;
}

// Why the message that a rank left cannot be read: another version, or not as the page says.
[[nodiscard]] Failure unreadable(std::string_view value, std::uint32_t rank);

// The messages of `ranks`, one value each. `decode`: of wire/formation_messages.h.
template <class Message>
[[nodiscard]] Result<std::vector<Message>> messages_of(std::span<const std::string> values,
                                                       std::span<const std::uint32_t> ranks,
                                                       std::optional<Message> (*decode)(std::span<const std::byte>)) {
    std::vector<Message> messages;
    for (std::size_t at = 0; at < values.size(); ++at) {
        auto message = decode(std::as_bytes(std::span(values[at])));
        if (!message) return unreadable(values[at], ranks[at]);
        messages.push_back(*std::move(message));
    }
    return messages;
}

}  // namespace atp::control
