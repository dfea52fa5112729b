// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_part.h"

namespace atp::apps {

Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig&, const switchd::SwitchNodeConfig&) {
    return fail(
        Operation::open, Reason::unsupported, "--xdp",
        // errors.md, starts, unsupported: [install](../operate/install.md#run-time-libraries) what its build
        // needs
        "this build, as every wheel, has no switch inside the kernel: build atp from its sources with clang, bpftool "
        "and libbpf, or remove --xdp");
}

}  // namespace atp::apps
