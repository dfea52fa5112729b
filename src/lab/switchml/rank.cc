// SPDX-License-Identifier: Apache-2.0
#include "switchml/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "switchml/packet.h"
#include "switchml/stream_pool.h"
#include "switchml/worker.h"

namespace atp::switchml {
namespace {

using endpoint::EngineEvent;

EngineEvent::Kind kind_of(WorkerEvent::Kind kind) {
    switch (kind) {
        case WorkerEvent::Kind::completed: return EngineEvent::Kind::completed;
        case WorkerEvent::Kind::overflowed: return EngineEvent::Kind::overflowed;
        case WorkerEvent::Kind::timed_out: break;
    }
    return EngineEvent::Kind::timed_out;
}

class Engine final : public endpoint::ChannelEngine {
  public:
    explicit Engine(const WorkerConfig& config) : worker_(config) {}

    void begin(std::uint8_t stream, bool /*int32_lanes*/) override { worker_.set_job(stream); }
    std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline) override {
        return worker_.submit(tensor, now, deadline);
    }
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now) override {
        worker_.handle_packet(bytes, congested, now);
    }
    void handle_timeout(Time now) override { worker_.handle_timeout(now); }
    std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now) override {
        return worker_.poll_transmit(buffer, now);
    }
    [[nodiscard]] Time poll_timeout() const override { return worker_.poll_timeout(); }
    std::optional<EngineEvent> poll_event() override {
        const auto event = worker_.poll_event();
        if (!event) return std::nullopt;
        return EngineEvent{.kind = kind_of(event->kind),
                           .elapsed = event->elapsed,
                           .answered = event->answered,
                           .answered_at = event->answered_at};
    }
    [[nodiscard]] bool failed() const override { return worker_.failed(); }
    [[nodiscard]] std::size_t packet_bytes() const override { return worker_.packet_bytes(); }
    [[nodiscard]] protocol::WorkerCounters counters() const override {
        const WorkerCounters& counted = worker_.counters();
        protocol::WorkerCounters counters;
        counters.refused = counted.refused;
        counters.forged = counted.forged;
        counters.sent = counted.sent;
        counters.resent = counted.resent;
        counters.acks = counted.results;
        counters.stale_acks = counted.stale_results;
        return counters;
    }
    [[nodiscard]] std::uint32_t window_packets() const override { return worker_.config().job.slots(); }
    [[nodiscard]] bool has_tokens() const override { return false; }
    [[nodiscard]] std::string_view answerer() const override { return "switch"; }

  private:
    Worker worker_;
};

}  // namespace

Rank::Rank(Mode mode, Duration resend_after) : mode_(mode), resend_after_(resend_after) {}

wire::ChannelProtocol Rank::number() const {
    switch (mode_) {
        case Mode::faithful: return wire::ChannelProtocol::switchml_faithful;
        case Mode::lossless: return wire::ChannelProtocol::switchml_lossless;
        default: return wire::ChannelProtocol::switchml;
    }
}

std::optional<std::string> Rank::objection_to(const endpoint::JobDemands& demands) const {
    if (demands.world > ATP_BITMAP_BITS) {
        return fmt::format("a world of {} ranks; SwitchML uses one switch, with at most {}", demands.world,
                           ATP_BITMAP_BITS);
    }
    if (demands.audit) return "audit is set; SwitchML has no audit lane: unset it";
    if (demands.adaptive_scale || demands.narrow_lanes) {
        return "an adaptive scale or int16 lanes; SwitchML has one scale, and int32 lanes";
    }
    if (demands.placed_servers) return "a place for parameter servers; SwitchML has none";
    if (demands.names_racks) return "a rack; SwitchML uses one switch, which workers address";
    if (demands.multicast) return "results by multicast; SwitchML sends one copy to each worker";
    if (resend_after_ <= Duration::zero()) return "a timeout of 0 for resends; it must be above 0";
    return std::nullopt;
}

std::uint32_t Rank::lanes_of_payload(std::uint32_t payload_bytes) const {
    const std::uint32_t lanes = (payload_bytes - std::uint32_t{header_bytes}) / std::uint32_t{int32_lane_bytes};
    return std::min<std::uint32_t>(lanes, ATP_MAX_LANES);
}

std::uint32_t Rank::room_in(const wire::PathSwitch& at) const { return at.slots; }

std::unique_ptr<endpoint::ChannelEngine> Rank::make_engine(const wire::ChannelTerms& terms,
                                                           const protocol::Place& place) const {
    WorkerConfig config;
    config.job = stream_config(terms, static_cast<unsigned>(std::popcount(place.mask0)));
    config.rank = place.member;
    config.scale = terms.scale;
    config.timeout = resend_after_;
    return std::make_unique<Engine>(config);
}

}  // namespace atp::switchml
