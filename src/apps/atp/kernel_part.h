// SPDX-License-Identifier: Apache-2.0
// The part of `atp switch` that works inside the kernel, where this build has one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "switchd/config.h"
#include "switchd/report.h"

namespace atp::apps {

struct KernelPartConfig {
    std::vector<std::string> interfaces;
    std::string pins = "/sys/fs/bpf/atp";
    std::uint8_t level = 0;
};

// Calling order: commit() once nothing else of the start can fail; then stop(), which says where it could not be ended.
// If it is destroyed before commit(), the jobs and programs that an earlier one had left stay as they were.
class KernelPart {
  public:
    virtual ~KernelPart() = default;
    [[nodiscard]] virtual switchd::ShardSnapshot snapshot() const = 0;
    virtual void commit() = 0;
    [[nodiscard]] virtual std::vector<Error> stop() = 0;

  protected:
    KernelPart() = default;
    KernelPart(const KernelPart&) = default;
    KernelPart& operator=(const KernelPart&) = default;
};

// `node` is what the switch in user space would have been given: its memory, jobs, port and times hold for the kernel.
[[nodiscard]] Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig& config,
                                                                    const switchd::SwitchNodeConfig& node);

}  // namespace atp::apps
