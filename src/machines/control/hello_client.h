// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "control/timing.h"
#include "wire/address.h"
#include "wire/control.h"

namespace atp::control {

struct HelloClientConfig {
    wire::Address peer{};           // the switch
    std::uint64_t first_nonce = 0;  // random: only a peer that receives the HELLOs knows it
    bool any_sender = false;        // a WELCOME may come from another address of the switch, which its nonce proves
    Duration hold = timing.parent_hold;  // without a WELCOME for longer, the switch does not answer any more
};

// A sequence of HELLOs: the first group at once, then one group at each interval.
struct HelloSeries {
    std::uint32_t first_bytes = 0;     // least length of the first HELLO
    std::uint32_t bytes = 0;           // least length of the others
    std::uint32_t count = 0;           // HELLOs of the series; 0: no limit
    std::uint32_t group = 1;           // HELLOs sent together
    Duration interval = timing.hurry;  // between two groups while the switch does not answer
    Duration refresh = timing.hurry;   // and while it does
};

// What a message of the switch says.
struct HelloAnswer {
    enum class Kind : std::uint8_t { welcome, refused };
    Kind kind = Kind::welcome;
    wire::Welcome welcome{};
    std::optional<std::uint32_t> number{};   // welcome: HELLO of the series, from 0; nullopt: of an earlier series
    Duration round_trip{};                   // welcome: since that HELLO; at most 1,024 HELLOs are remembered
    std::uint8_t version = 0;                // refused: version byte of the switch
    std::optional<wire::Refused> refusal{};  // refused: nullopt if another version's text cannot be read

    // refused: the switch has another version of the protocol.
    [[nodiscard]] bool is_foreign() const {
        return version != wire::control_version || (refusal && refusal->reason == wire::Refusal::version);
    }
};

// Asks a switch for its path with HELLO, each with the next nonce, and recognises the answers. Programs that set up a
// job, switches below a parent and `atp doctor` use it, each with a series of its own.
//
// Ownership: owns a ring of 1,024 sending times, allocated at construction.
// Calling order: begin(), then poll_transmit() until it returns nothing, again at poll_timeout(). handle_message() for
//   each datagram of the socket, handle_timeout() at poll_timeout().
// Threads: none.
// Failure: another message changes nothing. If the switch is silent for `hold`, answers() is false and path() is empty.
class HelloClient {
  public:
    explicit HelloClient(const HelloClientConfig& config);

    // Begins a series, whose first HELLO is due at once. An answer to an earlier series still proves that the switch
    // answers.
    void begin(const HelloSeries& series, Time now);
    // nullopt: no answer of the switch to this client. It repeats the nonce of a HELLO, and a REFUSED comes from the
    // peer.
    std::optional<HelloAnswer> handle_message(std::span<const std::byte> bytes, const wire::Address& from, Time now);
    void handle_timeout(Time now);
    // Writes the next HELLO that is due into `buffer`, which holds at least next_bytes(), and returns its length.
    std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now);
    [[nodiscard]] std::size_t next_bytes() const;
    // When the next group is due; never: the series has ended, or none has begun.
    [[nodiscard]] Time poll_timeout() const { return complete() ? never : next_; }

    [[nodiscard]] bool answers() const { return answers_; }
    // Switches from the peer to the root; empty while the peer does not answer.
    [[nodiscard]] std::span<const wire::PathSwitch> path() const { return std::span(path_).first(path_length_); }
    [[nodiscard]] std::uint32_t sent() const { return sent_; }  // HELLOs of the series
    [[nodiscard]] const wire::Address& peer() const { return config_.peer; }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(series_.first_bytes), archive.value(series_.bytes), archive.value(series_.count);
        archive.value(series_.group), archive.value(series_.interval), archive.value(series_.refresh);
        archive.value(begun_), archive.value(nonce_), archive.value(sent_), archive.value(group_left_);
        archive.time(next_), archive.value(answers_), archive.time(answered_at_), archive.value(path_length_);
        for (Time& at : sent_at_) archive.time(at);
        for (wire::PathSwitch& at : path_) {
            archive.value(at.id), archive.value(at.aggregators), archive.value(at.lanes);
        }
    }

  private:
    static constexpr std::uint32_t remembered = 1024;

    // A HELLO with this nonce was sent.
    [[nodiscard]] bool is_known(std::uint64_t nonce) const {
        return nonce - config_.first_nonce < nonce_ - config_.first_nonce;
    }
    [[nodiscard]] bool complete() const { return !begun_ || (series_.count != 0 && sent_ >= series_.count); }
    std::optional<HelloAnswer> welcome_of(std::span<const std::byte> bytes, const wire::Address& from, Time now);

    HelloClientConfig config_;
    HelloSeries series_;
    bool begun_ = false;
    std::uint64_t nonce_;           // of the next HELLO
    std::uint32_t sent_ = 0;        // of the series
    std::uint32_t group_left_ = 0;  // HELLOs of the current group still to be sent
    Time next_{};                   // when the next group is due
    bool answers_ = false;
    Time answered_at_{};
    std::vector<Time> sent_at_;  // of HELLO n of the series at n mod 1,024
    std::array<wire::PathSwitch, wire::max_path_switches> path_{};
    std::uint32_t path_length_ = 0;
};

}  // namespace atp::control
