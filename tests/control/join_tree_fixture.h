// SPDX-License-Identifier: Apache-2.0
// A JoinTree without sockets: the test supplies JOINs and reads answers and events as lists.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/join_tree.h"

namespace atp::control {
using ::testing::HasSubstr;
using wire::Refusal;
using Kind = TreeEvent::Kind;

inline constexpr std::uint32_t job = 7;
inline constexpr std::uint32_t token = 0x5eed;
inline constexpr std::uint16_t channel = 3;
inline constexpr ChannelKey key{job, token, channel};

inline wire::Address host(unsigned number) {
    return *wire::Address::parse("10.0.0." + std::to_string(number) + ":4791");
}
inline wire::Address worker(unsigned rank) { return host(100 + rank); }

inline wire::ChannelTerms terms_of(std::uint32_t mask1) {
    wire::ChannelTerms terms;
    terms.job = job, terms.token = token, terms.channel = channel;
    terms.lanes = 62, terms.window_log2 = 4, terms.aggregators = 1024, terms.mask1 = mask1, terms.scale = 1e8;
    return terms;
}

inline std::vector<std::uint16_t> ranks_from(std::uint16_t first, unsigned count) {
    std::vector<std::uint16_t> ranks;
    for (unsigned i = 0; i < count; ++i) ranks.push_back(static_cast<std::uint16_t>(first + i));
    return ranks;
}

// JOIN of member `member` of a unit of `members` workers. Member 0 of the unit has rank `first`.
inline wire::Join join_of_member(std::uint8_t unit, unsigned members, unsigned member, std::uint16_t first = 0,
                                 std::uint32_t mask1 = 1) {
    wire::Join join;
    join.terms = terms_of(mask1);
    join.units = {{.unit = unit,
                   .members = 1U << member,
                   .mask0 = (1U << members) - 1,
                   .direct = false,
                   .ranks = {static_cast<std::uint16_t>(first + member)}}};
    return join;
}

inline wire::Join join_of_unit(std::uint8_t unit, std::uint16_t first, unsigned members, std::uint32_t mask1,
                               bool direct = false) {
    const std::uint32_t mask0 = (1U << members) - 1;
    wire::Join join;
    join.terms = terms_of(mask1);
    join.level = 1;
    join.units = {
        {.unit = unit, .members = mask0, .mask0 = mask0, .direct = direct, .ranks = ranks_from(first, members)}};
    return join;
}

template <class Change>
wire::Join but(wire::Join join, Change change) {
    change(join);
    return join;
}
inline wire::Join begun(wire::Join join) {
    join.begun = true;
    return join;
}

// A tree, the messages that it sent, and a clock.
class Tree {
  public:
    explicit Tree(const JoinTreeConfig& config = {}) : tree(config) {}

