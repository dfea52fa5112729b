// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "protocol/archive.h"
#include "protocol/sequence.h"
#include "protocol/tensor.h"
#include "switchml/job.h"
#include "switchml/packet.h"
#include "switchml/slot_queue.h"

namespace atp::switchml {

struct WorkerConfig {
    JobConfig job;
    std::uint8_t rank = 0;
    double scale = 1e8;  // integers are x * scale; results are float32(sum / scale), unless the tensor is plain
    Duration timeout = std::chrono::milliseconds(1);  // fixed (§5.5); a packet is sent again when its result is so late
    std::uint32_t tensors = 256;                      // queued at once
};

struct WorkerCounters {
    std::uint64_t refused = 0;  // undecodable, or of a shape that this job never has
    std::uint64_t forged = 0;   // another job's, or no result
    std::uint64_t sent = 0;     // fragments, first sendings
    std::uint64_t resent = 0;   // all further sendings
    std::uint64_t results = 0;  // first result of each fragment
    std::uint64_t stale_results = 0;
    std::uint64_t overflowed = 0;        // results of numbers that did not fit
    std::uint64_t misfit_fragments = 0;  // sent although a number of theirs did not fit an integer
};

// A tensor is done, or will never be.
struct WorkerEvent {
    enum class Kind : std::uint8_t {
        completed,
        overflowed,  // a number or a sum of it did not fit; every worker is told the same, and the sums are no sums
        timed_out,   // its deadline passed, or another's: one ends every operation of the job that is not done
    };
    Kind kind = Kind::completed;
    std::uint64_t tensor = 0;  // as submit() numbered it
    Duration elapsed{};
    bool switch_heard = false;  // and when last
    Time heard{};
};

// One worker's end of one job of SwitchML: s packets in flight at most, one a slot, and whatever comes back for a slot
// calls for the slot's next packet (Algorithms 2 and 4). There is no other flow control, and no congestion control.
//
// The calling order and the deadlines are those of ATP's worker (protocol/worker.h): submit() tensors; after each call
// of submit(), handle_packet() or handle_timeout(), call poll_transmit() until it returns nothing, then poll_event()
// until it returns nothing, then sleep until poll_timeout() or a packet. A fragment that cannot be read yet waits, and
// nobody else's waits for it: poll_transmit() again when there is more of its tensor.
// Owns: s slots and the queue of tensors, claimed at construction. Borrows each Tensor until its event was polled.
// Threads: none; one thread drives one job. Failure: when the deadline of an operation passes, it and all behind it end
// with timed_out and the worker sends no more. Packets that do not belong here are dropped and counted.
class Worker {
  public:
    explicit Worker(const WorkerConfig& config);

    // The switch knows the job by this number. For those who are told it late; before the first tensor.
    void set_job(std::uint8_t job);
    // Queues a tensor of at least one element. Its number, counting from 0; nothing when the queue is full, the job has
    // failed, or the tensor is plain and float16 cannot say its integers.
    [[nodiscard]] std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline = never);
    // A mark of congestion tells this protocol nothing.
    void handle_packet(std::span<std::byte> bytes, bool congested, Time now);
    void handle_timeout(Time now);

    // Writes one packet to the switch and returns its size; nothing when there is nothing to send now. `buffer` holds
    // at least packet_bytes().
    std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now);
    // When to call handle_timeout(); `never` while nothing is outstanding.
    [[nodiscard]] Time poll_timeout() const;
    std::optional<WorkerEvent> poll_event();

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] bool idle() const { return tensors_done_ == tensors_queued_; }
    [[nodiscard]] std::size_t packet_bytes() const { return config_.job.packet_bytes(); }
    [[nodiscard]] const WorkerConfig& config() const { return config_; }
    [[nodiscard]] const WorkerCounters& counters() const { return counters_; }
    // The fragment that a slot is at: in flight, or yet to come.
    [[nodiscard]] std::uint32_t offset_of(std::uint32_t slot) const { return slots_[slot].offset; }

    template <class Archive>
    void persist(Archive& archive);

  private:
    struct Slot {
        std::uint32_t offset = 0;
        bool sent = false;  // at least once
        Time sent_at{};     // the last time
    };

    struct Entry {
        protocol::Tensor* tensor = nullptr;
        std::uint32_t first_offset = 0;
        std::uint32_t fragments = 0;
        std::uint32_t missing = 0;
        bool overflowed = false;
        Time submitted_at{};
        Time deadline = never;
    };

    // What one fragment is made of.
    struct Part {
        std::uint64_t first = 0;  // element of its tensor
        std::size_t elements = 0;
    };

    void handle_result(const switchml::Packet& packet);
    void store(Entry& owner, std::uint32_t offset, std::span<const std::byte> lanes);
    bool load(const Entry& owner, std::uint32_t offset, std::span<std::byte> lanes);
    void queue_if_there(std::uint32_t slot);
    [[nodiscard]] std::optional<std::uint32_t> take_next();
    [[nodiscard]] bool ready(std::uint32_t slot);
    void fail(Time now);

    [[nodiscard]] Part part_of(const Entry& owner, std::uint32_t offset) const;
    [[nodiscard]] Entry& owner_of(std::uint32_t offset);
    [[nodiscard]] std::uint32_t first_outstanding() const;
    [[nodiscard]] Time earliest_deadline() const;
    [[nodiscard]] Entry& entry(std::uint64_t number) { return entries_[number % entries_.size()]; }
    [[nodiscard]] const Entry& entry(std::uint64_t number) const { return entries_[number % entries_.size()]; }

    WorkerConfig config_;
    std::vector<Slot> slots_;
    std::vector<Entry> entries_;
    std::vector<std::byte> integers_;  // of one packet: float16 as integers
    std::vector<std::byte> floats_;    // of one result
    SlotQueue to_send_;
    SlotQueue unready_;                 // likewise, when their elements can be read
    SlotQueue in_flight_;               // the oldest sending first, so that the first one's timer is the first to fire
    std::uint64_t tensors_queued_ = 0;  // numbers of tensors: those submitted,
    std::uint64_t tensors_done_ = 0;    // and those whose event was polled
    std::uint32_t end_ = 0;             // behind the last fragment of the last tensor
    bool failed_ = false;
    Time failed_at_{};
    Time deadline_ = never;  // earliest_deadline()
    bool switch_heard_ = false;
    Time heard_{};
    WorkerCounters counters_;
};

template <class Archive>
void Worker::persist(Archive& archive) {
    to_send_.persist(archive), unready_.persist(archive), in_flight_.persist(archive);
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
        archive.value(slots_[slot].offset), archive.value(slots_[slot].sent);
        if (in_flight_.contains(slot)) archive.time(slots_[slot].sent_at);
    }
    archive.value(tensors_queued_), archive.value(tensors_done_), archive.value(end_);
    for (std::uint64_t number = tensors_done_; number != tensors_queued_; ++number) {
        Entry& e = entry(number);
        archive.value(e.tensor), archive.value(e.first_offset), archive.value(e.fragments), archive.value(e.missing);
        archive.value(e.overflowed), archive.time(e.submitted_at), archive.time(e.deadline);
    }
    archive.value(failed_), archive.time(failed_at_), archive.time(deadline_);
    archive.value(switch_heard_), archive.time(heard_);
}

}  // namespace atp::switchml
