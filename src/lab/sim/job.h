// SPDX-License-Identifier: Apache-2.0
// Base class of the jobs of every system: ranks that compute, and buckets of gradients to be summed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "random/random.h"
#include "sim/program.h"
#include "sim/report.h"
#include "wire/job_text.h"
#include "workload/training.h"

namespace atp::sim {

// A derived class sums the buckets: submit() passes buckets to it, and it calls summed() for each sum.
//
// Ownership: owns the state of its ranks. Borrows the objects in Shared, including its site.
class Job : public Program {
  public:
    Job(const Shared& shared, ProgramId id, const HostCost& cost, unsigned index);

    void wake(std::uint32_t event, Time now) final;
    [[nodiscard]] NodeId node_of(std::uint32_t event) const final;

    virtual void crash_worker(unsigned /*rank*/, Duration /*lasts*/, Time /*now*/) {}
    virtual void crash_server(Duration /*lasts*/, Time /*now*/) {}
    virtual void leave_worker(unsigned /*rank*/, Time /*now*/) {}
    // Reports ranks that were ready before this outage and still wait.
    virtual void check_failed(const Outage& /*outage*/) {}

    [[nodiscard]] std::uint32_t number() const { return shared_.scenario.first_job + index_; }
    // Its number, as traces show it.
    [[nodiscard]] std::string name() const { return wire::job_to_string(number()); }
    [[nodiscard]] bool finished() const { return report_.finished.has_value(); }
    [[nodiscard]] bool given_up() const { return report_.given_up; }
    [[nodiscard]] virtual JobReport report() const;
    [[nodiscard]] virtual double share_done() const;  // estimated share of the work, 0 to 1, for progress reports
    [[nodiscard]] virtual std::uint64_t delivered_bytes() const;  // bytes of sums, mean over the workers
    [[nodiscard]] virtual std::string whereabouts() const = 0;    // state of an unfinished job, for errors
    // Number of packets whose values were added in the network, and at the server. 0: the system does not add there.
    [[nodiscard]] virtual std::uint64_t added_in_network() const { return 0; }
    [[nodiscard]] virtual std::uint64_t added_at_server() const { return 0; }
    // Reports violated invariants at the end of the run.
    virtual void check(const JobReport& /*report*/) {}

  protected:
    [[nodiscard]] const Site& site() const { return shared_.fabric.sites[index_]; }
    [[nodiscard]] unsigned ranks() const { return report_.workers; }
    // Represents a rank's values of one part of a bucket. sum_of_words() represents their sum over all ranks.
    [[nodiscard]] std::uint64_t word_of(unsigned iteration, std::uint32_t bucket, std::uint32_t part,
                                        unsigned rank) const;
    [[nodiscard]] std::uint64_t sum_of_words(unsigned iteration, std::uint32_t bucket, std::uint32_t part) const;

    // Starts a rank shortly after `now`. Workers of a job begin at similar but different times.
    void begin(unsigned rank, unsigned iterations_done, Time now);
    virtual void submit(unsigned rank, workload::Training::Buckets buckets, Time now) = 0;
    void summed(unsigned rank, std::uint32_t bucket, Time now);

    // Events of the derived class, counted from 0.
    void wake_system_at(Time time, std::uint32_t event) { wake_at(time, ranks() + event); }
    virtual void on_system_event(std::uint32_t event, Time now) = 0;
    [[nodiscard]] virtual NodeId node_of_system_event(std::uint32_t event) const = 0;

    void fail(const std::string& text);

    unsigned index_;
    Random random_;
    workload::Workload workload_;
    workload::Training training_;
    JobReport report_;

  private:
    void resume(unsigned rank, Time now);

    std::uint64_t summed_elements_ = 0;
};

// Creates job number `index` with the system of the scenario.
[[nodiscard]] std::unique_ptr<Job> make_job(const Shared& shared, ProgramId id, unsigned index);

}  // namespace atp::sim
