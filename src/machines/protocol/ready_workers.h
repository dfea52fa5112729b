// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/sequence.h"

namespace atp::protocol {

// Up to which fragment each worker takes results, as its READYs say.
//
// Ownership: owns one mark for each worker, allocated at construction.
// Calling order: note() for each READY, and advance() as fragments complete.
// Threads: none. Failure: none.
class ReadyWorkers {
  public:
    ReadyWorkers(std::size_t workers, std::uint32_t first_seq) : until_(workers, first_seq), all_until_(first_seq) {}

    // `worker` takes the results before `until`. Returns the first fragment that it did not take before.
    std::uint32_t note(std::uint16_t worker, std::uint32_t until);
    // All workers take the result of `seq`.
    [[nodiscard]] bool all_take(std::uint32_t seq) const { return before(seq, all_until_); }
    [[nodiscard]] bool takes(std::uint16_t worker, std::uint32_t seq) const { return before(seq, until_[worker]); }
    [[nodiscard]] bool any_takes(std::uint32_t seq) const;
    // The first fragment that some worker does not take yet.
    [[nodiscard]] std::uint32_t all_until() const { return all_until_; }
    // Every fragment before `base` is complete. After 2^31 further fragments an old mark would compare as newer.
    void advance(std::uint32_t base);

    template <class Archive>
    void persist(Archive& archive) {
        for (std::uint32_t& until : until_) archive.value(until);
        archive.value(all_until_);
    }

  private:
    void find_lowest();

    std::vector<std::uint32_t> until_;  // per worker: argument of its highest READY
    std::uint32_t all_until_;           // the lowest of them
};

}  // namespace atp::protocol
