// SPDX-License-Identifier: Apache-2.0
#include "control/question_pace.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "control/branch.h"
#include "wire/bytes.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;

constexpr Duration between_looks = milliseconds(100);
// Of the wait that is drawn: below first_pause in all.
constexpr std::uint64_t steps_of_asker = 5;
constexpr Duration step_of_asker = milliseconds(10);
constexpr std::uint64_t steps_of_channel = 10;
constexpr Duration step_of_channel = milliseconds(1);

Duration pause_after(std::uint32_t asked) {
    constexpr std::uint32_t most_doublings = 6;  // 50 ms * 2^6 > 3 s
    return std::min<Duration>(QuestionPace::first_pause * (1U << std::min(asked - 1, most_doublings)),
                              QuestionPace::longest_pause);
}

}  // namespace

QuestionPace::Host* QuestionPace::entry_of(const wire::Address& host, Time now) {
    const auto found = hosts_.find(host);
    if (found != hosts_.end()) {
        if (found->second.until <= now) found->second = {};
        return &found->second;
    }
    if (hosts_.size() >= most_hosts) {
        if (now < look_at_) return nullptr;
        look_at_ = now + between_looks;
        std::erase_if(hosts_, [now](const auto& entry) { return entry.second.until <= now; });
        if (hosts_.size() >= most_hosts) return nullptr;
    }
    return &hosts_[host];
}

Duration QuestionPace::draw(const wire::Address& asker, const ChannelKey& channel, const Host& host) const {
    const wire::Endpoint endpoint = endpoint_of(asker.with_port(0));
    std::array<std::byte, 4 + 1 + sizeof endpoint.host + 14> message{};
    wire::store_u32(message.data(), host.asked);
    wire::store_u8(message.data() + 4, endpoint.family);
    std::memcpy(message.data() + 5, endpoint.host.data(), sizeof endpoint.host);
    std::byte* const key = message.data() + 5 + sizeof endpoint.host;
    const std::uint64_t of_asker = siphash(secret_, std::span(message).first(5 + sizeof endpoint.host));
    wire::store_u32(key, channel.job);
    wire::store_u64(key + 4, channel.token);
    wire::store_u16(key + 12, channel.channel);
    const std::uint64_t of_channel = siphash(secret_, message);
    return step_of_asker * (of_asker % steps_of_asker) + step_of_channel * (of_channel % steps_of_channel);
}

Time QuestionPace::ask(const wire::Address& host, const wire::Address& asker, const ChannelKey& channel, Time now) {
    Host* const entry = entry_of(host.with_port(0), now);
    if (entry == nullptr) return now + longest_pause;
    if (now < entry->answers_until) return now;
    if (entry->asked != 0) {
        const Time turn = entry->next + draw(asker, channel, *entry);
        if (now < turn) return turn;
    }
    ++entry->asked;
    entry->next = now + pause_after(entry->asked);
    entry->until = now + memory;
    return now;
}

bool QuestionPace::handle_answer(const wire::Address& host, Time now) {
    Host* const entry = entry_of(host.with_port(0), now);
    if (entry == nullptr) return false;
    const bool is_new = entry->answers_until <= now;
    *entry = {.until = now + memory, .answers_until = now + memory};
    return is_new;
}

}  // namespace atp::control
