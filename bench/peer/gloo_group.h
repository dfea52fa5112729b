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
#include <vector>

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

// One rank in a group of processes that sum float32 buckets, often only one.
//
// Ownership: the caller owns the buckets, which must outlive the group and stay at their addresses.
// Calling order: join(), then every rank calls the same operations in the same order.
// Threads: one thread at a time calls; Gloo runs another thread for the sockets.
// Failure: std::exception if a rank does not appear or answer within the timeout, and for every other error of Gloo.
//   The group must not be used afterwards.
class GlooGroup {
  public:
    static GlooGroup join(const Membership& membership, Algorithm algorithm, std::vector<std::span<float>> buckets);

    // Stores the sum over all ranks in the bucket.
    void all_reduce(std::size_t bucket = 0);
    void barrier();
    // The largest `value` of all ranks, and the sum of all, on every rank.
    [[nodiscard]] double largest(double value);
    [[nodiscard]] double total(double value);

  private:
    using Reduce = void (*)(void*, const void*, const void*, std::size_t);

    [[nodiscard]] double reduce(double value, Reduce function);
    GlooGroup(std::shared_ptr<gloo::Context> context, Algorithm algorithm, std::vector<std::span<float>> buckets);

    std::shared_ptr<gloo::Context> context_;
    Algorithm algorithm_;
    std::vector<std::span<float>> buckets_;
    std::vector<std::unique_ptr<gloo::Algorithm>> built_;  // by bucket; null: an algorithm of gloo::allreduce()
};

}  // namespace atp::bench
