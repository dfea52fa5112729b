// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "host/plain_board.h"
#include "protocol/host_group.h"
#include "protocol/variant.h"
#include "random/random.h"
#include "tensor/host_part.h"

namespace atp::host {
inline namespace ATP_VARIANT {

struct HostRanksConfig {
    unsigned slots = 1;
    // `rank` is that of no rank in particular. `chunk_lanes` is the room of each place; `network` is required.
    tensor::HostRules rules;
    std::uint64_t seed = 0;  // of the order in which the ranks take their steps
};

// The ranks of a host that sum in its memory, each with the HostGroup and the HostPart that ship. Rank 0 speaks for the
// host: its worker sends the sums of chunks into the network.
//
// Ownership: owns the memory. Borrows each tensor until all ranks have stored it.
// Calling order: submit() on all ranks in the same order; finish() for each chunk of poll_send(), in any order. After
//   either, run(); then poll_send() and poll_stored() until they return nothing.
// Threads: none. A step of a rank is one access to the words, or one copy or addition of lanes.
// Failure: none. All ranks call the same operations, and end together.
class HostRanks {
  public:
    explicit HostRanks(const HostRanksConfig& config);

    void submit(unsigned rank, protocol::Tensor& tensor);
    // The results of the chunk are in its tensor.
    void finish(std::uint64_t chunk);
    // In random order, until all ranks wait.
    void run();

    struct SentChunk {
        std::uint64_t number = 0;
        protocol::Tensor* sums = nullptr;  // until finish()
    };
    [[nodiscard]] std::optional<SentChunk> poll_send();
    // A rank that has stored all sums of its oldest tensor.
    [[nodiscard]] std::optional<unsigned> poll_stored();

  private:
    struct Rank {
        protocol::HostGroup group;
        tensor::HostRules rules;
        std::deque<tensor::HostPart> parts{};  // under way, in order
        std::uint32_t seen = 0;                // state of the slot for which it would wait
        std::optional<unsigned> waits_for{};   // slot
    };

    // False: it waits.
    [[nodiscard]] bool step(unsigned rank);
    [[nodiscard]] static tensor::HostPart& part_of(Rank& rank, std::uint64_t chunk);
    void notify(unsigned slot);
    void wake(unsigned rank);

    unsigned slots_;
    Random random_;
    std::vector<Rank> ranks_;
    std::vector<SlotWords> words_;  // by slot; the last one is where the rank that speaks waits
    std::unique_ptr<std::byte[]> memory_;
    std::vector<tensor::ChunkPlaces> places_;                    // by slot
    std::vector<std::unique_ptr<protocol::Tensor>> in_network_;  // by slot
    std::vector<unsigned> awake_;
    std::deque<SentChunk> to_send_;
    std::deque<unsigned> stored_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::host
