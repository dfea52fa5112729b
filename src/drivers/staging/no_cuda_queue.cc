// SPDX-License-Identifier: Apache-2.0
// In place of cuda_queue.cc where there is no compiler for CUDA.
#include "staging/cuda_queue.h"

namespace atp::staging {

Result<std::shared_ptr<DeviceQueue>> open_cuda_queue(int /*device*/) {
    return fail(Operation::open, Reason::unsupported, "CUDA",
                "this build has no kernels for graphics processors, as no nvcc was found when it was made");
}

}  // namespace atp::staging
