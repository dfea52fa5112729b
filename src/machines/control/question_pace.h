// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/siphash.h"
#include "base/time.h"
#include "control/channel_key.h"
#include "protocol/archive.h"
#include "wire/address.h"

namespace atp::control {

// How often a switch asks a host that has not answered it. A JOIN may name any host as the parent of its job, also one
// that takes no part: all channels of a switch together send it at most nine questions in any 10 s, with pauses that
// grow from 50 ms to 3 s, so that a parent that starts late is found soon. A host that answered one channel may be
// asked by all others.
//
// Who asks next is drawn for each question, first among the members on whose behalf the channels ask, then among their
// channels: nobody can keep the others from asking by naming the same host with a port that never answers.
//
// Ownership: owns one entry for each host that was asked or has answered within 10 s; at most most_hosts.
// Calling order: ask() before each question to a parent that has not answered the channel; handle_answer() for each
//   answer of a parent.
// Threads: none. A driver whose threads share one overrides both calls with a lock.
// Failure: while the table is full, no further host is asked.
class QuestionPace {
  public:
    static constexpr std::size_t most_hosts = 4096;
    // For so long a host is remembered after it was asked, and counts as answering after an answer.
    static constexpr Duration memory = std::chrono::seconds(10);
    static constexpr Duration first_pause = std::chrono::milliseconds(50);
    static constexpr Duration longest_pause = std::chrono::seconds(3);

    explicit QuestionPace(const Secret& secret) : secret_(secret) {}
    QuestionPace(const QuestionPace&) = delete;
    QuestionPace& operator=(const QuestionPace&) = delete;
    virtual ~QuestionPace() = default;

    // When this channel may ask the host, in response to a JOIN of `asker`. `now`: it may, and the question counts as
    // sent. The port of neither address matters.
    [[nodiscard]] virtual Time ask(const wire::Address& host, const wire::Address& asker, const ChannelKey& channel,
                                   Time now);
    // True: the host had not answered before.
    virtual bool handle_answer(const wire::Address& host, Time now);

    [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }

    // Defined in persist_join_tree.h.
    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    struct Host {
        Time next{};              // of the first channel that may ask again
        Time until{};             // when to forget the host
        Time answers_until{};     // until then, all may ask
        std::uint32_t asked = 0;  // since the last answer
    };

    // nullptr: no room.
    Host* entry_of(const wire::Address& host, Time now);
    [[nodiscard]] Duration draw(const wire::Address& asker, const ChannelKey& channel, const Host& host) const;

    Secret secret_;
    std::map<wire::Address, Host> hosts_;  // by address with port 0
    Time look_at_{};                       // when to look for hosts to forget, while the table is full
};

}  // namespace atp::control
