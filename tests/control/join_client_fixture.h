// SPDX-License-Identifier: Apache-2.0
// A JoinClient without sockets: a member with a clock, and messages for it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "control/join_client.h"
#include "support/control_messages.h"
#include "support/packets.h"

namespace atp::control {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = MemberEvent::Kind;
using Cause = MemberCause::Kind;

inline constexpr Time start_time{seconds(100)};
inline const wire::Join own_join = testing::join_of_worker();

inline wire::Address address(const char* text) { return *wire::Address::parse(text); }
inline const wire::Address switch_address = address("10.0.0.1:4790");
inline const wire::Address shard_address = address("10.0.0.1:50123");  // another port of the same switch
inline const wire::Address stranger = address("10.0.0.99:4790");

inline constexpr std::uint64_t nonce = 0x2122232425262728;  // as that of own_join
inline constexpr std::uint64_t group_number = 0x67726F7570;

inline JoinClientConfig config_of_member(bool has_group = false) {
    return {.terms = own_join.terms,
            .unit = own_join.units[0],
            .level = 0,
            .switch_address = switch_address,
            .has_group = has_group,
            .nonce = nonce};
}

inline wire::Joined joined_message(bool ready, std::uint32_t units = 0, std::uint32_t members = 0) {
    return {.nonce = nonce,
            .job = own_join.terms.job,
            .token = own_join.terms.token,
            .channel = own_join.terms.channel,
            .group_number = group_number,
            .ready = ready,
            .missing_units = units,
            .missing_members = members};
}

inline wire::Refused refused_message(wire::Refusal reason, std::string text = "no room") {
    return {.nonce = nonce,
            .job = own_join.terms.job,
            .token = own_join.terms.token,
            .channel = own_join.terms.channel,
            .reason = reason,
            .text = std::move(text)};
}

// Any host of the network may read this message.
inline wire::Joined joined_by_group() {
    wire::Joined message = joined_message(true);
    message.nonce = 0;
    message.token = group_number;
    return message;
}

inline std::vector<std::byte> own_gradient() {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.job = own_join.terms.job;
    header.token = own_join.terms.token;
    header.channel = own_join.terms.channel;
    return testing::make_packet(header, testing::Lanes(62, 1));
}

inline wire::SendError port_error(const std::vector<std::byte>& quoted, const wire::Address& to = switch_address) {
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = to, .by_network = true};
    error.quoted_bytes = std::min(quoted.size(), error.quoted.size());
    std::copy_n(quoted.begin(), error.quoted_bytes, error.quoted.begin());
    return error;
}

inline wire::SendError too_long_error(std::uint32_t bytes, std::uint32_t mtu) {
    return {.kind = wire::SendError::Kind::too_long, .to = switch_address, .bytes = bytes, .mtu = mtu};
}

// A member with a clock. Lists keep its JOINs and events.
class Member {
  public:
    explicit Member(const JoinClientConfig& config = config_of_member()) : client(config) {}

    template <class Message>
    bool receive(const Message& message, const wire::Address& from = switch_address, bool by_group = false) {
        const bool mine = client.handle_message(testing::encoded(message), from, by_group, now);
        drain();
        return mine;
    }
    // Answers the last JOIN.
    bool joined(bool ready, std::uint32_t units = 0, std::uint32_t members = 0,
                const wire::Address& from = switch_address) {
        return receive(answer(joined_message(ready, units, members)), from);
    }
    [[nodiscard]] wire::Joined answer(wire::Joined message) {
        message.epoch = epoch;
        message.number = ++number;
        return message;
    }
    // The tree is not ready, and the switch names this edge.
    bool joined_with(const wire::Edge& edge) {
        wire::Joined message = joined_message(false, 0x1, 0x2);
        message.edges = {edge};
        return receive(answer(message));
    }
    void data(const wire::Address& from = switch_address, bool proven = true) {
        client.handle_data(from, Receipt::other, proven, now);
    }
    void error(const wire::SendError& error) {
        client.handle_send_error(error, now);
        drain();
    }
    // Joins a ready tree.
    void become_ready() {
        pass(milliseconds(0));
        joined(true);
        forget();
    }
    // Advances time and calls the member at each of its timeouts. `answer` is called after each JOIN.
    void pass(Duration duration, const std::function<void()>& answer = {}) {
        const Time end = now + duration;
        for (int call = 0; call < 10'000 && client.poll_timeout() <= end; ++call) {
            now = std::max(now, client.poll_timeout());
            client.handle_timeout(now);
            const std::size_t before = joins.size();
            drain();
            if (answer && joins.size() != before) answer();
        }
        now = end;
    }
    void drain() {
        while (const auto transmit = client.poll_transmit()) {
            to.push_back(transmit->to);
            if (const auto* join = std::get_if<wire::Join>(&transmit->message)) {
                joins.push_back(*join);
                joined_at.push_back(now);
                lengths.push_back(transmit->padded_bytes);
                epoch = join->epoch;
            } else {
                leaves.push_back(std::get<wire::Leave>(transmit->message));
            }
        }
        while (auto event = client.poll_event()) events.push_back(*std::move(event));
    }
    void forget() { joins.clear(), joined_at.clear(), lengths.clear(), to.clear(), events.clear(); }
    [[nodiscard]] bool ended() const { return !events.empty() && events.back().kind == Kind::ended; }
    [[nodiscard]] const MemberCause& cause() const { return events.back().cause; }

    JoinClient client;
    Time now = start_time;
    std::vector<wire::Join> joins;
    std::vector<Time> joined_at;
    std::vector<std::uint32_t> lengths;  // of the JOINs, as far as they are more than the least
    std::vector<wire::Address> to;
    std::vector<wire::Leave> leaves;
    std::vector<MemberEvent> events;
    std::uint32_t epoch = 0;   // of the last JOIN
    std::uint32_t number = 0;  // of the last JOINED
};

}  // namespace atp::control
