// SPDX-License-Identifier: Apache-2.0
#include "xdp/marker.h"

namespace atp::xdp {

Result<std::unique_ptr<Marker>> Marker::start(const LinkRates& rates) {
    // Without a port and jobs, the program changes nothing but marks.
    auto kernel = KernelTable::load({.aggregators = 1, .jobs = 1, .port = 0});
    if (!kernel) return tl::unexpected(kernel.error());
    std::unique_ptr<Marker> started(new Marker(*std::move(kernel), rates));
    for (const auto& [interface, rate] : rates.of_interface) {
        auto attachment =
            FilterAttachment::attach(interface, started->kernel_->egress_descriptor(), FilterPlace::marker);
        if (!attachment) return tl::unexpected(attachment.error());
        started->attachments_.push_back(*attachment);
        started->ports_.add(interface);
    }
    return started;
}

Marker::~Marker() {
    for (const FilterAttachment& attachment : attachments_) attachment.detach();
}

}  // namespace atp::xdp
