// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "protocol/host_group.h"

namespace atp::host {

// Of one slot. In the memory of a real host, each is an atomic.
struct SlotWords {
    std::uint64_t arrived = 0;
    std::uint64_t open = 0;      // chunk plus 1
    std::uint64_t offered = 0;   // chunk plus 1
    std::uint64_t complete = 0;  // chunk plus 1
    std::uint64_t left = 0;
    std::uint32_t next = 0;
    std::uint32_t finished = 0;
    std::uint32_t state = 0;                // changes when ranks that wait for the slot are woken
    std::vector<std::uint64_t> purposes{};  // by rank
};

// The words of simulated ranks, which take turns.
//
// Ownership: borrows the slots. Threads: none. Failure: none; no rank is lost, unless a derived class says so.
class PlainBoard : public protocol::HostBoard {
  public:
    explicit PlainBoard(std::span<SlotWords> slots) : slots_(slots) {}

    std::uint64_t arrive(unsigned slot) override { return ++slots_[slot].arrived; }
    void open(unsigned slot, std::uint64_t chunk) override {
        slots_[slot].open = chunk + 1;
        slots_[slot].next = slots_[slot].finished = 0;
    }
    [[nodiscard]] std::optional<std::uint32_t> unclaimed(unsigned slot, std::uint64_t chunk) const override {
        return slots_[slot].open == chunk + 1 ? std::optional(slots_[slot].next) : std::nullopt;
    }
    [[nodiscard]] bool claim(unsigned slot, std::uint64_t chunk, std::uint32_t range) override {
        if (unclaimed(slot, chunk) != range) return false;
        ++slots_[slot].next;
        return true;
    }
    std::uint32_t finish(unsigned slot) override { return ++slots_[slot].finished; }
    void offer(unsigned slot, std::uint64_t chunk) override { slots_[slot].offered = chunk + 1; }
    [[nodiscard]] bool is_offered(unsigned slot, std::uint64_t chunk) const override {
        return slots_[slot].offered == chunk + 1;
    }
    void complete(unsigned slot, std::uint64_t chunk) override { slots_[slot].complete = chunk + 1; }
    [[nodiscard]] bool is_complete(unsigned slot, std::uint64_t chunk) const override {
        return slots_[slot].complete == chunk + 1;
    }
    std::uint64_t leave(unsigned slot) override { return ++slots_[slot].left; }
    [[nodiscard]] std::uint64_t left(unsigned slot) const override { return slots_[slot].left; }
    [[nodiscard]] std::optional<unsigned> rank_without(unsigned slot, std::uint64_t purpose) const override {
        const std::vector<std::uint64_t>& purposes = slots_[slot].purposes;
        const auto other = std::ranges::find_if(purposes, [&](std::uint64_t own) { return own != purpose; });
        if (other == purposes.end()) return std::nullopt;
        return static_cast<unsigned>(other - purposes.begin());
    }
    [[nodiscard]] std::optional<unsigned> lost(std::uint64_t /*chunk*/) const override { return std::nullopt; }

  private:
    std::span<SlotWords> slots_;
};

}  // namespace atp::host
