// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_part.h"

#include <fmt/format.h>

#include "xdp/agent.h"

namespace atp::apps {
namespace {

class XdpPart final : public KernelPart {
  public:
    explicit XdpPart(std::unique_ptr<xdp::Agent> machine) : machine_(std::move(machine)) {}
    [[nodiscard]] client::ShardReport snapshot() const override { return machine_->snapshot(); }
    void commit() override { machine_->commit(); }
    void set_tenants(const std::shared_ptr<const control::Tenants>& tenants) override {
        machine_->set_tenants(tenants);
    }
    [[nodiscard]] std::vector<Error> stop() override { return machine_->stop(); }

  private:
    std::unique_ptr<xdp::Agent> machine_;
};

std::optional<xdp::LinkRates> link_rates_of(const KernelPartConfig& config) {
    if (!config.sets_marks()) return std::nullopt;
    xdp::LinkRates rates;
    for (const NamedRate& named : config.rates) {
        if (named.interface.empty()) {
            rates.of_all = named.rate;
        } else {
            rates.of_interface[named.interface] = named.rate;
        }
    }
    return rates;
}

}  // namespace

Result<std::unique_ptr<KernelPart>> start_kernel_part(const KernelPartConfig& config,
                                                      const switchd::SwitchNodeConfig& node) {
    if (node.memory_bytes < protocol::aggregator_bytes(ATP_XDP_LANES)) {
        return fail(Operation::open, Reason::unsupported, "--memory",
                    // errors.md, starts, unsupported: `--memory` is too small for `--xdp`
                    fmt::format("{} bytes hold no aggregator of {} lanes; use at least {} bytes", node.memory_bytes,
                                ATP_XDP_LANES, protocol::aggregator_bytes(ATP_XDP_LANES)));
    }
    auto machine = xdp::Agent::start({.interfaces = config.interfaces,
                                      .memory_bytes = node.memory_bytes,
                                      .jobs = node.jobs,
                                      .level = config.level,
                                      .port = node.udp.local.port(),
                                      .ageing = node.ageing,
                                      .hold = node.hold,
                                      .tenants = node.tenants,
                                      .pins = config.pins,
                                      .link_rates = link_rates_of(config)});
    if (!machine) return tl::unexpected(machine.error());
    return std::make_unique<XdpPart>(*std::move(machine));
}

}  // namespace atp::apps
