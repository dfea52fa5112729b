// SPDX-License-Identifier: Apache-2.0
// Makes and reads the packets of tests: whole datagrams, with lanes as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet.h"

namespace atp::testing {

using Bytes = std::vector<std::byte>;
using Lanes = std::vector<std::int32_t>;

[[nodiscard]] Bytes make_packet(const atp_header& header, const Lanes& lanes = {});
[[nodiscard]] Bytes make_float_packet(const atp_header& header, const std::vector<float>& lanes);

// Field `lanes` of a packet of `type` whose words are of type `dtype`, for a fragment that travels in that type or, if
// these are floats, in int32.
[[nodiscard]] inline std::uint8_t lanes_field(std::uint8_t type, std::uint8_t dtype) {
    if (type > ATP_TYPE_ACK || dtype == ATP_DTYPE_NONE) return dtype;
    return atp_lanes_of(dtype == ATP_DTYPE_FLOAT32 ? std::uint8_t{ATP_DTYPE_INT32} : dtype, dtype);
}

// The header in the bytes, whether or not decode() accepts it.
[[nodiscard]] atp_header header_in(std::span<const std::byte> bytes);
[[nodiscard]] Lanes lanes_in(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<float> floats_in(std::span<const std::byte> bytes);

}  // namespace atp::testing
