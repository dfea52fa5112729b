// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_part.h"

namespace atp::apps {
namespace {

Failure nothing_in_the_kernel(const char* flag) {
    return fail(
        Operation::open, Reason::unsupported, flag,
        // errors.md, starts, unsupported: [install](../operate/install.md#run-time-libraries) what its build
        // needs
        "this build, as every wheel, has no program for the kernel: build atp from its sources with clang, bpftool "
        "and libbpf, or remove --xdp and --link-rate");
}

}  // namespace

Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig&, const switchd::SwitchNodeConfig&) {
    return nothing_in_the_kernel("--xdp");
}

Result<std::unique_ptr<MarksPart>> start_marks_part(const KernelPartConfig&) {
    return nothing_in_the_kernel("--link-rate");
}

}  // namespace atp::apps
