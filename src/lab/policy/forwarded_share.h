// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace atp::policy {

// A share of the fragments that switches forward to the server instead of adding them. Each worker marks its own
// packets, since the decision is a function of the fragment and thus equal on all of them.
//
// Ownership: a value.
// Threads: immutable, so any thread may call it.
// Failure: none. Other packets than gradients stay as they are.
class ForwardedShare {
  public:
    ForwardedShare(double share, std::uint64_t seed) : share_(share), seed_(seed) {}

    // Marks a packet that leaves its worker, if it belongs to the share.
    void mark(std::span<std::byte> packet) const;

  private:
    double share_;
    std::uint64_t seed_;
};

}  // namespace atp::policy
