// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>

#include "base/time.h"
#include "control/channel_key.h"
#include "control/data_plane.h"
#include "wire/address.h"

namespace atp::control {

// A control message that passed a switch in the path, and what is known of its datagram.
struct PassingMessage {
    std::span<const std::byte> bytes;
    wire::Address from;
    wire::Address to;
    // Number of the interface at which it arrived. 0: this host sent it, or the interface is not known.
    std::uint32_t entrance = 0;
    std::array<std::byte, 12> ethernet{};  // addresses of receiver and sender of its frame
    bool is_plain = false;                 // its frame has no VLAN tag, so a copy can have the same headers
};

// JOINs that passed and have no answer yet. Who sends a JOIN and its JOINED itself proves nothing. So an answer counts
// if it comes from the host to which the JOIN went, goes to where the JOIN came from, and does not enter where the JOIN
// entered.
//
// Ownership: at most `most` questions, of which one host has at most `most_of_a_host`.
// Calling order: ask() for each JOIN, answer() for each JOINED. Time does not decrease.
// Threads: none.
// Failure: beyond the limit of its host a question is forgotten. Beyond the other limit, the oldest of all is: JOINs
// are
//   repeated, and answers come soon.
class PassingQuestions {
  public:
    static constexpr std::size_t most = 4096;
    static constexpr std::uint32_t most_of_a_host = 512;

    // What the answer to a JOIN proves.
    struct Proven {
        AdmittedPlace place{};
        std::optional<PassedMember> member{};  // nullopt: no copy can reach it, or another member of its unit gets it
    };

    void ask(const PassingMessage& join, std::uint64_t nonce, const ChannelKey& channel, const Proven& proven,
             Time now);
    // Each question has one answer.
    [[nodiscard]] std::optional<Proven> answer(const PassingMessage& joined, std::uint64_t nonce,
                                               const ChannelKey& channel, Time now);
    void forget_expired(Time now);
    [[nodiscard]] std::size_t size() const { return waiting_.size(); }

  private:
    struct Question {
        wire::Address from;
        std::uint64_t nonce = 0;
        ChannelKey channel{};

        friend auto operator<=>(const Question&, const Question&) = default;
    };
    struct OpenQuestion {
        Question question;
        wire::Address to;
        std::uint32_t entrance = 0;
        Proven proven{};
        Time until{};
    };
    using Place = std::list<OpenQuestion>::iterator;

    void remove(Place at);

    std::list<OpenQuestion> waiting_;  // the oldest is first
    std::map<Question, Place> places_;
    std::map<wire::Address, std::uint32_t> of_hosts_;  // by address without a port
};

}  // namespace atp::control
