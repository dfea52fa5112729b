// SPDX-License-Identifier: Apache-2.0
#include "endpoint/channel_engine.h"

namespace atp::endpoint {
namespace {

EngineEvent::Kind kind_of(protocol::WorkerEvent::Kind kind) {
    switch (kind) {
        case protocol::WorkerEvent::Kind::completed: return EngineEvent::Kind::completed;
        case protocol::WorkerEvent::Kind::mismatched: return EngineEvent::Kind::mismatched;
        case protocol::WorkerEvent::Kind::timed_out: break;
    }
    return EngineEvent::Kind::timed_out;
}

class AtpEngine final : public ChannelEngine {
  public:
    explicit AtpEngine(const protocol::WorkerConfig& config) : worker_(config) {}

    void begin(std::uint8_t /*stream*/, bool int32_lanes) override {
        if (int32_lanes) worker_.use_int32_lanes();
    }
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
                           .answered_at = event->answered_at,
                           .missing_units = event->missing_units,
                           .missing_members = event->missing_members,
                           .tensors_before = event->kind == protocol::WorkerEvent::Kind::mismatched
                                                 ? event->mismatched_tensor - event->tensor
                                                 : 0};
    }
    [[nodiscard]] bool failed() const override { return worker_.failed(); }
    [[nodiscard]] std::size_t packet_bytes() const override { return worker_.packet_bytes(); }
    [[nodiscard]] protocol::WorkerCounters counters() const override { return worker_.counters(); }
    [[nodiscard]] std::uint32_t window_packets() const override { return worker_.window_packets(); }
    [[nodiscard]] bool has_tokens() const override { return true; }
    [[nodiscard]] std::string_view answerer() const override { return "parameter server"; }

  private:
    protocol::Worker worker_;
};

}  // namespace

std::unique_ptr<ChannelEngine> make_engine(const protocol::WorkerConfig& config) {
    return std::make_unique<AtpEngine>(config);
}

}  // namespace atp::endpoint
