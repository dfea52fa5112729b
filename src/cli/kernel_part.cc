// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_part.h"

#include <fmt/format.h>

#include "xdp/xdp_switch.h"

namespace atp::cli {
namespace {

class XdpPart final : public KernelPart {
  public:
    explicit XdpPart(std::unique_ptr<xdp::XdpSwitch> machine) : machine_(std::move(machine)) {}
    [[nodiscard]] net::ShardSnapshot snapshot() const override { return machine_->snapshot(); }
    [[nodiscard]] std::vector<net::Error> stop() override { return machine_->stop(); }

  private:
    std::unique_ptr<xdp::XdpSwitch> machine_;
};

}  // namespace

net::Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig& config,
                                                           const net::SwitchNodeConfig& node) {
    if (node.memory_bytes < protocol::aggregator_bytes(ATP_XDP_LANES)) {
        return net::fail(net::Operation::open, net::Reason::unsupported, "--memory",
                         fmt::format("{} bytes hold no aggregator of {} lanes, which takes {}", node.memory_bytes,
                                     ATP_XDP_LANES, protocol::aggregator_bytes(ATP_XDP_LANES)));
    }
    auto machine = xdp::XdpSwitch::start({.interfaces = config.interfaces,
                                          .memory_bytes = node.memory_bytes,
                                          .jobs = node.jobs,
                                          .level = config.level,
                                          .port = node.udp.local.port(),
                                          .ageing = node.ageing,
                                          .hold = node.hold,
                                          .pins = config.pins});
    if (!machine) return tl::unexpected(machine.error());
    return std::make_unique<XdpPart>(*std::move(machine));
}

}  // namespace atp::cli
