// SPDX-License-Identifier: Apache-2.0
// The switch in the path of `atp switch`: the one inside the kernel, if this build has one, or a pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/switch_report.h"
#include "control/tenants.h"
#include "switchd/config.h"

namespace atp::apps {

// Rate of the link behind an interface in bit/s. Without a name: of all interfaces that no other rate names.
struct NamedRate {
    std::string interface {};
    std::uint64_t rate = 0;
};

struct KernelPartConfig {
    std::vector<std::string> interfaces = {};
    std::string pins = "/sys/fs/bpf/atp";
    std::uint8_t level = 0;
    bool marks = false;                 // the program sets congestion marks, also if there are rates
    std::vector<NamedRate> rates = {};  // of links; others have the rate that their drivers report. Without a switch in
                                        // the path: of those on which packets are marked
    std::string pipeline = {};          // Thrift server of a pipeline; empty: none
    std::string pipeline_control = {};  // interface at which the pipeline delivers control messages

    [[nodiscard]] bool in_path() const { return !interfaces.empty() || !pipeline.empty(); }
    [[nodiscard]] bool sets_marks() const { return marks || !rates.empty(); }
};

// A running switch in the path.
//
// Calling order: commit() when nothing else of the start can fail; set_tenants() when they change; then stop(), which
//   returns the interfaces where it failed. If the object is destroyed before commit(), the jobs and programs of an
//   earlier start stay as they were.
class KernelPart {
  public:
    virtual ~KernelPart() = default;
    [[nodiscard]] virtual client::ShardReport snapshot() const = 0;
    virtual void commit() = 0;
    virtual void set_tenants(const std::shared_ptr<const control::Tenants>& tenants) = 0;
    [[nodiscard]] virtual std::vector<Error> stop() = 0;

  protected:
    KernelPart() = default;
    KernelPart(const KernelPart&) = default;
    KernelPart& operator=(const KernelPart&) = default;
};

// `node`: configuration of the switch in user space. Its memory, jobs, port and times apply to the kernel switch.
[[nodiscard]] Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig& config,
                                                                    const switchd::SwitchNodeConfig& node);
// The agent of a pipeline, which has memory of its own.
[[nodiscard]] Result<std::unique_ptr<KernelPart>> start_pipeline_part(const KernelPartConfig& config,
                                                                      const switchd::SwitchNodeConfig& node);

// Marks packets that leave the interfaces of `config.rates`, without a switch in the path, until it is destroyed.
//
// Threads: any thread may call report().
class MarksPart {
  public:
    virtual ~MarksPart() = default;
    [[nodiscard]] virtual std::vector<client::MarkReport> report() const = 0;

  protected:
    MarksPart() = default;
    MarksPart(const MarksPart&) = default;
    MarksPart& operator=(const MarksPart&) = default;
};
[[nodiscard]] Result<std::unique_ptr<MarksPart>> start_marks_part(const KernelPartConfig& config);

}  // namespace atp::apps
