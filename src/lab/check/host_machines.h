// SPDX-License-Identifier: Apache-2.0
// Ranks of one host that sum in shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/system.h"
#include "host/plain_board.h"
#include "protocol/host_group.h"
#include "protocol/variant.h"

namespace atp::check {

namespace ATP_VARIANT {

// One node has all ranks and their memory. A packet in flight is the turn of a rank: its delivery runs one step of that
// rank. A rank that sleeps has no turn until it is woken. Each copy and each sum takes two steps, half of the lanes
// each, so that a reader sees what is half written. A further packet kills a rank, at any time.
//
// In a configuration, `aggregators` is the number of slots, the window that of ranges, and each tensor an operation
// with so many chunks. With other hosts, rank 0 sends the sums, and a packet in flight is their answer, in any order.
//
// Checked: a stored number has each rank's number exactly once; ranks add each range once, and never chunks of
// different operations; in the end each rank has stored all chunks, or ended and named the rank at fault.
class HostMachines final : public System {
  public:
    explicit HostMachines(const Configuration& configuration);

    [[nodiscard]] unsigned nodes() const override { return 1; }
    [[nodiscard]] NodeKind kind(unsigned /*node*/) const override { return NodeKind::worker; }
    [[nodiscard]] std::string name(unsigned /*node*/) const override { return "host"; }

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) override;
    [[nodiscard]] SystemAssessment assess(unsigned /*node*/, const Claims& /*claims*/,
                                          Summaries /*after*/) const override {
        return {};
    }
    // A rank's turn is never lost.
    [[nodiscard]] bool is_command(std::span<const std::byte> /*packet*/) const override { return true; }
    [[nodiscard]] std::string describe(std::span<const std::byte> packet) const override;

  private:
    static constexpr unsigned most_slots = 2;
    static constexpr unsigned most_lanes = 4;  // two for each range

    enum class PacketKind : std::uint8_t { turn, kill, answer };
    enum class Life : std::uint8_t { here, left, ended };

    struct Slot {
        std::array<std::array<std::uint32_t, most_lanes>, max_workers> lanes{};
        std::array<std::uint32_t, most_lanes> sums{};
        std::uint64_t added_chunk = 0;  // ghost: plus 1
        std::uint8_t added = 0;         // ghost: ranges that a rank has begun to add, as bits
    };
    struct Rank {
        std::uint32_t seen = 0;
        bool sleeps = false;
        std::uint8_t sleeps_at = 0;
        bool halfway = false;  // the first half of `action` is done
        protocol::HostAction action{};
        Life life = Life::here;
        bool over = false;         // takes no further step
        std::uint64_t stored = 0;  // ghost: chunks
    };
    class Board;

    template <class Archive>
    void persist(Archive& archive);
    void summarise(Step& step) const;
    void wake(unsigned slot, Step& step);
    void wake_all(Step& step);
    // The last one is that of the rank that speaks for its host.
    [[nodiscard]] unsigned waiting_places() const {
        return configuration_.aggregators + (configuration_.other_hosts ? 1 : 0);
    }
    void send_turn(unsigned rank, Step& step) const;
    void kill(unsigned rank, Step& step);
    void send(const protocol::HostAction& action, Step& step);
    void answer(std::uint64_t chunk, Step& step);
    void take_turn(unsigned rank, Step& step);
    void begin(unsigned rank, const protocol::HostAction& action, Step& step);
    void copy_half(unsigned rank, unsigned half, Step& step);
    void end(unsigned rank, unsigned named, Step& step);
    void leave_if_done(unsigned rank, Step& step);

    [[nodiscard]] unsigned operation_of(std::uint64_t chunk) const;
    [[nodiscard]] std::uint64_t purpose_of(unsigned rank, std::uint64_t chunk) const;
    [[nodiscard]] std::uint64_t chunks_of(unsigned rank) const;
    [[nodiscard]] static std::uint32_t value_of(unsigned rank, std::uint64_t chunk, unsigned lane);
    [[nodiscard]] std::uint32_t sum_of(std::uint64_t chunk, unsigned lane) const;
    [[nodiscard]] bool mismatched(std::uint64_t chunk) const;

    Configuration configuration_;
    unsigned ranks_;
    std::uint32_t ranges_;
    std::vector<protocol::HostGroup> groups_;
    std::vector<Rank> states_;
    std::array<Slot, most_slots> slots_;
    std::vector<host::SlotWords> words_;  // by slot; the last one is where the rank that speaks waits
    std::uint8_t blamed_ = 0;             // rank plus 1
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
