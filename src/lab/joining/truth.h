// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "joining/scenario.h"
#include "wire/address.h"

namespace atp::joining {

[[nodiscard]] wire::Address address_of_switch(unsigned number);
// Of a rank in one incarnation of its job: the same host, another port.
[[nodiscard]] wire::Address address_of_rank(unsigned job, unsigned rank, unsigned incarnation);

// What the ranks of a scenario may read, and must read in time.
class Truth {
  public:
    explicit Truth(const JoinScenario& scenario) : scenario_(scenario) {}

    // Why a rank must not have failed with this error; nullopt: it may.
    [[nodiscard]] std::optional<std::string> objection_to(unsigned job, const Error& error, Time failed_at) const;
    // Operations of the job cannot complete while the fault lasts.
    [[nodiscard]] bool blocks(unsigned job) const;
    // A rank that was ready when a fault for good began must have failed by then.
    [[nodiscard]] Time fails_by() const;
    // Of a fault that ends.
    [[nodiscard]] Time heals_at() const { return heals() ? scenario_.fails_at + scenario_.lasts : never; }
    [[nodiscard]] bool heals() const { return scenario_.lasts != Duration::max(); }
    // No rank may fail.
    [[nodiscard]] bool is_harmless() const;
    [[nodiscard]] Time ends_at() const;

  private:
    [[nodiscard]] bool is_culprit(const Error& error) const;
    [[nodiscard]] bool is_of_rank() const {
        return scenario_.fault >= Fault::rank_killed && scenario_.fault <= Fault::rank_cut_down;
    }

    const JoinScenario& scenario_;
};

}  // namespace atp::joining
