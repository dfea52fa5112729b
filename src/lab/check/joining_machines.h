// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "check/configuration.h"
#include "check/model_tensor.h"
#include "check/processes.h"
#include "check/system.h"
#include "control/join_client.h"
#include "control/join_tree.h"
#include "protocol/variant.h"

namespace atp::check {

namespace ATP_VARIANT {

// The nodes of a configuration of joining: ranks, and switches, the last of which is the root. A rank whose tree is
// ready submits a tensor. No sum completes: all gradients are lost, so the saved state of a process is that of its
// membership alone.
//
// Checked: no rank is ready before all have started; an error of a rank names a node that failed; a process that left
// does not come back; no node removes another; a parent that has not answered gets no more JOINs than the switch below
// it got; in the end every rank is ready or has failed, and no switch keeps a job
// without ranks.
class JoiningMachines final : public Processes {
  public:
    explicit JoiningMachines(const Configuration& configuration);

    void start(unsigned node, Step& step) override;
    void earlier_packets(std::vector<Sent>& sent) override;
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step) override;
    [[nodiscard]] SystemAssessment assess(unsigned node, const Claims& claims, Summaries after) const override;
    [[nodiscard]] bool settled(Summaries now) const override;

  private:
    enum class Phase : std::uint8_t { waits, runs, left, crashed };
    // Of a node, beside the state of its process. The last ones, from `ready`, are ghosts.
    struct Life {
        Phase phase = Phase::waits;
        std::uint8_t boots = 0;
        bool ready = false;  // a rank: its tree was
        bool failed = false;
        std::array<std::uint32_t, 8> left_epochs{};  // switch: of the LEAVE that removed this node
        // Switch: JOINs that arrived since it asked a parent that has not answered; parent_answered: not counted any
        // more.
        std::uint32_t unasked = 0;
    };

    [[nodiscard]] bool is_rank(unsigned node) const { return kind(node) == NodeKind::worker; }
    [[nodiscard]] host::RankHost rank_process(unsigned node) const;
    // `starts`: as it starts. Otherwise with the state of its last use.
    [[nodiscard]] host::SwitchHost& switch_process(unsigned node, unsigned boots, bool starts = false);
    [[nodiscard]] std::optional<unsigned> rank_at(unsigned unit, unsigned member) const;
    [[nodiscard]] std::uint16_t members_of(std::uint32_t units, std::uint32_t members) const;
    [[nodiscard]] std::uint16_t blamed_by(unsigned node, const control::MemberCause& cause) const;

    void step_rank(unsigned node, Input input, const std::optional<Flight>& flight, Life& life, host::RankHost& rank,
                   Step& step);
    void drain(unsigned node, Life& life, host::RankHost& rank, Time now, Step& step);
    void step_switch(unsigned node, Input input, const std::optional<Flight>& flight, Life& life,
                     host::SwitchHost& process, Step& step);
    void hand_over(unsigned node, const Flight& flight, Life& life, host::SwitchHost& process, Step& step);
    void note_questions(unsigned node, Life& life, Step& step);
    void refuse(unsigned node, const std::optional<Flight>& flight, Step& step) const;
    void take_sent(unsigned node, Step& step);
    void save(Life& life, host::RankHost* rank, host::SwitchHost* process, Time now, Step& step) const;

    ModelTensor tensor_;
    std::map<std::pair<unsigned, unsigned>, std::unique_ptr<host::SwitchHost>> switches_;  // by node and boots
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
