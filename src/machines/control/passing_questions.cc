// SPDX-License-Identifier: Apache-2.0
#include "control/passing_questions.h"

#include <iterator>

namespace atp::control {
namespace {

// For which a JOIN waits for its JOINED.
constexpr Duration time_of_question = std::chrono::seconds(5);

wire::Address host_of(const wire::Address& address) { return address.with_port(0); }

}  // namespace

void PassingQuestions::ask(const PassingMessage& join, std::uint64_t nonce, const ChannelKey& channel,
                           const Proven& proven, Time now) {
    if (host_of(join.from) == host_of(join.to)) return;
    forget_expired(now);
    const Question question{join.from, nonce, channel};
    const OpenQuestion waiting{question, join.to, join.entrance, proven, now + time_of_question};
    if (const auto known = places_.find(question); known != places_.end()) {
        *known->second = waiting;
        waiting_.splice(waiting_.end(), waiting_, known->second);
        return;
    }
    const auto own = of_hosts_.find(host_of(join.from));
    if (own != of_hosts_.end() && own->second >= most_of_a_host) return;
    if (waiting_.size() >= most) remove(waiting_.begin());
    waiting_.push_back(waiting);
    places_[question] = std::prev(waiting_.end());
    ++of_hosts_[host_of(join.from)];
}

std::optional<PassingQuestions::Proven> PassingQuestions::answer(const PassingMessage& joined, std::uint64_t nonce,
                                                                 const ChannelKey& channel, Time now) {
    forget_expired(now);
    const auto found = places_.find({joined.to, nonce, channel});
    if (found == places_.end()) return std::nullopt;
    const Place at = found->second;
    // A switch answers from the port of any of its shards.
    if (host_of(joined.from) != host_of(at->to)) return std::nullopt;
    if (joined.entrance != 0 && joined.entrance == at->entrance) return std::nullopt;
    Proven proven = at->proven;
    remove(at);
    return proven;
}

void PassingQuestions::remove(Place at) {
    const auto own = of_hosts_.find(host_of(at->question.from));
    if (--own->second == 0) of_hosts_.erase(own);
    places_.erase(at->question);
    waiting_.erase(at);
}

void PassingQuestions::forget_expired(Time now) {
    while (!waiting_.empty() && now > waiting_.front().until) remove(waiting_.begin());
}

}  // namespace atp::control
