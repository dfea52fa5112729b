// SPDX-License-Identifier: Apache-2.0
#include "host/rank_host.h"

#include <limits>
#include <utility>
#include <vector>

#include "policy/blind_resends.h"

namespace atp::host {
inline namespace ATP_VARIANT {
namespace {

constexpr unsigned all = std::numeric_limits<unsigned>::max();

// Passes packets on, except PROBEs, which become NACKs to their sender.
class ProbeFilter final : public wire::Outbox {
  public:
    explicit ProbeFilter(wire::Outbox& out) : out_(out) {}

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return room_ = out_.reserve(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        const std::span<std::byte> packet = room_.first(bytes);
        if (policy::turn_probe_into_nack(packet)) {
            nacks.emplace_back(packet.begin(), packet.end());
        } else {
            out_.commit(bytes, to, ecn);
        }
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        return out_.borrow(bytes, to, ecn);
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override { return out_.repeat(to); }

    std::vector<std::vector<std::byte>> nacks;

  private:
    wire::Outbox& out_;
    std::span<std::byte> room_;
};

}  // namespace

bool RankHost::submit(protocol::Tensor& borrowed, Time now, Time deadline) {
    if (!machine_.submit(borrowed, now, deadline)) return false;
    submitted_.push_back({&borrowed, nullptr});
    return true;
}

bool RankHost::submit(std::unique_ptr<protocol::Tensor> owned, Time now, Time deadline) {
    if (!submit(*owned, now, deadline)) return false;
    submitted_.back().owned = std::move(owned);
    return true;
}

void RankHost::transmit(wire::Outbox& out, Time now) {
    machine_.transmit_control(out);
    if (blind_resends_) return transmit_blindly(out, now);
    static_cast<void>(machine_.transmit(out, all, now));
}

void RankHost::transmit_blindly(wire::Outbox& out, Time now) {
    while (true) {
        ProbeFilter filter(out);
        static_cast<void>(machine_.transmit(filter, all, now));
        if (filter.nacks.empty()) return;
        for (std::vector<std::byte>& nack : filter.nacks) {
            machine_.handle_datagram(
                {.bytes = nack, .capacity = nack.size(), .from = &machine_.config().switch_address}, now);
        }
    }
}

std::optional<endpoint::ChannelEvent> RankHost::poll_event(Time now) {
    kept_.reset();
    auto event = machine_.poll_event(now);
    if (event && event->kind == endpoint::ChannelEvent::Kind::completed) {
        completed_ = submitted_.front().tensor;
        kept_ = std::move(submitted_.front().owned);
        submitted_.pop_front();
    }
    return event;
}

}  // namespace ATP_VARIANT
}  // namespace atp::host