    // A JOIN without an epoch is newer than all before.
    void join(wire::Join join, const wire::Address& from) {
        if (join.epoch == 0) join.epoch = ++epoch_;
        tree.handle_join(join, from, now);
        drain();
    }
    void leave(std::uint8_t unit, std::uint8_t member, const wire::Address& from, std::uint32_t with_token = token) {
        tree.handle_leave(
            {.job = job, .token = with_token, .channel = channel, .epoch = ++epoch_, .unit = unit, .member = member},
            from, now);
        drain();
    }
    void joined(bool ready, const wire::Address& from, std::uint32_t with_token = token, std::uint32_t missing = 0) {
        const Branch* const branch = tree.find(key);
        tree.handle_joined({.nonce = up_nonce(),
                            .job = job,
                            .token = with_token,
                            .channel = channel,
                            .epoch = branch == nullptr ? 0 : branch->up_epoch,
                            .number = ++number_,
                            .ready = ready,
                            .missing_units = missing},
                           from, now);
        drain();
    }
    void refused(Refusal reason, const wire::Address& from, std::uint32_t with_token = token) {
        tree.handle_refused(
            {.nonce = up_nonce(), .job = job, .token = with_token, .channel = channel, .reason = reason, .text = "no"},
            from, now);
        drain();
    }
    void retry(std::uint64_t cookie, const wire::Address& from) {
        tree.handle_retry({.nonce = up_nonce(), .job = job, .token = token, .channel = channel, .cookie = cookie}, from,
                          now);
        drain();
    }
    // Of the JOINs upwards; 0: the channel is not known.
    std::uint64_t up_nonce() {
        const Branch* const branch = tree.find(key);
        return branch == nullptr ? 0 : branch->up_nonce;
    }
    // Advances time and runs every sweep that becomes due.
    void pass(Duration duration) {
        const Time end = now + duration;
        for (int sweep = 0; sweep < 10'000 && tree.poll_timeout() <= end; ++sweep) {
            now = std::max(now, tree.poll_timeout());
            tree.handle_timeout(now);
            drain();
        }
        now = end;
    }
    void drain() {
        while (const auto event = tree.poll_event()) {
            events.push_back(*event);
            if (event->kind != Kind::opened) continue;
            if (opens) tree.opened(key_of(*event));
            if (lacks_memory) tree.could_not_open(key_of(*event), "there is no memory for it");
        }
        while (auto transmit = tree.poll_transmit()) {
            const auto* const join = std::get_if<wire::Join>(&transmit->message);
            if (parents_answer && join != nullptr && join->cookie == 0) {
                tree.handle_retry({.nonce = join->nonce,
                                   .job = join->terms.job,
                                   .token = join->terms.token,
                                   .channel = join->terms.channel,
                                   .cookie = 0xC00C1E},
                                  transmit->to, now);
            } else {
                sent.push_back(*std::move(transmit));
            }
        }
    }
    void forget() {
        sent.clear();
        events.clear();
    }

    template <class Message>
    [[nodiscard]] std::vector<Message> sent_to(const wire::Address& to) const {
        std::vector<Message> list;
        for (const auto& transmit : sent) {
            const auto* message = std::get_if<Message>(&transmit.message);
            if (message != nullptr && transmit.to == to) list.push_back(*message);
        }
        return list;
    }
    [[nodiscard]] bool told_ready(const wire::Address& to) const {
        const auto answers = sent_to<wire::Joined>(to);
        return !answers.empty() && answers.back().ready;
    }
    [[nodiscard]] std::size_t count(Kind kind) const {
        std::size_t number = 0;
        for (const TreeEvent& event : events) number += event.kind == kind ? 1 : 0;
        return number;
    }
    void expect_refused(const wire::Address& to, Refusal reason, const std::string& text) {
        const auto answers = sent_to<wire::Refused>(to);
        ASSERT_EQ(answers.size(), 1U);
        EXPECT_EQ(wire::to_string(answers[0].reason), wire::to_string(reason));
        EXPECT_THAT(answers[0].text, HasSubstr(text));
        EXPECT_GT(answers[0].text.size(), 20U) << "the text is long enough to explain the refusal to an operator";
        EXPECT_LE(answers[0].text.size(), wire::max_refusal_bytes);
        EXPECT_EQ(tree.counters().refused, 1U);
    }

    JoinTree tree;
    bool opens = true;           // a server opens at once when the tree asks
    bool lacks_memory = false;   // a server cannot open, for lack of memory
    bool parents_answer = true;  // a question without a cookie gets a RETRY at once, and is not in `sent`
    Time now{std::chrono::seconds(100)};
    std::vector<JoinTree::Transmit> sent;
    std::vector<TreeEvent> events;

  private:
    std::uint32_t epoch_ = 0;   // of the last JOIN or LEAVE
    std::uint32_t number_ = 0;  // of the last JOINED
};

inline JoinTreeConfig below(const wire::Address& parent) {
    JoinTreeConfig config;
    config.parent = parent;
    return config;
}

}  // namespace atp::control
