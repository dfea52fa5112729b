// SPDX-License-Identifier: Apache-2.0
// Jobs whose integers travel in a narrow form, in a network of the real state machines.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "support/narrow_tensor.h"
#include "support/network.h"

namespace atp::testing {

using Bits = std::vector<std::uint32_t>;

// Workers that sum one tensor each, at scale 1.
class NarrowJob {
  public:
    template <class Value>
    NarrowJob(NetworkConfig config, std::uint8_t form, std::size_t elements, const Value& value,
              const protocol::Spans& spans = {})
        : network(at_scale_one(std::move(config))) {
        for (unsigned rank = 0; rank < network.config().membership.workers(); ++rank) {
            std::vector<float> values;
            for (std::size_t at = 0; at < elements; ++at) values.push_back(value(rank, at));
            tensors.push_back(std::make_unique<NarrowTensor>(form, std::move(values), spans));
            network.submit(rank, *tensors.back());
        }
    }

    // Bits of the sums, which are equal on all ranks and stored once.
    [[nodiscard]] Bits bits() const {
        for (const auto& tensor : tensors) {
            EXPECT_EQ(bits_of(*tensor), bits_of(*tensors.front()));
            EXPECT_EQ(tensor->stored(), std::vector<unsigned>(tensor->size(), 1));
        }
        return bits_of(*tensors.front());
    }
    [[nodiscard]] std::size_t count(std::uint8_t dtype, atp_type type = ATP_TYPE_GRADIENT) const {
        return network.count_delivered([=](const Flight& flight) {
            return flight.is(type) && (flight.header().lanes & ATP_LANES_TYPE_MASK) == dtype;
        });
    }

    Network network;
    std::vector<std::unique_ptr<NarrowTensor>> tensors;

  private:
    static NetworkConfig at_scale_one(NetworkConfig config) {
        config.scale = 1;
        return config;
    }
    static Bits bits_of(const NarrowTensor& tensor) {
        Bits bits;
        for (const float sum : tensor.sums()) bits.push_back(std::bit_cast<std::uint32_t>(sum));
        return bits;
    }
};

inline float narrow_value(unsigned rank, std::size_t element) { return static_cast<float>(rank + element % 7) - 3; }

// Most fragments fit 8 bits. Some sums leave their form, some elements do, and some have no integer at all.
inline float any_width(unsigned rank, std::size_t element) {
    if (element % 37 == 5) return rank == 1 ? std::numeric_limits<float>::infinity() : 1.5F;
    if (element % 41 == 7) return rank % 2 == 0 ? 1e30F : -1e30F;
    if (element % 29 == 11) return 120.0F + static_cast<float>(rank);
    if (element % 31 == 17) return 32000.0F - 100 * static_cast<float>(rank);
    if (element % 43 == 2) return rank == 0 ? 0.25F : 70000.0F;
    return narrow_value(rank, element);
}

}  // namespace atp::testing
