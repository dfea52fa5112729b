// SPDX-License-Identifier: Apache-2.0
// Gloo, narrowed to what a benchmark of all-reduce needs.
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

// `ring` and `bcube` are those of gloo::allreduce(); the others are classes of Gloo's that are built once for a buffer.
enum class Algorithm { ring, bcube, halving_doubling, ring_chunked };

// By the name that the command line knows them.
[[nodiscard]] const std::map<std::string, Algorithm>& algorithms();

struct Membership {
    int rank = 0;
    int world = 1;
    std::string store;      // an empty folder that all ranks see: they find each other through it
    std::string interface;  // which of the machine's interfaces to speak through; or
    std::string address;    // the address to speak from
    std::chrono::milliseconds timeout{30'000};
};

// One rank's part of a group of processes that sum a tensor of float32.
//
// Order: join(), then every rank calls the same operations in the same order. The tensor belongs to the caller, stays
// where it is, and must outlive the group. One thread calls; Gloo runs one more for the sockets. Failure: a peer that
// does not appear or does not answer within the timeout, as everything that Gloo complains of, is thrown as
// std::exception; after that the group is of no more use.
class GlooGroup {
  public:
    static GlooGroup join(const Membership& membership, Algorithm algorithm, std::span<float> tensor);

    // Leaves the sum of every rank's tensor in the tensor.
    void all_reduce();
    void barrier();
    // The largest of what the ranks bring, on every rank.
    [[nodiscard]] double largest(double value);

  private:
    GlooGroup(std::shared_ptr<gloo::Context> context, Algorithm algorithm, std::span<float> tensor);

    std::shared_ptr<gloo::Context> context_;
    Algorithm algorithm_;
    std::span<float> tensor_;
    std::unique_ptr<gloo::Algorithm> built_;  // empty for the algorithms of gloo::allreduce()
};

}  // namespace atp::bench
