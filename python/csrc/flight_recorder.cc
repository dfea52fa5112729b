// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder.h"

#if __has_include(<torch/csrc/distributed/c10d/FlightRecorderDetail.hpp>)
#define ATP_HAS_FLIGHT_RECORDER 1
#include <torch/csrc/distributed/c10d/FlightRecorderDetail.hpp>
#else
#define ATP_HAS_FLIGHT_RECORDER 0
#endif

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <tuple>

#include "net/clock.h"

#if ATP_HAS_FLIGHT_RECORDER
template <>
float c10d::getDurationFromEvent<atp::python::FlightEvent>(atp::python::FlightEvent& begin,
                                                           atp::python::FlightEvent& end) {
    return static_cast<float>(end.at - begin.at) / 1e6F;
}
#endif

namespace atp::python {

#if ATP_HAS_FLIGHT_RECORDER

namespace {

using Recorder = c10d::FlightRecorder<FlightEvent>;

std::tuple<std::string, std::string> name_of(const FlightGroup& group) { return {group.name, group.description}; }

}  // namespace

bool has_flight_recorder() { return true; }

FlightRecord::FlightRecord(const FlightGroup& group, std::uint64_t sequence, const char* title,
                           const std::vector<at::Tensor>& tensors, std::chrono::milliseconds timeout)
    : status_(group.status), sequence_(sequence) {
    Recorder* const recorder = Recorder::get();
    if (!recorder->enabled_) return;
    begun_.set(net::now());
    id_ = recorder->record(group.number, name_of(group), sequence, 0, sequence, title, tensors, tensors, &begun_,
                           &ended_, timeout, status_, false);
    const std::scoped_lock lock(recorder->mutex_);
    status_->lastEnqueuedSeq = status_->lastStartedSeq = static_cast<std::int64_t>(sequence);
}

// An operation that failed is retired without an end: it stays "started".
void FlightRecord::end(bool succeeded) {
    if (!id_ || over_.exchange(true)) return;
    if (succeeded) ended_.set(net::now());
    Recorder* const recorder = Recorder::get();
    recorder->retire_id(id_, true);
    if (!succeeded) return;
    const std::scoped_lock lock(recorder->mutex_);
    status_->lastCompletedSeq = std::max(status_->lastCompletedSeq, static_cast<std::int64_t>(sequence_));
}

void note_flight_group(FlightGroup& group) {
    group.status = std::make_shared<c10d::ProcessGroupStatus>();
    Recorder::get()->record_pg_ranks(name_of(group), group.ranks);
}

std::string dump_flight_records(bool stacks, bool only_active) {
    return Recorder::get()->dump(std::nullopt, true, stacks, only_active);
}

void write_flight_records_after_failure(const FlightGroup& group) {
    static std::atomic<bool> written{false};
    if (std::getenv("TORCH_FR_DUMP_TEMP_FILE") == nullptr || !Recorder::get()->enabled_ || written.exchange(true))
        return;
    c10d::DebugInfoWriter::getWriter(static_cast<int>(group.own_rank)).write(dump_flight_records(true, false));
}

#else

bool has_flight_recorder() { return false; }
FlightRecord::FlightRecord(const FlightGroup&, std::uint64_t sequence, const char*, const std::vector<at::Tensor>&,
                           std::chrono::milliseconds)
    : sequence_(sequence) {}
void FlightRecord::end(bool) {}
void note_flight_group(FlightGroup&) {}
std::string dump_flight_records(bool, bool) { return {}; }
void write_flight_records_after_failure(const FlightGroup&) {}

#endif

}  // namespace atp::python
