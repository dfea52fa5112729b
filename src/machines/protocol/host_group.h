// SPDX-License-Identifier: Apache-2.0
// Ranks that share memory sum there. A tensor is cut into chunks, and the memory has some slots. In a slot each rank
// has a place for its lanes, and there is one place for their sum. The chunks of all operations have consecutive
// numbers; chunk n uses slot n modulo the number of slots:
//
//   load    each rank copies its lanes to its place, then arrives;
//   add     the last to arrive opens the chunk: its ranges of lanes are claimed, each by one rank, which alone writes
//           the sums of these lanes;
//   store   the rank that finishes the last range completes the chunk, and each rank copies the sums to its tensor;
//   load    the slot is free when all ranks have stored the sums.
//
// If the job has ranks on other hosts, one rank speaks for this host: when all ranges are added, it sends their sums
// into the network, and the chunk is complete when it has the results. The ranks store these instead.
//
// Nothing is ever repaired: if a rank is lost, the others end as soon as they would wait for it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "protocol/variant.h"

namespace atp::protocol {

// The words that all ranks share. Each function is one access, which no access of another rank divides. A driver
// implements it in shared memory, the checker in its state.
class HostBoard {
  public:
    virtual ~HostBoard() = default;

    // Number of arrivals at this slot since the group formed, this one included.
    virtual std::uint64_t arrive(unsigned slot) = 0;
    // Opens ranges of this chunk to claims, from the first one on, and sets the number of finished ranges to 0.
    virtual void open(unsigned slot, std::uint64_t chunk) = 0;
    // Next range that no rank has claimed; nullopt: this chunk is not open.
    [[nodiscard]] virtual std::optional<std::uint32_t> unclaimed(unsigned slot, std::uint64_t chunk) const = 0;
    // True: this rank alone has the range. False: another rank was faster.
    [[nodiscard]] virtual bool claim(unsigned slot, std::uint64_t chunk, std::uint32_t range) = 0;
    // Number of finished ranges of the open chunk, this one included.
    virtual std::uint32_t finish(unsigned slot) = 0;
    // All ranges are finished: the sums can be sent.
    virtual void offer(unsigned slot, std::uint64_t chunk) = 0;
    [[nodiscard]] virtual bool is_offered(unsigned slot, std::uint64_t chunk) const = 0;
    virtual void complete(unsigned slot, std::uint64_t chunk) = 0;
    [[nodiscard]] virtual bool is_complete(unsigned slot, std::uint64_t chunk) const = 0;
    // Number of ranks that stored sums of this slot since the group formed, this one included.
    virtual std::uint64_t leave(unsigned slot) = 0;
    [[nodiscard]] virtual std::uint64_t left(unsigned slot) const = 0;
    // Compares what each rank wrote beside its lanes before it arrived. Returns a rank that wrote something else;
    // nullopt: all wrote this.
    [[nodiscard]] virtual std::optional<unsigned> rank_without(unsigned slot, std::uint64_t purpose) const = 0;
    // A rank that ended at any time, or that left before it arrived with this chunk; nullopt: none.
    [[nodiscard]] virtual std::optional<unsigned> lost(std::uint64_t chunk) const = 0;
};

struct HostGroupConfig {
    unsigned ranks = 1;
    unsigned slots = 1;
    bool other_hosts = false;  // have ranks of the job
    bool speaks = false;       // this rank, for its host
};

// What the driver of a rank does next. It calls poll_action() again when it has done so.
struct HostAction {
    enum class Kind : std::uint8_t {
        none,      // poll again
        load,      // copy the lanes of the chunk to the rank's place, and write the purpose beside them
        add,       // write the sums of this range
        store,     // copy the sums to the tensor
        send,      // send the sums. When all results are in their place, complete the chunk and notify
        notify,    // wake the ranks that wait for the slot, and the rank that speaks
        wait,      // until the slot changes; also when elements become ready or an operation is submitted
        mismatch,  // `rank` called something else: the group cannot go on
        lost,      // `rank` is lost, and this rank would wait: the group cannot go on
    };
    Kind kind = Kind::none;
    unsigned slot = 0;
    std::uint64_t chunk = 0;
    std::uint32_t range = 0;
    unsigned rank = 0;
};

// One rank's part of a group.
//
// Ownership: borrows nothing; every call gets the board.
// Calling order: submit() for each operation, in the order in which all ranks call them; poll_action() in a loop. The
//   driver has done an action before it polls the next one. After `mismatch` or `lost`, no further call.
// Threads: none.
// Failure: none of its own. It waits forever for a rank that neither calls nor ends; the driver has the deadlines.
inline namespace ATP_VARIANT {

class HostGroup {
  public:
    explicit HostGroup(const HostGroupConfig& config) : config_(config) {}

    // Returns the number of the operation's first chunk. `ranges` of each chunk but the last, which has `last_ranges`.
    std::uint64_t submit(std::uint64_t purpose, std::uint64_t chunks, std::uint32_t ranges, std::uint32_t last_ranges);
    // At most one access to the board. `next_ready`: the elements of chunk next_load() can be read.
    [[nodiscard]] HostAction poll_action(HostBoard& board, bool next_ready);

    // Chunks that this rank has loaded, or stored.
    [[nodiscard]] std::uint64_t next_load() const { return loaded_; }
    [[nodiscard]] std::uint64_t next_store() const { return stored_; }
    // The driver notes the state of wait_slot() before it begins a pass. `wait` means: since then, that state has not
    // shown anything to do.
    [[nodiscard]] bool begins_pass() const { return step_ == Step::look_complete; }
    // The rank that speaks for its host waits for all slots: number `slots`.
    [[nodiscard]] unsigned wait_slot() const { return config_.speaks ? config_.slots : slot_of(awaited()); }
    // Chunks of all operations submitted so far.
    [[nodiscard]] std::uint64_t submitted() const { return submitted_; }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(submitted_), archive.value(loaded_), archive.value(stored_), archive.value(compared_);
        archive.value(sent_), archive.value(step_), archive.value(at_), archive.value(range_);
        std::uint64_t operations = operations_.size();
        archive.value(operations);
        operations_.resize(operations);
        for (ChunkedOperation& operation : operations_) {
            archive.value(operation.first), archive.value(operation.chunks), archive.value(operation.purpose);
            archive.value(operation.ranges), archive.value(operation.last_ranges);
        }
    }

  private:
    // Which access to the board follows. A chunk's number is at_.
    enum class Step : std::uint8_t {
        look_complete,  // whether the next chunk to store is complete; a pass begins here
        look_open,      // whether the chunk has ranges to claim
        compare,
        claim,
        look_offered,  // whether sums can be sent
        look_free,     // whether the next chunk to load has a slot
        look_lost,     // nothing is left to do
        arrive,
        open,
        finish,
        conclude,  // offer or complete
        leave,
    };
    struct ChunkedOperation {
        std::uint64_t first = 0;
        std::uint64_t chunks = 0;
        std::uint64_t purpose = 0;
        std::uint32_t ranges = 1;
        std::uint32_t last_ranges = 1;
    };

    [[nodiscard]] const ChunkedOperation& operation_of(std::uint64_t chunk) const;
    [[nodiscard]] std::uint32_t ranges_of(std::uint64_t chunk) const;
    [[nodiscard]] unsigned slot_of(std::uint64_t chunk) const { return static_cast<unsigned>(chunk % config_.slots); }
    // Times that all ranks have used the slot when this chunk is done with it.
    [[nodiscard]] std::uint64_t uses_of(std::uint64_t chunk) const {
        return (chunk / config_.slots + 1) * config_.ranks;
    }
    [[nodiscard]] HostAction next(Step step) {
        step_ = step;
        return {};
    }
    [[nodiscard]] HostAction act(HostAction::Kind kind, std::uint64_t chunk, Step after) {
        step_ = after;
        at_ = chunk;
        return {.kind = kind, .slot = slot_of(chunk), .chunk = chunk, .range = range_};
    }
    // Before this chunk is complete, or its slot free, no other chunk matters.
    [[nodiscard]] std::uint64_t awaited() const { return stored_ < loaded_ ? stored_ : loaded_; }
    [[nodiscard]] HostAction look_complete(const HostBoard& board);
    [[nodiscard]] HostAction look_open(const HostBoard& board);
    [[nodiscard]] HostAction compare(const HostBoard& board);
    [[nodiscard]] HostAction look_offered(const HostBoard& board);
    [[nodiscard]] HostAction look_free(const HostBoard& board, bool next_ready);
    [[nodiscard]] HostAction look_lost(const HostBoard& board);
    [[nodiscard]] HostAction conclude(HostBoard& board);
    [[nodiscard]] HostAction leave(HostBoard& board);

    HostGroupConfig config_;
    std::deque<ChunkedOperation> operations_;  // that have a chunk to store
    std::uint64_t submitted_ = 0;
    std::uint64_t loaded_ = 0;
    std::uint64_t stored_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t compared_ = 0;  // chunks up to the last one whose purposes this rank compared
    Step step_ = Step::look_complete;
    std::uint64_t at_ = 0;     // chunk of the step
    std::uint32_t range_ = 0;  // of the step
};

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
