// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/configuration.h"
#include "check/system.h"
#include "control/join_client.h"
#include "control/join_tree.h"
#include "protocol/variant.h"

namespace atp::check {

namespace ATP_VARIANT {

// The nodes of a configuration of joining: first the ranks, then the switches, the last of which is the root. Packets
// in flight have a kind, the node that sent them, and the message.
//
// Checked: no rank is ready before all have started; an error of a rank names a node that failed; a process that left
// does not come back; no node removes another; in the end every rank is ready or has failed, and no switch keeps a job
// without ranks.
class JoiningMachines final : public System {
  public:
    explicit JoiningMachines(const Configuration& configuration);

    [[nodiscard]] unsigned nodes() const override { return static_cast<unsigned>(nodes_.size()); }
    [[nodiscard]] NodeKind kind(unsigned node) const override { return nodes_[node].kind; }
    [[nodiscard]] std::string name(unsigned node) const override;

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) override;
    [[nodiscard]] SystemAssessment assess(unsigned node, const Claims& claims, Summaries after) const override;
    [[nodiscard]] bool settled(Summaries now) const override;
    [[nodiscard]] bool is_command(std::span<const std::byte> packet) const override;
    [[nodiscard]] std::string describe(std::span<const std::byte> packet) const override;

  private:
    enum class Phase : std::uint8_t { waits, runs, left, crashed };
    struct Node {
        NodeKind kind = NodeKind::worker;
        std::uint8_t parent = 0;  // of the root: itself
        std::uint8_t unit = 0;    // of a rank or leaf
        std::uint8_t member = 0;  // of a rank
        bool direct = false;      // of a rank
    };
    // Of a node, beside the state of its machine. The last three are ghosts.
    struct Life {
        Phase phase = Phase::waits;
        std::uint8_t boots = 0;
        bool failed = false;
        std::array<std::uint32_t, 8> left_epochs{};  // switch: of the LEAVE that removed this node
    };
    struct Flight;

    [[nodiscard]] control::JoinClientConfig config_of_rank(unsigned node, bool earlier) const;
    [[nodiscard]] control::JoinTreeConfig config_of_switch(unsigned node, unsigned boots) const;
    [[nodiscard]] unsigned root_of(const Node& rank) const;
    [[nodiscard]] unsigned node_at(const wire::Endpoint& endpoint) const;
    [[nodiscard]] std::optional<unsigned> rank_at(unsigned unit, unsigned member) const;
    [[nodiscard]] std::uint16_t members_of(std::uint32_t units, std::uint32_t members) const;
    [[nodiscard]] std::uint16_t blamed_by(unsigned node, const control::MemberCause& cause) const;

    void step_rank(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                   control::JoinClient& client, Step& step) const;
    void drain(unsigned node, Life& life, control::JoinClient& client, Step& step) const;
    void step_switch(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                     control::JoinTree& tree, Step& step) const;
    void handle_message(unsigned node, const Flight& flight, Life& life, control::JoinTree& tree, Step& step) const;
    void refuse(unsigned node, const std::optional<Flight>& flight, Step& step) const;
    void save(unsigned node, Life& life, control::JoinClient* client, control::JoinTree* tree, Time now,
              Step& step) const;

    Configuration configuration_;
    unsigned ranks_;
    std::uint32_t all_units_ = 0;
    std::vector<std::uint32_t> unit_members_;  // by unit
    std::vector<Node> nodes_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
