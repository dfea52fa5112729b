// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "staging/device_queue.h"

namespace atp::staging {

// Of the CUDA device of that number, on streams of its own. An error where this build knows no CUDA, or the driver or
// the device does not do.
[[nodiscard]] Result<std::shared_ptr<DeviceQueue>> open_cuda_queue(int device);

}  // namespace atp::staging
