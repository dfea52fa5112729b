// SPDX-License-Identifier: Apache-2.0
// One channel of a rank without sockets: an outbox that is a list, answers of a server, and a clock.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "control/gatekeeper.h"
#include "endpoint/channel_machine.h"
#include "endpoint/channel_text.h"
#include "support/control_messages.h"
#include "support/packets.h"

namespace atp::endpoint {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Kind = ChannelEvent::Kind;

inline constexpr Time start_time{seconds(100)};
inline wire::Address address(const char* text) { return *wire::Address::parse(text); }
inline const wire::Address switch_address = address("10.0.0.1:4790");
inline const wire::Address shard_address = address("10.0.0.1:50123");  // another port of the same switch
inline const wire::Address stranger = address("10.0.0.99:4790");
inline constexpr std::uint64_t group_number = 0x67726F7570;

struct Packet {
    std::vector<std::byte> bytes;
    wire::Address to;
    wire::Ecn ecn = wire::Ecn::not_capable;
};

// Takes `room` packets until flush().
class List final : public wire::Outbox {
  public:
    std::span<std::byte> reserve(std::size_t max_bytes) override {
        if (taken == room) return {};
        buffer_.assign(max_bytes, std::byte{0});
        return buffer_;
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        ASSERT_LE(bytes, buffer_.size());
        ++taken;
        packets.push_back({{buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(bytes)}, to, ecn});
    }
    bool borrow(std::span<const std::byte>, const wire::Address&, wire::Ecn) override { return false; }
    bool repeat(const wire::Address&) override { return false; }
    void flush() { taken = 0; }

    std::size_t room = 1000;
    std::size_t taken = 0;
    std::deque<Packet> packets;

  private:
    std::vector<std::byte> buffer_;
};

// Rank 1 of two racks: ranks 0 to 2, and rank 3 alone.
inline std::shared_ptr<const protocol::Membership> two_racks() {
    auto membership = protocol::Membership::make({{.ranks = {0, 1, 2}}, {.ranks = {3}, .direct = true}});
    return std::make_shared<const protocol::Membership>(*std::move(membership));
}

// The only rank.
inline std::shared_ptr<const protocol::Membership> one_rank() {
    return std::make_shared<const protocol::Membership>(*protocol::Membership::star(1));
}

inline ChannelMachineConfig config_of(const std::shared_ptr<const protocol::Membership>& membership,
                                      std::uint16_t rank) {
    const protocol::Place place = membership->place(rank);
    ChannelMachineConfig config;
    config.terms = {.job = 0x01020304,
                    .token = 0x5EEDFACE,
                    .channel = 3,
                    .lanes = 16,
                    .window_log2 = 3,
                    .audit = false,
                    .aggregators = 64,
                    .first_seq = 0,
                    .mask1 = membership->all_units(),
                    .scale = 1e6,
                    .server = {},
                    .group = {}};
    config.unit = {.unit = place.unit, .members = 1U << place.member, .mask0 = place.mask0, .ranks = {rank}};
    config.worker.channel = channel_config(config.terms);
    config.worker.rank = rank;
    config.worker.place = place;
    config.switch_address = switch_address;
    config.nonce = 0x4E4F4E4345;
    config.membership = membership;
    return config;
}

inline ChannelMachineConfig hosting() {
    ChannelMachineConfig config = config_of(one_rank(), 0);
    config.hosts_server = true;
    return config;
}

class Floats final : public protocol::Tensor {
  public:
    explicit Floats(std::size_t size) : values(size) { std::iota(values.begin(), values.end(), 1.0F); }
    [[nodiscard]] std::uint64_t size() const override { return values.size(); }
    [[nodiscard]] bool plain() const override { return true; }
    [[nodiscard]] std::uint16_t purpose() const override { return operation; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override {
        for (std::size_t i = 0; i < lanes.size() / ATP_LANE_BYTES; ++i) {
            wire::store_u32(lanes.data() + i * ATP_LANE_BYTES, static_cast<std::uint32_t>(values[first + i]));
        }
        return true;
    }
    void load_floats(std::uint64_t, std::span<std::byte>) const override {}
    void store(std::uint64_t first, std::span<const std::byte> lanes) override {
        for (std::size_t i = 0; i < lanes.size() / ATP_LANE_BYTES; ++i) {
            stored.emplace_back(first + i, wire::load_u32(lanes.data() + i * ATP_LANE_BYTES));
        }
    }
    std::uint16_t operation = 0;
    std::vector<float> values;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> stored;
};

// The ACK that completes the fragment of this gradient.
inline std::vector<std::byte> ack_of(std::vector<std::byte> gradient) {
    atp_header header = testing::header_in(gradient);
    header.type = ATP_TYPE_ACK;
    header.worker = ATP_WORKER_ALL;
    wire::encode_header(header, gradient);
    return gradient;
}

// The server has found that workers called different operations at the position of this fragment.
inline std::vector<std::byte> mismatch_at(const std::vector<std::byte>& gradient) {
    std::vector<std::byte> wait(gradient.begin(), gradient.begin() + ATP_HEADER_BYTES);
    atp_header header = testing::header_in(gradient);
    header.type = ATP_TYPE_WAIT;
    header.lanes = ATP_DTYPE_NONE;
    header.worker = ATP_WORKER_ALL;
    header.argument = ATP_WAIT_MISMATCHED;
    wire::encode_header(header, wait);
    return wait;
}

// With the only unit of the job.
inline wire::Join join_of_last_switch(const ChannelMachineConfig& config) {
    return {.terms = config.terms, .level = ATP_LEVELS, .units = {config.unit}};
}

inline wire::Joined joined(const ChannelMachineConfig& config, bool ready, std::uint32_t units = 0,
                           std::uint32_t members = 0) {
    return {.nonce = config.nonce,
            .job = config.terms.job,
            .token = config.terms.token,
            .channel = config.terms.channel,
            .group_number = group_number,
            .ready = ready,
            .missing_units = units,
            .missing_members = members};
}

inline wire::Joined joined_by_group(const ChannelMachineConfig& config) {
    wire::Joined message = joined(config, true);
    message.nonce = 0;
    message.token = group_number;
    return message;
}

// A machine with a clock.
class Channel {
  public:
    explicit Channel(const ChannelMachineConfig& of) : config(of), machine(of) {}

