// SPDX-License-Identifier: Apache-2.0
// The seal of packets, docs/spec/sealing.md#sealed-packets, which no worker of this version uses.
#pragma once

#include <cstdint>
#include <vector>

namespace atp::conformance {

// A fragment, as its masks know it.
struct PacketSeal {
    std::uint64_t channel = 0;
    std::uint64_t number = 0;
    std::uint64_t form = 1;
    std::uint64_t scale = 0;
    std::uint64_t purpose = 0;
};

// F(x).
[[nodiscard]] std::uint64_t mask_of(const PacketSeal& seal, std::uint32_t x);
// The sum of factors times words, of which each is a number of signed digits.
[[nodiscard]] std::uint64_t code_of_packet(const PacketSeal& seal, const std::vector<std::uint32_t>& words);
// The four proof words of a worker.
[[nodiscard]] std::vector<std::uint32_t> proof_of(const PacketSeal& seal, std::uint32_t worker, std::uint32_t workers,
                                                  const std::vector<std::uint32_t>& words);
// What a switch does: adds elements of the form, and proof words modulo 2^32.
void add_elements(std::uint64_t form, const std::vector<std::uint32_t>& words, std::vector<std::uint32_t>& sum);
// Whether the sums of elements and of proof words belong together.
[[nodiscard]] bool proves(const PacketSeal& seal, const std::vector<std::uint32_t>& sum,
                          const std::vector<std::uint32_t>& proof);

}  // namespace atp::conformance
