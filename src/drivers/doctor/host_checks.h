// SPDX-License-Identifier: Apache-2.0
// Checks of this host. They depend only on their arguments.
#pragma once

#include <vector>

#include "doctor/finding.h"
#include "doctor/host_facts.h"

namespace atp::doctor {

[[nodiscard]] Finding check_kernel(const HostFacts& facts);
[[nodiscard]] Finding check_clock(const HostFacts& facts);
[[nodiscard]] Finding check_frequency(const HostFacts& facts);
[[nodiscard]] Finding check_cores(const HostFacts& facts);
[[nodiscard]] Finding check_multicast(const HostFacts& facts);
[[nodiscard]] Finding check_receive_buffer(const HostFacts& facts);
[[nodiscard]] Finding check_send_buffer(const HostFacts& facts);
// One feature that the kernel may lack: mmsg, gso, gro, ecn, no-fragments.
[[nodiscard]] Finding check_feature(const HostFacts& facts, net::Feature feature);
// `before` and `after`: read before and after the doctor's own packets.
[[nodiscard]] Finding check_kernel_drops(const KernelDrops& before, const KernelDrops& after);

// All checks except that of the drops, in the order of the report.
[[nodiscard]] std::vector<Finding> check_host(const HostFacts& facts);

}  // namespace atp::doctor
