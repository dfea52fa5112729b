// SPDX-License-Identifier: Apache-2.0
// The measurements of bench_micro. A subject owns its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "measure.h"
#include "numeric/element_type.h"

namespace atp::bench {

// Amount of data of a pass.
struct Size {
    std::size_t tensor_bytes = 0;  // far larger than any cache, except in smoke tests
    std::size_t ring_packets = 0;  // packets or aggregators in use at once (the window), a power of two
};

Subject quantise_subject(const Size& size);
Subject dequantise_subject(const Size& size);
Subject accumulate_subject(const Size& size);
Subject switch_62_subject(const Size& size);
Subject switch_352_subject(const Size& size);
Subject switch_352_proof_subject(const Size& size);  // the last four lanes are proof words
Subject simulator_subject(const Size& size);

// Elements of a type to or from integers of a form (ATP_DTYPE_*). GB/s counts the elements.
Subject send_subject(const Size& size, numeric::ElementType type, std::uint8_t form);
Subject receive_subject(const Size& size, numeric::ElementType type, std::uint8_t form);
// Their names: "send_float16_int8". `action` is "send" or "receive".
std::string conversion_name(std::string_view action, numeric::ElementType type, std::uint8_t form);

}  // namespace atp::bench
