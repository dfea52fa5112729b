// SPDX-License-Identifier: Apache-2.0
// What bench_micro measures. A subject owns its buffers: they go when it goes.
#pragma once

#include <cstddef>

#include "measure.h"

namespace atp::bench {

// How much data a pass moves.
struct Size {
    std::size_t tensor_bytes = 0;  // far beyond any cache when measuring
    std::size_t ring_packets = 0;  // packets, or aggregators, in use at once: a window; a power of two
};

Subject quantise_subject(const Size& size);
Subject dequantise_subject(const Size& size);
Subject accumulate_subject(const Size& size);
Subject switch_62_subject(const Size& size);
Subject switch_352_subject(const Size& size);
Subject simulator_subject(const Size& size);

}  // namespace atp::bench
