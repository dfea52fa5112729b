// SPDX-License-Identifier: Apache-2.0
#include "comm/channel_engine.h"

namespace atp::comm {
namespace {

void begin(protocol::Worker& /*machine*/, std::uint8_t /*stream*/) {}
void begin(switchml::Worker& machine, std::uint8_t stream) { machine.set_job(stream); }

WorkerEvent::Kind kind_of(protocol::WorkerEvent::Kind kind) {
    switch (kind) {
        case protocol::WorkerEvent::Kind::completed: return WorkerEvent::Kind::completed;
        case protocol::WorkerEvent::Kind::mismatched: return WorkerEvent::Kind::mismatched;
        case protocol::WorkerEvent::Kind::timed_out: break;
    }
    return WorkerEvent::Kind::timed_out;
}
WorkerEvent::Kind kind_of(switchml::WorkerEvent::Kind kind) {
    switch (kind) {
        case switchml::WorkerEvent::Kind::completed: return WorkerEvent::Kind::completed;
        case switchml::WorkerEvent::Kind::overflowed: return WorkerEvent::Kind::overflowed;
        case switchml::WorkerEvent::Kind::timed_out: break;
    }
    return WorkerEvent::Kind::timed_out;
}

WorkerEvent event_of(const protocol::WorkerEvent& event) {
    return {.kind = kind_of(event.kind),
            .elapsed = event.elapsed,
            .heard = event.server_heard,
            .heard_at = event.heard,
            .missing_units = event.missing_units,
            .missing_members = event.missing_members};
}
WorkerEvent event_of(const switchml::WorkerEvent& event) {
    return {
        .kind = kind_of(event.kind), .elapsed = event.elapsed, .heard = event.switch_heard, .heard_at = event.heard};
}

protocol::WorkerCounters counters_of(const protocol::Worker& machine) { return machine.counters(); }
protocol::WorkerCounters counters_of(const switchml::Worker& machine) {
    const switchml::WorkerCounters& counted = machine.counters();
    protocol::WorkerCounters counters;
    counters.refused = counted.refused;
    counters.forged = counted.forged;
    counters.sent = counted.sent;
    counters.resent = counted.resent;
    counters.acks = counted.results;
    counters.stale_acks = counted.stale_results;
    return counters;
}

std::uint32_t window_of(const protocol::Worker& machine) { return machine.window_packets(); }
std::uint32_t window_of(const switchml::Worker& machine) { return machine.config().job.slots(); }

template <class Machine>
class WorkerOf final : public ChannelWorker {
  public:
    template <class Config>
    explicit WorkerOf(const Config& config) : machine_(config) {}

    void begin(std::uint8_t stream) override { comm::begin(machine_, stream); }
    std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline) override {
        return machine_.submit(tensor, now, deadline);
    }
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now) override {
        machine_.handle_packet(bytes, congested, now);
    }
    void handle_timeout(Time now) override { machine_.handle_timeout(now); }
    std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now) override {
        return machine_.poll_transmit(buffer, now);
    }
    [[nodiscard]] Time poll_timeout() const override { return machine_.poll_timeout(); }
    std::optional<WorkerEvent> poll_event() override {
        const auto event = machine_.poll_event();
        if (!event) return std::nullopt;
        return event_of(*event);
    }
    [[nodiscard]] bool failed() const override { return machine_.failed(); }
    [[nodiscard]] std::size_t packet_bytes() const override { return machine_.packet_bytes(); }
    [[nodiscard]] protocol::WorkerCounters counters() const override { return counters_of(machine_); }
    [[nodiscard]] std::uint32_t window_packets() const override { return window_of(machine_); }

  private:
    Machine machine_;
};

}  // namespace

std::unique_ptr<ChannelWorker> make_channel_worker(const WorkerPlan& plan) {
    if (wire::is_switchml(plan.protocol)) return std::make_unique<WorkerOf<switchml::Worker>>(plan.switchml);
    return std::make_unique<WorkerOf<protocol::Worker>>(plan.atp);
}

}  // namespace atp::comm
