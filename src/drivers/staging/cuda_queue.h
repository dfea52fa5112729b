// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "staging/device_queue.h"

namespace atp::staging {

// A queue on streams of its own for the CUDA device with this number. Fails if this build has no CUDA, or if the driver
// or the device fails.
[[nodiscard]] Result<std::shared_ptr<DeviceQueue>> open_cuda_queue(int device);

}  // namespace atp::staging
