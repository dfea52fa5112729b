// SPDX-License-Identifier: Apache-2.0
// The kernel switch of `atp switch`, if this build has one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/switch_report.h"
#include "switchd/config.h"

namespace atp::apps {

struct KernelPartConfig {
    std::vector<std::string> interfaces;
    std::string pins = "/sys/fs/bpf/atp";
    std::uint8_t level = 0;
};

// A running kernel switch.
//
// Calling order: commit() when nothing else of the start can fail; then stop(), which returns the interfaces where it
//   failed. If the object is destroyed before commit(), the jobs and programs of an earlier start stay as they were.
class KernelPart {
  public:
    virtual ~KernelPart() = default;
    [[nodiscard]] virtual client::ShardReport snapshot() const = 0;
    virtual void commit() = 0;
    [[nodiscard]] virtual std::vector<Error> stop() = 0;

  protected:
    KernelPart() = default;
    KernelPart(const KernelPart&) = default;
    KernelPart& operator=(const KernelPart&) = default;
};

// `node`: configuration of the switch in user space. Its memory, jobs, port and times apply to the kernel switch.
[[nodiscard]] Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig& config,
                                                                    const switchd::SwitchNodeConfig& node);

}  // namespace atp::apps
