// SPDX-License-Identifier: Apache-2.0
#include "xdp/agent.h"

#include <algorithm>
#include <map>

#include "net/clock.h"

namespace atp::xdp {
namespace {

// Longest wait of the thread. It bounds the delay of stop() and of the removal of an expired job.
constexpr std::chrono::milliseconds longest_wait(100);

class KernelPlane final : public control::DataPlane {
  public:
    explicit KernelPlane(KernelTable& kernel) : kernel_(kernel) {}

    [[nodiscard]] bool admit(const control::AdmittedJob& job) override {
        return kernel_.admit(job.job, job.token, job.level, job.key_id);
    }
    void dismiss(const control::JobKey& job) override {
        kernel_.dismiss(job);
        std::erase_if(groups_, [&](const auto& each) { return each.first.of_job() == job; });
        std::erase_if(members_, [&](const auto& each) { return each.first.of_job() == job; });
    }
    void set_key(const control::JobKey& job, std::uint32_t key_id) override { kernel_.set_key(job, key_id); }
    void set_sender(const control::JobKey& job, std::uint8_t number) override { kernel_.set_sender(job, number); }
    void learn_group(const control::ChannelKey& channel, std::uint64_t group_number) override {
        const auto [known, is_new] = groups_.try_emplace(channel, group_number);
        if (!is_new) {
            kernel_.forget_group(channel.of_job(), known->second);
            known->second = group_number;
        }
        if (kernel_.learn_group(channel.of_job(), group_number)) return write_members(channel);
        groups_.erase(known);
        members_.erase(channel);
    }
    void learn_member(const control::ChannelKey& channel, const control::PassedMember& member) override {
        if (!groups_.contains(channel)) return;  // not known yet, or without room in the kernel
        auto& members = members_[channel];
        const auto known = members.find(member.number);
        if (known == members.end() && members.size() > ATP_XDP_MEMBERS) return;
        if (known != members.end() && known->second == member) return;
        members.insert_or_assign(member.number, member);
        write_members(channel);
    }
    void set_slice(const control::JobKey& job, const atp_range& slice, std::uint32_t weight) override {
        kernel_.set_slice(job, slice, weight);
    }
    void end_changes() override { kernel_.end_changes(); }
    [[nodiscard]] std::optional<atp_range> slice_of(const control::JobKey& job) const override {
        return kernel_.slice_of(job);
    }
    void set_level(const control::JobKey& job, std::uint8_t level) override { kernel_.set_level(job, level); }
    [[nodiscard]] std::vector<control::AdmittedJob> jobs() const override { return kernel_.jobs(); }
    [[nodiscard]] std::optional<protocol::SwitchCounters> packets_of(const control::JobKey& job) const override {
        const auto counters = kernel_.job_counters(job);
        return counters ? std::optional(counters->packets) : std::nullopt;
    }

  private:
    void write_members(const control::ChannelKey& channel) {
        std::vector<control::PassedMember> members;
        for (const auto& [number, member] : members_[channel]) members.push_back(member);
        kernel_.set_members(channel.of_job(), groups_.at(channel), members);
    }

    KernelTable& kernel_;
    std::map<control::ChannelKey, std::uint64_t> groups_;  // numbers that the kernel knows
    // Of the channels in `groups_`, by number.
    std::map<control::ChannelKey, std::map<std::uint16_t, control::PassedMember>> members_;
};

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
      plane_(std::make_unique<KernelPlane>(*kernel_)),
      jobs_(*plane_, config.jobs, config.hold, config.level,
            {.aggregators = aggregators_of(config), .change = config.ageing}) {
    jobs_.set_tenants(config.tenants);
    if (config.link_rates) marks_.emplace(*kernel_, *config.link_rates);
}

void Agent::set_tenants(std::shared_ptr<const control::Tenants> tenants) {
    const std::scoped_lock lock(mutex_);
    jobs_.set_tenants(std::move(tenants));
}

void Agent::commit() {
    std::unique_lock lock(mutex_);
    jobs_.take_over(net::now());
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
        static_cast<void>(filter(interface, FilterPlace::arriving, without_copies_));
        if (filter(interface, FilterPlace::leaving, missing_) && marks_) marks_->add(interface);
    }
    return {};
}

// False: the kernel refuses, and `refusals` says why.
bool Agent::filter(const std::string& interface, FilterPlace place, std::vector<std::string>& refusals) {
    const bool leaves = place == FilterPlace::leaving;
    auto attached =
        FilterAttachment::attach(interface, leaves ? kernel_->egress_descriptor() : kernel_->copy_descriptor(), place);
    if (attached) filters_.push_back(*attached);
    if (!attached) refusals.push_back(to_string(attached.error()));
    return attached.has_value();
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
    for (const FilterAttachment& attachment : filters_) attachment.detach();
    if (remain.empty()) kernel_->unpin();
    return remain;
}

void Agent::undo() {
    end_work();
    for (const Attachment& attachment : attachments_) {
        if (!attachment.replaced()) static_cast<void>(attachment.detach());
    }
    for (const FilterAttachment& attachment : filters_) {
        if (!attachment.replaced()) attachment.detach();
    }
    if (!kernel_->took_over()) kernel_->unpin();
}

void Agent::run() {
    if (config_.enter_thread) config_.enter_thread();
    Time next{};
    const auto poll = [&](Time now) {
        jobs_.poll(now);
        if (marks_) marks_->poll(now);
        next = now + longest_wait;
    };
    while (!stopping_) {
        kernel_->read_queued_messages(longest_wait, [&](const auto& message) {
            const std::scoped_lock lock(mutex_);
            const Time now = net::now();
            jobs_.handle_message(message, now);
            if (now >= next) poll(now);  // a flood may leave no pause between messages
        });
        const std::scoped_lock lock(mutex_);
        poll(net::now());
    }
}

client::ShardReport Agent::snapshot() const {
    const std::scoped_lock lock(mutex_);
    const KernelCounters counters = kernel_->counters();
    KernelCounters copied;
    for (const control::AdmittedJob& job : kernel_->jobs()) {
        const auto of_job = kernel_->job_counters({job.job, job.token});
        if (of_job) copied.copied_bytes += of_job->copied_bytes, copied.uncopied += of_job->uncopied;
    }
    client::ShardReport snapshot;
    snapshot.address = to_string(wire::Address());  // it has none
    snapshot.aggregators = aggregators_of(config_);
    snapshot.packets = counters.packets;
    snapshot.slices = client::slices_in(jobs_.slices());
    snapshot.kernel = {.lanes = ATP_XDP_LANES,
                       .level = config_.level,
                       .interfaces = {},
                       .passing_jobs = jobs_.passing(),
                       .without_release = missing_,
                       .without_copies = without_copies_,
                       .marks = marks_ ? marks_->report() : std::vector<client::MarkReport>{},
                       .oversized = counters.oversized,
                       .damaged = counters.damaged,
                       .not_admitted = jobs_.not_admitted(),
                       .copied_bytes = copied.copied_bytes,
                       .results_not_copied = copied.uncopied};
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
