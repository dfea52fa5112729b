// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace atp::tensor {

// Identifies equal operations: they differ in their values only.
struct OperationKind {
    std::uint32_t operation = 0;
    std::uint32_t detail = 0;  // type, reduction and sizes of the tensors, hashed
    std::uint64_t elements = 0;

    [[nodiscard]] bool operator==(const OperationKind&) const = default;
};

// The operations that a communicator was asked for, in order. Finds for each one an earlier operation whose sums have
// most likely the same magnitudes: of those of equal kind, the one whose predecessors agree with the latest calls the
// longest. Training repeats its calls, so this is the same bucket of the previous iteration, even if several buckets
// have equal sizes.
//
// All ranks call the same operations in the same order, so they find the same references without a message.
// Ownership: owns the last `most_calls` kinds. Calling order: add() for each operation. Threads: under the caller's
// lock. Failure: none.
class ReferenceCalls {
  public:
    static constexpr std::size_t most_calls = 1024;  // that can be a reference
    static constexpr std::uint32_t most_equal = 64;  // predecessors that are compared

    // Adds a call, and returns the number of its reference; nullopt: none. Calls are counted from 0. Of equally good
    // references, the latest one is returned.
    std::optional<std::uint64_t> add(const OperationKind& kind);
    [[nodiscard]] std::uint64_t calls() const { return calls_; }

  private:
    struct PastCall {
        OperationKind kind{};
        // Calls up to this one that agree with as many calls up to the last one.
        std::uint32_t equal = 0;
    };

    [[nodiscard]] PastCall& call(std::uint64_t number) { return ring_[number % most_calls]; }

    std::array<PastCall, most_calls> ring_{};
    std::uint64_t calls_ = 0;
};

}  // namespace atp::tensor
