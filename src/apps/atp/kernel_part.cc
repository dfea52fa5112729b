// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_part.h"

#include <fmt/format.h>

#include "apps/common/confinement.h"
#include "xdp/agent.h"
#include "xdp/marker.h"

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

class XdpMarks final : public MarksPart {
  public:
    explicit XdpMarks(std::unique_ptr<xdp::Marker> marker) : marker_(std::move(marker)) {}
    [[nodiscard]] std::vector<client::MarkReport> report() const override { return marker_->report(); }

  private:
    std::unique_ptr<xdp::Marker> marker_;
};

xdp::LinkRates link_rates_of(const KernelPartConfig& config) {
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
    auto machine =
        xdp::Agent::start({.interfaces = config.interfaces,
                           .memory_bytes = node.memory_bytes,
                           .jobs = node.jobs,
                           .level = config.level,
                           .port = node.udp.local.port(),
                           .ageing = node.ageing,
                           .hold = node.hold,
                           .tenants = node.tenants,
                           .pins = config.pins,
                           .link_rates = config.sets_marks() ? std::optional(link_rates_of(config)) : std::nullopt,
                           .enter_thread = keep_use_of_maps});
    if (!machine) return tl::unexpected(machine.error());
    return std::make_unique<XdpPart>(*std::move(machine));
}

Result<std::unique_ptr<MarksPart>> start_marks_part(const KernelPartConfig& config) {
    auto marker = xdp::Marker::start(link_rates_of(config));
    if (!marker) return tl::unexpected(marker.error());
    return std::make_unique<XdpMarks>(*std::move(marker));
}

}  // namespace atp::apps
