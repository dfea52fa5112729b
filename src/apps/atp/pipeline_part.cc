// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/kernel_part.h"
#include "net/resolve.h"
#include "p4agent/agent.h"

namespace atp::apps {
namespace {

class PipelinePart final : public KernelPart {
  public:
    explicit PipelinePart(std::unique_ptr<p4agent::PipelineAgent> agent) : agent_(std::move(agent)) {}
    [[nodiscard]] client::ShardReport snapshot() const override { return agent_->snapshot(); }
    void commit() override {}
    void set_tenants(const std::shared_ptr<const control::Tenants>& /*tenants*/) override {}
    [[nodiscard]] std::vector<Error> stop() override {
        agent_->stop();
        return {};
    }

  private:
    std::unique_ptr<p4agent::PipelineAgent> agent_;
};

}  // namespace

Result<std::unique_ptr<KernelPart>> start_pipeline_part(const KernelPartConfig& config,
                                                        const switchd::SwitchNodeConfig& node) {
    const auto thrift = net::resolve(config.pipeline);
    if (!thrift) return tl::unexpected(thrift.error());
    auto agent = p4agent::PipelineAgent::start({.thrift = thrift->front(),
                                                .control_device = config.pipeline_control,
                                                .jobs = node.jobs,
                                                .level = config.level,
                                                .port = node.udp.local.port(),
                                                .hold = node.hold,
                                                .enter_thread = node.enter_thread});
    if (!agent) return tl::unexpected(agent.error());
    return std::make_unique<PipelinePart>(*std::move(agent));
}

}  // namespace atp::apps
