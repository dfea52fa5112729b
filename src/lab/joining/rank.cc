// SPDX-License-Identifier: Apache-2.0
#include "joining/rank.h"

#include <algorithm>

#include "endpoint/channel_text.h"
#include "host/packet_list.h"
#include "wire/bytes.h"

namespace atp::joining {
namespace {

// Between the end of an operation and the next one.
constexpr Duration time_to_compute = std::chrono::milliseconds(60);

}  // namespace

std::uint32_t JoinTensor::element(unsigned rank, std::uint64_t at) const {
    return static_cast<std::uint32_t>((rank + 1) * 100'000 + number_ * elements_of_operation + at);
}

bool JoinTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    for (std::size_t i = 0; i < lanes.size() / ATP_LANE_BYTES; ++i) {
        wire::store_u32(lanes.data() + i * ATP_LANE_BYTES, element(rank_, first + i));
    }
    return true;
}

void JoinTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    for (std::size_t i = 0; i < lanes.size() / ATP_LANE_BYTES; ++i) {
        std::uint32_t sum = 0;
        for (unsigned rank = 0; rank < ranks_; ++rank) sum += element(rank, first + i);
        right_ += wire::load_u32(lanes.data() + i * ATP_LANE_BYTES) == sum ? 1U : 0U;
    }
}

Rank::Rank(const endpoint::ChannelMachineConfig& config, const wire::Address& address) : host_(config, address) {}

void Rank::handle_packet(Flight& flight, Time now) {
    host_.handle_datagram({.bytes = flight.bytes, .capacity = flight.bytes.size(), .from = &flight.from}, now);
    drain(now);
}

void Rank::handle_report(const Flight& report, Time now) {
    host_.handle_send_error(send_error_of(report), now);
    drain(now);
}

void Rank::handle_timeout(Time now) {
    host_.handle_timeout(now);
    drain(now);
}

Time Rank::poll_timeout() const {
    const bool ended = state_ == State::failed || state_ == State::left;
    return ended ? host_.poll_timeout() : std::min(host_.poll_timeout(), submits_at_);
}

void Rank::transmit(Network& network, Time now) {
    host::PacketList out;
    host_.transmit(out, now);
    for (auto& packet : out.take()) network.send(std::move(packet.bytes), address(), packet.to, now);
}

void Rank::submit(Time now) {
    submits_at_ = never;
    sums_ = host_.submit(
        std::make_unique<JoinTensor>(operations_, config().worker.rank, config().membership->workers()), now);
}

void Rank::drain(Time now) {
    using Kind = endpoint::ChannelEvent::Kind;
    while (const auto event = host_.poll_event(now)) {
        if (event->kind == Kind::ready) {
            state_ = State::ready;
            ready_at_ = submits_at_ = now;
        } else if (event->kind == Kind::completed) {
            summed_wrongly_ = summed_wrongly_ || !static_cast<const JoinTensor&>(host_.completed()).is_right();
            sums_ = false;
            ++operations_;
            completed_at_ = now;
            submits_at_ = now + time_to_compute;
        } else if (event->kind == Kind::failed) {
            state_ = State::failed;
            ended_at_ = now;
            error_ = endpoint::error_of(event->cause, config());
        }
    }
    if (state_ != State::ready) return;
    if (finishes_ && !sums_) {
        host_.end();
        state_ = State::left;
        ended_at_ = now;
    } else if (submits_at_ <= now) {
        submit(now);
    }
}

}  // namespace atp::joining
