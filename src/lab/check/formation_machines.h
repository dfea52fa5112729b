// SPDX-License-Identifier: Apache-2.0
// Ranks that form a job through a store.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/system.h"
#include "control/giving_up.h"
#include "protocol/variant.h"

namespace atp::check {

namespace ATP_VARIANT {

// One node has all ranks and their store. A packet in flight is the turn of a rank: it begins, reads one value of its
// round, or ends because its time is over. Turns come in any order, so ranks begin late and read in any order. A
// further packet kills a rank, at any time; only then times end. Each rank leaves two values: FACTS and NETWORK.
//
// Checked: a rank forms only if all ranks agree and left both values; all ranks have one plan, with the job of rank 0;
// a rank fails only if one differs or is missing, and its error names that one.
class FormationMachines final : public System {
  public:
    explicit FormationMachines(const Configuration& configuration);

    [[nodiscard]] unsigned nodes() const override { return 1; }
    [[nodiscard]] NodeKind kind(unsigned /*node*/) const override { return NodeKind::worker; }
    [[nodiscard]] std::string name(unsigned /*node*/) const override { return "ranks"; }

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) override;
    [[nodiscard]] SystemAssessment assess(unsigned /*node*/, const Claims& /*claims*/,
                                          Summaries /*after*/) const override {
        return {};
    }
    [[nodiscard]] bool is_command(std::span<const std::byte> /*packet*/) const override { return true; }
    [[nodiscard]] std::string describe(std::span<const std::byte> packet) const override;

  private:
    static constexpr unsigned rounds = 2;
    static constexpr unsigned most_keys = max_workers + 1;  // a rank that expects one more waits for its key
    enum class Turn : std::uint8_t { begin, read, end, kill };
    enum class Phase : std::uint8_t { waits, facts, network, formed, failed, killed };

    // What the store has under the key of a rank: nothing, its value, or the notice of rank `by`.
    struct Key {
        enum class State : std::uint8_t { absent, value, notice } state = State::absent;
        std::uint8_t by = 0;
    };
    struct Taken {
        std::uint8_t rank = 0;
        Key key;
    };
    struct Rank {
        Phase phase = Phase::waits;
        std::vector<Taken> taken{};  // of its round, in the order of reading
        std::string notice{};        // that it left
    };

    template <class Archive>
    void persist(Archive& archive);
    void send(Turn turn, unsigned rank, unsigned round, unsigned from, Step& step) const;
    void set(unsigned round, unsigned rank, Key key, Step& step);
    void enter(unsigned rank, Phase phase, Step& step);
    void begin(unsigned rank, Step& step);
    void read(unsigned rank, unsigned round, unsigned from, Step& step);
    void end_time(unsigned rank, Step& step);
    void plan(unsigned rank, const std::vector<wire::NetworkFacts>& facts, Step& step);
    void fail(unsigned rank, const Error& error, Step& step);

    [[nodiscard]] unsigned world_of(unsigned rank) const;
    [[nodiscard]] control::FactRound round_of(unsigned rank) const;
    [[nodiscard]] std::string value_of(unsigned round, unsigned rank, const Key& key) const;
    [[nodiscard]] std::vector<std::uint32_t> all_ranks(unsigned rank) const;

    Configuration configuration_;
    unsigned ranks_;
    std::vector<Rank> states_;
    std::array<std::array<Key, most_keys>, rounds> store_{};
    std::string plan_;  // ghost: of the first rank that formed
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
