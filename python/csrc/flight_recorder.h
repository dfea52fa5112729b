// SPDX-License-Identifier: Apache-2.0
// PyTorch's Flight Recorder, as far as the installed torch has its headers. libtorch does not export its own recorder,
// so this extension has one of the same class and format. Without the headers nothing is recorded.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace c10d {
struct ProcessGroupStatus;
}

namespace atp::python {

// Begin or end of an operation.
struct FlightEvent {
    std::atomic<Duration::rep> at{0};  // 0: not yet

    void set(Time now) { at = now.time_since_epoch().count(); }
    [[nodiscard]] bool query() const { return at != 0; }
};

// The group of an operation.
struct FlightGroup {
    std::size_t number = 0;  // of this process, from 0
    std::string name;
    std::string description;
    std::vector<std::uint64_t> ranks;                    // in the whole program, by rank in the group
    std::uint64_t own_rank = 0;                          // of this process in the whole program
    std::shared_ptr<c10d::ProcessGroupStatus> status{};  // note_flight_group() sets it
};

// Records one operation, and at its end whether it succeeded.
//
// Ownership: owns its events, to which the recorder points until end().
// Calling order: construct it when the operation has begun; end() once.
// Threads: any. Failure: none.
class FlightRecord {
  public:
    FlightRecord(const FlightGroup& group, std::uint64_t sequence, const char* title,
                 const std::vector<at::Tensor>& tensors, std::chrono::milliseconds timeout);
    // Only a lock that cannot be taken would throw, and that ends the process by design.
    // NOLINTNEXTLINE(bugprone-exception-escape)
    ~FlightRecord() { end(false); }
    FlightRecord(const FlightRecord&) = delete;
    FlightRecord& operator=(const FlightRecord&) = delete;

    void end(bool succeeded);

  private:
    std::shared_ptr<c10d::ProcessGroupStatus> status_;
    std::uint64_t sequence_;
    FlightEvent begun_;
    FlightEvent ended_;
    std::optional<std::size_t> id_;  // nullopt: the recorder is off
    std::atomic<bool> over_{false};
};

// False: the installed torch lacks the headers.
[[nodiscard]] bool has_flight_recorder();
// Before the first record of the group.
void note_flight_group(FlightGroup& group);
// In PyTorch's format: pickled, with the stacks of the callers if `stacks`.
[[nodiscard]] std::string dump_flight_records(bool stacks, bool only_active);
// The first call writes all records to the file that PyTorch's variable TORCH_FR_DUMP_TEMP_FILE names, with the rank at
// its end. Without that variable it does nothing.
void write_flight_records_after_failure(const FlightGroup& group);

}  // namespace atp::python
