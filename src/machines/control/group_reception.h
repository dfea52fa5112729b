// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "control/timing.h"

namespace atp::control {

// How a result came to a worker.
enum class Receipt : std::uint8_t {
    once,       // once for all: by the group, or as a copy of a switch in the path
    to_each,    // for all workers, but the switch sent one to each
    asked_for,  // to this worker alone, which had requested it
    other,      // another packet, or a result without lanes
};

// Decides whether this worker receives what its switch sends once for all: by the multicast group of its channel, or
// copied by a switch in the path. The next JOIN reports the decision.
//
// Calling order: handle_*() for each packet, then assess() once for each JOIN. Threads: none.
// Failure: while the worker suspects loss, it reports false, and the switch sends unicast copies instead.
class GroupReception {
  public:
    // How long one JOINED to the group counts as reception. The switch sends one at least every second.
    static constexpr Duration memory = timing.group_memory;
    // If the worker had to request more than 16 results since the last JOIN, and at most as many arrived by the group,
    // it treats the group as not received: the group was lost, or the path forwards only a part of its packets. This
    // lasts 1 s, and after each repetition twice as long, up to 32 s. It lasts 1 s again after an interval in which
    // more results arrived by the group than by request. While the switch sends one result to each, nothing is known
    // about the group.
    static constexpr std::uint64_t most_results_asked_for = 16;
    static constexpr Duration first_pause = timing.first_group_pause;
    static constexpr Duration longest_pause = timing.longest_group_pause;
    // The switch sends JOINED to the group after a JOIN. A bridge that does not know this member yet drops it. After
    // each of the first 20 JOINs without reception, the worker therefore sends the next one early.
    static constexpr unsigned most_hurried = 20;
    // After every tenth JOIN in a row without reception, the worker leaves the group and joins it again. A bridge that
    // starts to snoop does not know a member whose IGMPv2 report was suppressed by the report of another member.
    static constexpr unsigned joins_between_reports = 10;

    // A JOINED arrived by the group. True: the last JOIN reported no reception, so the worker should send a JOIN at
    // once.
    [[nodiscard]] bool handle_message(Time now);
    void handle_result(Receipt receipt);
    // The report for the next JOIN. `let_in`: the switch has admitted this worker.
    [[nodiscard]] bool assess(Time now, bool let_in);
    // After assess() with `let_in`: send the JOIN after this one early.
    [[nodiscard]] bool hurries() const { return !reported_ && unanswered_joins_ <= most_hurried; }
    // After assess() with `let_in`: leave the group and join it again, so that bridges learn this member.
    [[nodiscard]] bool reports_again() const {
        return unanswered_joins_ != 0 && unanswered_joins_ % joins_between_reports == 0;
    }

    template <class Archive>
    void persist(Archive& archive) {
        archive.time(received_until_), archive.time(distrusts_until_), archive.value(group_results_);
        archive.value(own_results_), archive.value(to_each_), archive.value(pause_), archive.value(unanswered_joins_),
            archive.value(reported_);
    }

  private:
    [[nodiscard]] bool receives(Time now) const { return now < received_until_ && now >= distrusts_until_; }

    Time received_until_{};            // `memory` after the last JOINED by the group
    Time distrusts_until_{};           // until then, the group is treated as not received
    std::uint64_t group_results_ = 0;  // by the group, since the last JOIN
    std::uint64_t own_results_ = 0;    // requested and received by unicast, since the last JOIN
    bool to_each_ = false;             // the switch sent a result to each, since the last JOIN
    Duration pause_ = first_pause;     // length of the next period without the group
    unsigned unanswered_joins_ = 0;    // JOINs in a row that reported false, since the worker was admitted
    bool reported_ = false;            // report of the last JOIN
};

}  // namespace atp::control
