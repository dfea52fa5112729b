// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_queue.cc in builds without a CUDA compiler.
#include "staging/cuda_queue.h"

namespace atp::staging {

Result<std::shared_ptr<DeviceQueue>> open_cuda_queue(int /*device*/) {
    return fail(Operation::open, Reason::unsupported, "CUDA",
                // errors.md, calls, unsupported: until then, pass tensors in CPU memory
                "this build has no CUDA kernels: build it with nvcc in PATH");
}

}  // namespace atp::staging
