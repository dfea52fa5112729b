// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "xdp/filter_attachment.h"
#include "xdp/kernel_table.h"
#include "xdp/port_marks.h"

namespace atp::xdp {

// Congestion marks without a switch in the kernel: the program at tc egress alone.
//
// Ownership: owns the program on the interfaces that `rates` names.
// Calling order: the destructor detaches the program. If the process is killed, the program stays and marks, until a
//   start() with this interface replaces it.
// Threads: any thread may call report().
// Failure: start() returns the reason, and no interface keeps the program.
class Marker {
  public:
    [[nodiscard]] static Result<std::unique_ptr<Marker>> start(const LinkRates& rates);
    ~Marker();
    Marker(const Marker&) = delete;
    Marker& operator=(const Marker&) = delete;

    [[nodiscard]] std::vector<client::MarkReport> report() const { return ports_.report(); }

  private:
    Marker(std::unique_ptr<KernelTable> kernel, const LinkRates& rates)
        : kernel_(std::move(kernel)), ports_(*kernel_, rates) {}

    std::unique_ptr<KernelTable> kernel_;  // without jobs
    PortMarks ports_;
    std::vector<FilterAttachment> attachments_;
};

}  // namespace atp::xdp
