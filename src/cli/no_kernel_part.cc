// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_part.h"

namespace atp::cli {

net::Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig&, const net::SwitchNodeConfig&) {
    return net::fail(net::Operation::open, net::Reason::unsupported, "--xdp",
                     "this build has no switch inside the kernel: that takes clang, bpftool and libbpf");
}

}  // namespace atp::cli
