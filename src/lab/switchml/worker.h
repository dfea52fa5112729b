// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "protocol/archive.h"
#include "protocol/operation_queue.h"
#include "protocol/tensor.h"
#include "switchml/job.h"
#include "switchml/packet.h"
#include "switchml/slot_queue.h"

namespace atp::switchml {

struct WorkerConfig {
    JobConfig job;
    std::uint8_t rank = 0;
    double scale = 1e8;  // integers are x * scale, results float32(sum / scale); plain tensors use no scale
    // Constant (§5.5). If the result of a packet takes longer, the worker resends the packet.
    Duration timeout = std::chrono::milliseconds(1);
    std::uint32_t tensors = 256;  // maximum number queued
};

struct WorkerCounters {
    std::uint64_t refused = 0;  // undecodable, or of a shape that this job does not use
    std::uint64_t forged = 0;   // of another job, or not a result
    std::uint64_t sent = 0;     // first transmissions of fragments
    std::uint64_t resent = 0;   // further transmissions
    std::uint64_t results = 0;  // first result of each fragment
    std::uint64_t stale_results = 0;
    std::uint64_t overflowed = 0;        // results whose values did not fit
    std::uint64_t misfit_fragments = 0;  // packets sent with a value that did not fit an integer
};

// The end of a tensor's operation.
struct WorkerEvent {
    enum class Kind : std::uint8_t {
        completed,
        overflowed,  // a value or a sum did not fit; every worker gets this event, and the sums are invalid
        // The deadline of this operation or of another operation of the job passed. All unfinished operations end.
        timed_out,
    };
    Kind kind = Kind::completed;
    std::uint64_t tensor = 0;  // number that submit() returned
    Duration elapsed{};
    bool answered = false;  // whether the switch ever answered; `answered_at` is the time of its last answer
    Time answered_at{};
};

// One worker of one SwitchML job. At most s packets are in flight, one per slot. A result for a slot triggers the next
// packet of the slot (Algorithms 2 and 4). There is no other flow control and no congestion control.
//
// Ownership: owns s slots and the queue of tensors, allocated at construction. Borrows each Tensor until poll_event()
//   returned its event.
// Calling order: as for ATP's worker (protocol/worker.h). submit() tensors. After each submit(), handle_packet() or
//   handle_timeout(), call poll_transmit() until it returns nothing, then poll_event() until it returns nothing. Then
//   sleep until poll_timeout() or a packet. A fragment that cannot be read yet does not delay other fragments; when
//   more of its tensor is available, call poll_transmit() again.
// Threads: none. One thread drives one job.
// Failure: if the deadline of an operation passes, all unfinished operations end with timed_out, and the worker sends
//   no more. Packets of other jobs are dropped and counted.
class Worker {
  public:
    explicit Worker(const WorkerConfig& config);

    // Sets the number of the job, if the switch assigns it after construction. Call before the first submit().
    void set_job(std::uint8_t job);
    // Queues a tensor of at least one element and returns its number, counted from 0. Returns nothing if the queue is
    // full, the job has failed, or the tensor is plain and float16 cannot represent its integers.
    [[nodiscard]] std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline = never);
    // `congested` is ignored: SwitchML has no congestion control.
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now);
    void handle_timeout(Time now);

    // Writes one packet to the switch and returns its size, or nothing if there is nothing to send. `buffer` must hold
    // at least packet_bytes().
    std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now);
    // Time to call handle_timeout(); `never` while nothing is outstanding.
    [[nodiscard]] Time poll_timeout() const;
    std::optional<WorkerEvent> poll_event();

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] bool idle() const { return operations_.empty(); }
    [[nodiscard]] std::size_t packet_bytes() const { return config_.job.packet_bytes(); }
    [[nodiscard]] const WorkerConfig& config() const { return config_; }
    [[nodiscard]] const WorkerCounters& counters() const { return counters_; }
    // The current fragment of a slot: in flight, or the next to be sent.
    [[nodiscard]] std::uint32_t offset_of(std::uint32_t slot) const { return slots_[slot].offset; }

    template <class Archive>
    void persist(Archive& archive);

  private:
    struct Slot {
        std::uint32_t offset = 0;
        bool sent = false;  // at least once
        Time sent_at{};     // last transmission
    };

    using Entry = protocol::OperationQueue::Entry;

    void handle_result(const switchml::Packet& packet);
    // Returns false if a value does not fit.
    bool store(const Entry& owner, std::uint32_t offset, std::span<const std::byte> lanes);
    bool load(const Entry& owner, std::uint32_t offset, std::span<std::byte> lanes);
    void queue_if_there(std::uint32_t slot);
    [[nodiscard]] std::optional<std::uint32_t> take_next();
    [[nodiscard]] bool ready(std::uint32_t slot);
    void fail(Time now);

    [[nodiscard]] const Entry& owner_of(std::uint32_t offset) const { return operations_[operations_.find(offset)]; }
    [[nodiscard]] std::uint8_t& overflowed(std::uint64_t number) { return overflowed_[number % overflowed_.size()]; }

    WorkerConfig config_;
    std::vector<Slot> slots_;
    protocol::OperationQueue operations_;   // a fragment's offset is its position in the stream
    std::vector<std::uint8_t> overflowed_;  // per operation: not 0 if a value or a sum did not fit
    std::vector<std::byte> integers_;       // of one packet: float16 converted to integers
    std::vector<std::byte> floats_;         // of one result
    SlotQueue to_send_;
    SlotQueue unready_;    // slots to send as soon as the elements of their fragments can be read
    SlotQueue in_flight_;  // oldest transmission first, so the timer of the first slot expires first
    bool failed_ = false;
    Time failed_at_{};
    bool answered_ = false;
    Time answered_at_{};
    WorkerCounters counters_;
};

template <class Archive>
void Worker::persist(Archive& archive) {
    to_send_.persist(archive), unready_.persist(archive), in_flight_.persist(archive);
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
        archive.value(slots_[slot].offset), archive.value(slots_[slot].sent);
        if (in_flight_.contains(slot)) archive.time(slots_[slot].sent_at);
    }
    operations_.persist(archive);
    for (std::uint64_t number = operations_.first(); number != operations_.end(); ++number) {
        archive.value(overflowed(number));
    }
    archive.value(failed_), archive.time(failed_at_);
    archive.value(answered_), archive.time(answered_at_);
}

}  // namespace atp::switchml
