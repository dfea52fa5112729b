// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "xdp/egress_attachment.h"
#include "xdp/kernel_table.h"
#include "xdp/pin_folder.h"
#include "xdp/port_marks.h"

namespace atp::xdp {

// Congestion marks without a switch in the kernel: the program at tc egress alone.
//
// Ownership: owns the program on the interfaces that `rates` names. No other process may have the pin folder.
// Calling order: the destructor detaches the program. If the process is killed, the program stays and marks, and the
//   next start() with the same pins and interfaces replaces it.
// Threads: any thread may call report().
// Failure: start() returns the reason, and no interface keeps the program.
class Marker {
  public:
    [[nodiscard]] static Result<std::unique_ptr<Marker>> start(const LinkRates& rates, const std::string& pins);
    ~Marker();
    Marker(const Marker&) = delete;
    Marker& operator=(const Marker&) = delete;

    [[nodiscard]] std::vector<client::MarkReport> report() const { return ports_.report(); }

  private:
    Marker(PinFolder folder, std::unique_ptr<KernelTable> kernel, const LinkRates& rates)
        : folder_(std::move(folder)), kernel_(std::move(kernel)), ports_(*kernel_, rates) {}

    PinFolder folder_;
    std::unique_ptr<KernelTable> kernel_;  // without jobs
    PortMarks ports_;
    std::vector<EgressAttachment> attachments_;
};

}  // namespace atp::xdp
