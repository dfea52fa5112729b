// SPDX-License-Identifier: Apache-2.0
#include "xdp/agent.h"

#include <algorithm>

#include "net/clock.h"

namespace atp::xdp {
namespace {

// Longest wait of the thread. It bounds the delay of stop() and of the removal of an expired job.
constexpr std::chrono::milliseconds longest_wait(100);
// Interval of Coverage::assess().
constexpr std::chrono::seconds time_between_judgements(1);

}  // namespace

std::uint32_t aggregators_of(const AgentConfig& config) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        config.memory_bytes / protocol::aggregator_bytes(ATP_XDP_LANES), 1, std::uint64_t{1} << 31U));
}

Result<std::unique_ptr<Agent>> Agent::start(const AgentConfig& config) {
    auto folder = PinFolder::open(config.pins);
    if (!folder) return tl::unexpected(folder.error());
    auto kernel = KernelTable::load({.aggregators = aggregators_of(config),
                                     .jobs = config.jobs,
                                     .port = config.port,
                                     .ageing = config.ageing,
                                     .pins = config.pins});
    if (!kernel) return tl::unexpected(kernel.error());
    std::unique_ptr<Agent> started(new Agent(config, *std::move(folder), *std::move(kernel)));
    if (auto attached = started->attach(); !attached) return tl::unexpected(attached.error());
    return started;
}

Agent::Agent(const AgentConfig& config, PinFolder folder, std::unique_ptr<KernelTable> kernel)
    : config_(config),
      folder_(std::move(folder)),
      kernel_(std::move(kernel)),
      admission_(config.jobs, config.hold, config.level) {}

void Agent::commit() {
    std::unique_lock lock(mutex_);
    for (control::AdmittedJob job : kernel_->jobs()) {
        // A job that was forwarded unaggregated gets another try.
        kernel_->set_level({job.job, job.token}, job.level = config_.level);
        admission_.remember(job, net::now());
    }
    lock.unlock();
    detach_elsewhere(kernel_->descriptor(), config_.interfaces);
    thread_ = std::thread([this] { run(); });
}

Agent::~Agent() {
    if (!stopped_) undo();
}

// All interfaces are checked before the first one is changed.
Result<void> Agent::attach() {
    for (const std::string& interface : config_.interfaces) {
        if (auto checked = Attachment::check(interface, kernel_->descriptor()); !checked) return checked;
    }
    for (const std::string& interface : config_.interfaces) {
        auto attachment = Attachment::attach(interface, kernel_->descriptor());
        if (!attachment) return tl::unexpected(attachment.error());
        attachments_.push_back(*attachment);
        auto egress = EgressAttachment::attach(interface, kernel_->egress_descriptor());
        if (egress) egress_attachments_.push_back(*egress);
        if (!egress) missing_.push_back(to_string(egress.error()));
    }
    return {};
}

void Agent::end_work() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    const std::scoped_lock lock(mutex_);
    // A device below another device releases its program after that device.
    std::ranges::reverse(attachments_);
}

std::vector<Error> Agent::stop() {
    end_work();
    stopped_ = true;
    // The program may still be attached somewhere; without jobs it absorbs nothing.
    for (const control::AdmittedJob& job : kernel_->jobs()) kernel_->dismiss({job.job, job.token});
    std::vector<Error> remain;
    for (const Attachment& attachment : attachments_) {
        if (auto detached = attachment.detach(); !detached) remain.push_back(detached.error());
    }
    for (const EgressAttachment& attachment : egress_attachments_) attachment.detach();
    if (remain.empty()) kernel_->unpin();
    return remain;
}

void Agent::undo() {
    end_work();
    for (const Attachment& attachment : attachments_) {
        if (!attachment.replaced()) static_cast<void>(attachment.detach());
    }
    for (const EgressAttachment& attachment : egress_attachments_) {
        if (!attachment.replaced()) attachment.detach();
    }
    if (!kernel_->took_over()) kernel_->unpin();
}

void Agent::run() {
    while (!stopping_) {
        kernel_->read_queued_messages(longest_wait, [this](auto message) { handle_message(message, net::now()); });
        expire(net::now());
        assess(net::now());
    }
}

void Agent::handle_message(std::span<const std::byte> message, Time now) {
    const std::scoped_lock lock(mutex_);
    const control::InPathAgent::AgentChange verdict = admission_.handle_message(message, now);
    const control::AdmittedJob& job = verdict.job;
    if (verdict.change == control::InPathAgent::Change::admit) {
        static_cast<void>(kernel_->admit(job.job, job.token, job.level));
    } else if (verdict.change == control::InPathAgent::Change::learn_group) {
        kernel_->learn_group({job.job, job.token}, verdict.group_number);
    }
}

void Agent::expire(Time now) {
    const std::scoped_lock lock(mutex_);
    while (const auto job = admission_.poll_expired(now)) {
        kernel_->dismiss({job->job, job->token});
        coverage_.forget(job->job);
    }
}

void Agent::assess(Time now) {
    if (now < judges_next_) return;
    judges_next_ = now + time_between_judgements;
    const std::scoped_lock lock(mutex_);
    for (const control::AdmittedJob& job : kernel_->jobs()) {
        const auto counters = kernel_->job_counters({job.job, job.token});
        if (!counters) continue;
        const bool aggregates = coverage_.assess(job.job, counters->packets, now);
        kernel_->set_level({job.job, job.token}, aggregates ? config_.level : std::uint8_t{ATP_LEVELS});
    }
}

client::ShardReport Agent::snapshot() const {
    const std::scoped_lock lock(mutex_);
    const KernelCounters counters = kernel_->counters();
    client::ShardReport snapshot;
    snapshot.address = to_string(wire::Address());  // it has none
    snapshot.aggregators = aggregators_of(config_);
    snapshot.packets = counters.packets;
    snapshot.kernel = {.lanes = ATP_XDP_LANES,
                       .level = config_.level,
                       .interfaces = {},
                       .passing_jobs = coverage_.passing(),
                       .without_release = missing_,
                       .oversized = counters.oversized,
                       .damaged = counters.damaged,
                       .not_admitted = admission_.not_admitted()};
    for (const Attachment& attachment : attachments_) {
        snapshot.kernel->interfaces.emplace_back(attachment.interface(),
                                                 attachment.is_attached() ? to_string(attachment.mode()) : "gone");
    }
    for (const control::AdmittedJob& job : kernel_->jobs()) {
        if (const auto of_job = kernel_->job_counters({job.job, job.token})) {
            snapshot.jobs.push_back({.job = job.job, .counters = of_job->packets});
        }
    }
    return snapshot;
}

}  // namespace atp::xdp
