// SPDX-License-Identifier: Apache-2.0
#include "switchd/node.h"

#include "switchd/memory_of_host.h"
#include "switchd/shared_pace.h"
#include "switchd/shared_room.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/version.h"
#include "net/clock.h"
#include "net/random.h"

namespace atp::switchd {
namespace {

double gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

Failure no_memory(const SwitchNodeConfig& config, const std::string& why) {
    return fail(Operation::open, Reason::exhausted, "--memory",
                // errors.md, starts, exhausted: lower `--memory`
                fmt::format("no memory for {:.1f} GB of aggregators: {}", gigabytes(config.memory_bytes), why));
}

// Without this check, the kernel could grant more memory than the host has. It would end the process when the switch
// clears its aggregators, or later when jobs use the servers.
Result<void> check_memory(const SwitchNodeConfig& config) {
    const std::uint64_t present = MemoryOfHost::of_this_host().all();
    if (present == 0) return {};
    const std::string has = fmt::format("this host or container has {:.1f} GB including swap", gigabytes(present));
    if (config.memory_bytes > present) return no_memory(config, has);
    if (config.server_bytes <= present - config.memory_bytes) return {};
    return fail(Operation::open, Reason::exhausted, "--server-memory",
                // errors.md, starts, exhausted: lower `--server-memory`
                fmt::format("no memory for {:.1f} GB of parameter servers beside {:.1f} GB of aggregators: {}",
                            gigabytes(config.server_bytes), gigabytes(config.memory_bytes), has));
}

endpoint::NodeMachineConfig machine_config(const SwitchNodeConfig& config, std::uint64_t id) {
    return {.id = id,
            .self = {.aggregators = std::max(config.kernel_aggregators, aggregators_of_shard(config)),
                     .lanes = config.lanes},
            .parent = config.parent,
            .software = software_name(),
            .shards = config.shards,
            .secret = config.secret};
}

SwitchNodeConfig with_secret(SwitchNodeConfig config) {
    config.secret = net::random_secret();
    return config;
}

}  // namespace

Result<std::unique_ptr<SwitchNode>> SwitchNode::start(const SwitchNodeConfig& config, std::function<void()> failed,
                                                      KernelReporter report_kernel) {
    if (auto fits = check_memory(config); !fits) return tl::unexpected(fits.error());
    std::unique_ptr<SwitchNode> node(new SwitchNode(config));
    node->failed_ = std::move(failed);
    node->report_kernel_ = std::move(report_kernel);
    try {
        if (auto opened = node->open_shards(); !opened) return tl::unexpected(opened.error());
    } catch (const std::bad_alloc&) {
        return no_memory(config, "the kernel refused the allocation");
    }
    SwitchNode& self = *node;
    for (std::size_t i = 0; i < node->loops_.size(); ++i) {
        node->threads_.emplace_back([&self, i] {
            pthread_setname_np(pthread_self(), ("atp-thread-" + std::to_string(i)).c_str());
            if (self.config_.enter_thread) self.config_.enter_thread();
            const auto ran = self.loops_[i]->run();
            if (self.stopping_) return;
            {
                const std::scoped_lock lock(self.failure_mutex_);
                self.failure_ = self.shards_[i]->failure();
                if (!ran) self.failure_ = ran.error();
            }
            if (self.failed_) self.failed_();
        });
    }
    return node;
}

SwitchNode::SwitchNode(const SwitchNodeConfig& config)
    : config_(with_secret(config)),
      id_(net::random_bits()),
      started_(net::now()),
      machine_(machine_config(config_, id_)) {
    if (config_.ticket_key == Secret{}) config_.ticket_key = net::random_secret();
}

SwitchNode::~SwitchNode() { stop(); }

Result<void> SwitchNode::open_shards() {
    room_ = std::make_shared<SharedRoom>(config_.jobs, config_.channels);
    set_tenants(config_.tenants);
    const auto pace = std::make_shared<SharedPace>(config_.secret);
    for (std::uint32_t i = 0; i < config_.shards; ++i) {
        net::LoopConfig loop{.spin = config_.spin, .core = std::nullopt};
        if (i < config_.cores.size()) loop.core = config_.cores[i];
        auto opened = net::EventLoop::open(loop);
        if (!opened) return tl::unexpected(opened.error());
        loops_.push_back(*std::move(opened));
        ShardDriver::Dispatch dispatch;
        if (i == 0) {
            dispatch = [this](endpoint::ControlMessage message, wire::Outbox& out, Time now) {
                this->dispatch(std::move(message), out, now);
            };
        }
        auto shard = ShardDriver::open(config_, i, *loops_.back(), std::move(dispatch), {.room = room_, .pace = pace});
        if (!shard) return tl::unexpected(shard.error());
        shards_.push_back(*std::move(shard));
    }
    reports_ = std::make_unique<ReportMaker>(machine_, *shards_.front(), *loops_.front(),
                                             [this](std::uint64_t hellos) { return report(hellos); });
    if (config_.parent.family() != wire::Family::none) {
        auto link = ParentLink::open(config_.parent, *loops_.front(), config_.log.get(), pace);
        if (!link) return tl::unexpected(link.error());
        parent_ = *std::move(link);
        machine_.set_parent(parent_->client());
    }
    return {};
}

void SwitchNode::set_tenants(const std::shared_ptr<const control::Tenants>& tenants) {
    room_->set_tenants(tenants);
    for (const auto& shard : shards_) shard->set_tenants(tenants);
    const std::scoped_lock lock(tenants_mutex_);
    tenants_ = tenants;
}

void SwitchNode::set_hosts(const control::HostLists& hosts) {
    for (const auto& shard : shards_) shard->set_hosts(hosts);
}

void SwitchNode::stop() {
    stopping_ = true;
    for (const auto& loop : loops_) loop->stop();
    for (std::thread& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
    if (!threads_.empty()) {
        for (const auto& shard : shards_) shard->publish();  // for totals
    }
    threads_.clear();
}

bool SwitchNode::turns() {
    rounds_.resize(loops_.size());
    bool all = true;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
        const std::uint64_t rounds = loops_[i]->rounds();
        all = all && rounds != std::exchange(rounds_[i], rounds);
        loops_[i]->wake();
    }
    return all;
}

std::optional<Error> SwitchNode::failure() const {
    const std::scoped_lock lock(failure_mutex_);
    return failure_;
}

// On the first shard's thread.
void SwitchNode::dispatch(endpoint::ControlMessage message, wire::Outbox& out, Time now) {
    const endpoint::NodeTask task = machine_.handle_message(message, out, now);
    switch (task.kind) {
        case endpoint::NodeTask::Kind::none: break;
        case endpoint::NodeTask::Kind::deliver:
            if (task.shard == 0) {
                shards_.front()->enqueue(std::move(message), now);
            } else {
                shards_[task.shard]->deliver(std::move(message));
            }
            break;
        case endpoint::NodeTask::Kind::take_report: reports_->take(); break;
    }
}

std::string SwitchNode::report(std::uint64_t hellos) const {
    client::SwitchReport report = snapshot();
    report.hellos = hellos;
    return to_json(report);
}

client::SwitchReport SwitchNode::snapshot() const {
    client::SwitchReport report{
        .id = id_,
        .software = software_name(),
        .address = to_string(address()),
        .parent = config_.parent.family() == wire::Family::none ? std::string() : to_string(config_.parent),
        .parent_answers = parent_ != nullptr && parent_->answers(),
        .uptime_s = std::chrono::duration<double>(net::now() - started_).count(),
        .lanes = config_.lanes,
        .memory_bytes = config_.memory_bytes};
    report.draining = room_->drains();
    add_tenants(report);
    client::add_parts(config_.report_parts, report.parts);
    for (const auto& shard : shards_) report.shards.push_back(shard->snapshot());
    if (report_kernel_) report.shards.push_back(report_kernel_());
    for (const client::ShardReport& shard : report.shards) report.memory_bytes += client::memory_of_kernel(shard);
    return report;
}

void SwitchNode::add_tenants(client::SwitchReport& report) const {
    const std::scoped_lock lock(tenants_mutex_);
    report.is_open = tenants_ == nullptr;
    if (report.is_open) return;
    for (const control::Tenant& tenant : tenants_->all()) {
        report.tenants.push_back({.name = tenant.name,
                                  .jobs = tenant.jobs,
                                  .channels = tenant.channels,
                                  .server_bytes = tenant.server_bytes});
    }
}

}  // namespace atp::switchd