    void receive(std::vector<std::byte> bytes, const wire::Address& from = switch_address, bool by_group = false) {
        const wire::Datagram datagram{.bytes = bytes, .capacity = bytes.size(), .from = &from};
        if (by_group) {
            machine.handle_group_datagram(datagram, now);
        } else {
            machine.handle_datagram(datagram, now);
        }
        drain();
    }
    template <class Message>
    void control(const Message& message, const wire::Address& from = switch_address, bool by_group = false) {
        receive(testing::encoded(message), from, by_group);
    }
    // Answers the last JOIN.
    void control(wire::Joined message, const wire::Address& from = switch_address) {
        message.epoch = epoch_;
        message.number = ++number_;
        receive(testing::encoded(message), from);
    }
    // To the server here, with the cookie of its address.
    void control(wire::Join join, const wire::Address& from = switch_address) {
        join.cookie = control::Gatekeeper(config.secret).cookie_of(control::Gatekeeper::Question::join, from, now);
        receive(testing::encoded(join, wire::least_question_bytes), from);
    }
    // The new process counts its JOINEDs from 1.
    void restart_switch() { number_ = 0; }
    void become_ready(const wire::Address& from = switch_address) {
        pass(milliseconds(0));
        control(joined(config, true), from);
        events.clear();
        out.packets.clear();
    }
    void pass(Duration duration, const std::function<void()>& at_each = {}) {
        const Time end = now + duration;
        for (int call = 0; call < 100'000 && machine.poll_timeout() <= end; ++call) {
            now = std::max(now, machine.poll_timeout());
            machine.handle_timeout(now);
            drain();
            if (at_each) at_each();
        }
        now = end;
    }
    void drain() {
        while (auto event = machine.poll_event(now)) events.push_back(*std::move(event));
        machine.transmit_control(out);
        while (machine.transmit(out, 256, now).no_room) out.flush();
        out.flush();
        for (const Packet& packet : out.packets) {
            if (const auto join = wire::decode<wire::Join>(packet.bytes)) epoch_ = std::max(epoch_, join->epoch);
        }
    }
    [[nodiscard]] std::vector<Kind> kinds() const {
        std::vector<Kind> list;
        for (const ChannelEvent& event : events) list.push_back(event.kind);
        return list;
    }
    [[nodiscard]] Error error() const {
        EXPECT_FALSE(events.empty());
        if (events.empty() || events.back().kind != Kind::failed) return {.text = "no failure"};
        return error_of(events.back().cause, config);
    }
    // Those of the worker, in the order in which it sent them.
    [[nodiscard]] std::vector<Packet> gradients() const {
        std::vector<Packet> found;
        std::ranges::copy_if(out.packets, std::back_inserter(found), [](const Packet& packet) {
            return !wire::control_type(packet.bytes) && testing::header_in(packet.bytes).type == ATP_TYPE_GRADIENT;
        });
        return found;
    }
    [[nodiscard]] std::size_t count(wire::ControlType type) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            out.packets, [type](const Packet& packet) { return wire::control_type(packet.bytes) == type; }));
    }

    ChannelMachineConfig config;
    ChannelMachine machine;
    Time now = start_time;
    List out;
    std::vector<ChannelEvent> events;

  private:
    std::uint32_t epoch_ = 0;   // of the last JOIN
    std::uint32_t number_ = 0;  // of the last JOINED
};

inline std::vector<std::byte> result_for(const ChannelMachineConfig& config, std::uint16_t receiver,
                                         bool by_group = false) {
    atp_header ack{};
    ack.version = ATP_VERSION;
    ack.type = ATP_TYPE_ACK;
    ack.job = config.terms.job;
    ack.token = by_group ? group_number : config.terms.token;
    ack.channel = config.terms.channel;
    ack.worker = receiver;
    return testing::make_packet(ack);
}

// A channel whose switch does not answer any more, while a tensor is in flight.
inline Error error_after(const ChannelMachineConfig& config, const std::function<void(Channel&)>& fault) {
    Channel channel(config);
    channel.become_ready();
    Floats tensor(16);
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.drain();
    fault(channel);
    EXPECT_THAT(channel.count(wire::ControlType::leave), ::testing::AllOf(::testing::Ge(1U), ::testing::Le(3U)));
    return channel.error();
}

}  // namespace atp::endpoint
