// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/switch_report.h"
#include "xdp/kernel_table.h"

namespace atp::xdp {

// Rates of links as the operator names them, in bit/s. Other links have the rate that their drivers report.
struct LinkRates {
    std::optional<std::uint64_t> of_all{};
    std::map<std::string, std::uint64_t> of_interface{};  // takes precedence
};

// The ports whose packets get congestion marks, and the rates of their links.
//
// Ownership: borrows the table, whose ports it writes.
// Calling order: add() each port on which both programs run, then poll(): a link may change its rate, and a cable may
//   be plugged in later.
// Threads: one at a time.
// Failure: a port marks nothing, and report() leaves it out, if its rate is not known or the kernel has no room for it.
class PortMarks {
  public:
    PortMarks(KernelTable& kernel, LinkRates rates) : kernel_(kernel), rates_(std::move(rates)) {}

    void add(const std::string& interface);
    void poll(Time now);
    [[nodiscard]] std::vector<client::MarkReport> report() const;

  private:
    struct Port {
        std::string interface;
        std::uint32_t index = 0;
        std::uint64_t rate = 0;    // bit/s; 0: it marks nothing
        bool is_reported = false;  // by the driver
    };
    void set_rate(Port& port, std::uint64_t rate);

    KernelTable& kernel_;
    LinkRates rates_;
    std::vector<Port> ports_;
    Time next_poll_{};
};

}  // namespace atp::xdp
