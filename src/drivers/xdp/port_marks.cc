// SPDX-License-Identifier: Apache-2.0
#include "xdp/port_marks.h"

#include <net/if.h>

#include <chrono>

#include "xdp/link_rate.h"

namespace atp::xdp {
namespace {

constexpr std::chrono::seconds between_polls(1);

// What a frame takes of the link's rate in addition to its own bytes: checksum, preamble and the gap to the next frame.
// A rate that the operator names is that of a shaper, which counts none of them.
constexpr std::uint32_t bytes_between_frames = 4 + 8 + 12;

}  // namespace

void PortMarks::add(const std::string& interface) {
    Port port{.interface = interface, .index = if_nametoindex(interface.c_str())};
    const auto own = rates_.of_interface.find(interface);
    auto rate = own != rates_.of_interface.end() ? std::optional(own->second) : rates_.of_all;
    port.is_reported = !rate;
    if (!rate) rate = link_rate_of(interface);
    if (rate) set_rate(port, *rate);
    ports_.push_back(port);
}

// A driver reports no rate while its cable is out. No packet leaves then, and the last rate is as good as any.
void PortMarks::poll(Time now) {
    if (now < next_poll_) return;
    next_poll_ = now + between_polls;
    for (Port& port : ports_) {
        if (!port.is_reported) continue;
        const auto rate = link_rate_of(port.interface);
        if (rate && *rate != port.rate) set_rate(port, *rate);
    }
}

void PortMarks::set_rate(Port& port, std::uint64_t rate) {
    if (kernel_.set_port(port.index, rate, port.is_reported ? bytes_between_frames : 0)) port.rate = rate;
}

std::vector<client::MarkReport> PortMarks::report() const {
    std::vector<client::MarkReport> report;
    for (const Port& port : ports_) {
        if (port.rate == 0) continue;
        report.push_back({.interface = port.interface, .link_rate = port.rate, .marked = kernel_.marked(port.index)});
    }
    return report;
}

}  // namespace atp::xdp
