// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "protocol/host_group.h"
#include "shm/shared_memory.h"
#include "wire/format.h"

namespace atp::shm {

struct HostShape {
    unsigned ranks = 1;
    unsigned slots = 4;
    std::size_t chunk_lanes = 65536;
    std::size_t chunk_spans = 0;  // parts of a chunk about which the ranks vote
    std::size_t chunk_cells = 0;  // parts of a chunk with a largest magnitude each; at least chunk_spans

    [[nodiscard]] std::size_t vote_bytes() const;   // of the votes of one rank on a chunk
    [[nodiscard]] std::size_t notes_bytes() const;  // of all votes and magnitudes of a chunk
    [[nodiscard]] std::size_t bytes() const;
};

// Whether a rank takes part.
enum class Presence : std::uint32_t {
    here,
    left,   // in order, with no operation under way
    ended,  // its process ended, or its operation failed
};

// The memory that the ranks of a host share, seen by one of them: the words of the protocol, and lanes.
//
// Ownership: owns the mapping.
// Calling order: state_call() before a rank arrives with the first chunk of an operation.
// Threads: any; the words are atomic. HostGroup decides who may touch which lanes.
// Failure: none after construction.
class HostMemory final : public protocol::HostBoard {
  public:
    HostMemory(SharedMemory memory, const HostShape& shape, unsigned rank);

    std::uint64_t arrive(unsigned slot) override;
    void open(unsigned slot, std::uint64_t chunk) override;
    [[nodiscard]] std::optional<std::uint32_t> unclaimed(unsigned slot, std::uint64_t chunk) const override;
    [[nodiscard]] bool claim(unsigned slot, std::uint64_t chunk, std::uint32_t range) override;
    std::uint32_t finish(unsigned slot) override;
    void offer(unsigned slot, std::uint64_t chunk) override;
    [[nodiscard]] bool is_offered(unsigned slot, std::uint64_t chunk) const override;
    void complete(unsigned slot, std::uint64_t chunk) override;
    [[nodiscard]] bool is_complete(unsigned slot, std::uint64_t chunk) const override;
    std::uint64_t leave(unsigned slot) override;
    [[nodiscard]] std::uint64_t left(unsigned slot) const override;
    [[nodiscard]] std::optional<unsigned> rank_without(unsigned slot, std::uint64_t purpose) const override;
    [[nodiscard]] std::optional<unsigned> lost(std::uint64_t chunk) const override;

    [[nodiscard]] const HostShape& shape() const { return shape_; }
    [[nodiscard]] int descriptor() const { return memory_.descriptor(); }
    [[nodiscard]] unsigned rank() const { return rank_; }
    [[nodiscard]] std::byte* lanes_of(unsigned slot, unsigned rank) const;
    [[nodiscard]] std::byte* sums_of(unsigned slot) const { return lanes_of(slot, shape_.ranks); }
    // One for each cell of the chunk: the largest magnitude of its sums. The rank that adds the cell writes it with
    // them.
    [[nodiscard]] std::span<float> magnitudes_of(unsigned slot) const;
    // One for each span of the chunk: what the rank says about its scale. It writes them with its lanes.
    [[nodiscard]] std::span<std::uint32_t> votes_of(unsigned slot, unsigned rank) const;

    // What this rank calls, in words and as a number.
    void state_call(unsigned slot, std::uint64_t purpose, std::string_view text);
    [[nodiscard]] std::string call_of(unsigned slot, unsigned rank) const;

    // Ranks that have not loaded this chunk.
    [[nodiscard]] std::vector<unsigned> ranks_without(std::uint64_t chunk) const;
    // The rank that the first failure concerns: all ranks name the same one. Before set_presence().
    void blame(unsigned rank);
    // Wakes all who wait. A rank's presence only rises.
    void set_presence(unsigned rank, Presence presence, std::string_view why = {});
    [[nodiscard]] Presence presence_of(unsigned rank) const;
    [[nodiscard]] std::string why_of(unsigned rank) const;

    // A word with which a rank shows that it sees this memory, and its process.
    void answer(std::uint64_t word, std::uint32_t process);
    [[nodiscard]] std::uint64_t answer_of(unsigned rank) const;
    [[nodiscard]] std::uint32_t process_of(unsigned rank) const;

    // Changes with each notify() of this slot. Number `slots`: where the rank that speaks for the host waits.
    [[nodiscard]] std::uint32_t state_of(unsigned slot) const;
    void notify(unsigned slot);
    // Returns when the state differs from `seen`, at `until`, or for no reason.
    void sleep(unsigned slot, std::uint32_t seen, Time until);

  private:
    struct Head;
    struct Slot;
    struct Member;
    struct Call;

    // The place of an object in the memory.
    template <class Object>
    [[nodiscard]] Object& at(std::size_t offset) const;
    [[nodiscard]] Head& head() const;
    [[nodiscard]] Slot& slot(unsigned number) const;
    [[nodiscard]] Member& member(unsigned rank) const;
    [[nodiscard]] Call& call(unsigned slot, unsigned rank) const;
    // Votes of rank `place`, or magnitudes behind those of all ranks.
    [[nodiscard]] std::byte* notes_of(unsigned slot, unsigned place) const;

    SharedMemory memory_;
    HostShape shape_;
    unsigned rank_;
};

}  // namespace atp::shm
