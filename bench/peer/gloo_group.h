// SPDX-License-Identifier: Apache-2.0
// The functions of Gloo that a benchmark of all-reduce needs.
#pragma once

#include <gloo/algorithm.h>
#include <gloo/context.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace atp::bench {

// `ring` and `bcube` are algorithms of gloo::allreduce(). The others are classes of Gloo: one object for each buffer.
enum class Algorithm { ring, bcube, halving_doubling, ring_chunked };

// Algorithms by their names on the command line.
[[nodiscard]] const std::map<std::string, Algorithm>& algorithms();

struct Membership {
    int rank = 0;
    int world = 1;
    std::string store;      // an empty folder that all ranks share: through its files, they find each other
    std::string interface;  // network interface to use; empty: not set
    std::string address;    // local address to use; empty: not set. At most one of the two is set
    std::chrono::milliseconds timeout{30'000};
};

// One rank in a group of processes that sum a float32 tensor.
//
// Ownership: the caller owns the tensor, which must outlive the group and stay at its address.
// Calling order: join(), then every rank calls the same operations in the same order.
// Threads: one thread calls; Gloo runs another thread for the sockets.
// Failure: std::exception if a rank does not appear or answer within the timeout, and for every other error of Gloo.
//   The group must not be used afterwards.
class GlooGroup {
  public:
    static GlooGroup join(const Membership& membership, Algorithm algorithm, std::span<float> tensor);

    // Stores the sum over all ranks in the tensor.
    void all_reduce();
    void barrier();
    // The largest `value` of all ranks, and the sum of all, on every rank.
    [[nodiscard]] double largest(double value);
    [[nodiscard]] double total(double value);

  private:
    using Reduce = void (*)(void*, const void*, const void*, std::size_t);

    [[nodiscard]] double reduce(double value, Reduce function);
    GlooGroup(std::shared_ptr<gloo::Context> context, Algorithm algorithm, std::span<float> tensor);

    std::shared_ptr<gloo::Context> context_;
    Algorithm algorithm_;
    std::span<float> tensor_;
    std::unique_ptr<gloo::Algorithm> built_;  // null: an algorithm of gloo::allreduce()
};

}  // namespace atp::bench
