// SPDX-License-Identifier: Apache-2.0
// The kernels for GPUs. Each function enqueues one kernel in the stream; `lanes` are in the device's memory. Internal
// to this module.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "staging/elements.h"

namespace atp::staging::cuda {

[[nodiscard]] cudaError_t load_integers(const Elements& from, float scale, std::uint32_t* lanes, cudaStream_t stream);
[[nodiscard]] cudaError_t load_floats(const Elements& from, std::uint32_t* lanes, cudaStream_t stream);
[[nodiscard]] cudaError_t store(const std::uint32_t* lanes, double factor, const Elements& to, cudaStream_t stream);

}  // namespace atp::staging::cuda
