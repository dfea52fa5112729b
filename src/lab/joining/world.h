// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "joining/network.h"
#include "joining/rank.h"
#include "joining/scenario.h"
#include "joining/switch.h"
#include "joining/truth.h"
#include "random/random.h"

namespace atp::joining {

struct JoinReport {
    JoinScenario scenario;
    std::vector<std::string> failures;  // empty: everything holds
    std::uint64_t packets = 0;
    std::uint64_t operations = 0;
    std::uint64_t incarnations = 0;  // that became ready
    std::uint64_t errors = 0;        // of ranks, all justified if there is no failure
};

// Jobs that form, sum, fail and form again in a network with one fault. Ranks and switches are the machines of the
// product, with their real messages.
//
// What must hold: sums are right; `ready` comes only after all ranks have started; an error names what is at fault, and
// without a fault there is none; ranks whose job cannot go on fail in time; and after the fault all jobs are ready and
// sum again.
//
// Threads: none. Failure: none; run() reports what does not hold.
class World {
  public:
    // `log`: gets a line for each event; nullptr: none.
    explicit World(const JoinScenario& scenario, std::FILE* log = nullptr);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] JoinReport run();

  private:
    enum class Status : std::uint8_t { runs, killed, lost, paused };
    struct Process {
        Status status = Status::runs;
        std::vector<Flight> backlog{};  // what arrived during a pause
    };
    struct RankSlot {
        Process process;
        Time starts_at = never;
        std::unique_ptr<Rank> rank;
        Rank::State seen = Rank::State::joining;
        Time due = never;  // timeout of the rank
    };
    struct Job {
        std::vector<RankSlot> ranks;
        unsigned incarnation = 0;
        bool over = false;  // a rank left in order
    };
    struct SwitchSlot {
        Process process;
        std::unique_ptr<Switch> machine;
        Time due = never;  // timeout of the machine
    };
    // Who has a host.
    struct Place {
        bool is_switch = false;
        unsigned job = 0;
        unsigned number = 0;  // of the switch, or the rank
    };

    [[nodiscard]] Time next_event() const;
    void step();
    void begin_fault();
    void end_fault();
    void end_process(Process& process);
    void resume();
    void start_rank(unsigned job, unsigned rank);
    void start_switch(unsigned number);
    void deliver(Flight flight);
    void deliver_to_switch(unsigned number, Flight flight);
    void deliver_to_rank(unsigned job, unsigned rank, Flight flight);
    void run_timers();
    void note(unsigned job, unsigned rank);
    void note_ready(unsigned job, unsigned rank);
    void note_failure(unsigned job, unsigned rank);
    void form_again();
    void check_end();
    void check_progress(unsigned job);
    void check_failed_in_time(unsigned job);
    void fail(const std::string& what);
    void log_line(const std::string& line) const;
    [[nodiscard]] Process& victim();
    [[nodiscard]] endpoint::ChannelMachineConfig config_of(unsigned job, unsigned rank);

    JoinScenario scenario_;
    Truth truth_;
    std::FILE* log_;
    Random random_;
    Network network_;
    std::shared_ptr<const protocol::Membership> membership_;
    std::vector<Job> jobs_;
    std::vector<SwitchSlot> switches_;
    std::map<wire::Address, Place> places_;  // by host
    std::uint64_t boots_ = 0;
    Time now_{};
    Time fault_next_ = never;  // its begin, then its end
    bool faulty_ = false;
    JoinReport report_;
};

[[nodiscard]] JoinReport run_joining(const JoinScenario& scenario, std::FILE* log = nullptr);

}  // namespace atp::joining
