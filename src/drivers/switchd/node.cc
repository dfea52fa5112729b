// SPDX-License-Identifier: Apache-2.0
#include "switchd/node.h"

#include "switchd/shared_room.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <new>
#include <random>

#include "base/version.h"
#include "net/clock.h"
#include "protocol/sequence.h"
#include "wire/control.h"

namespace atp::switchd {
namespace {

constexpr std::size_t kept_reports = 8;

std::uint64_t random_id() {
    std::random_device chance;
    return (std::uint64_t{chance()} << 32U) | chance();
}

double gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

Failure no_memory(const SwitchNodeConfig& config, const std::string& why) {
    return fail(Operation::open, Reason::exhausted, "--memory",
                fmt::format("no memory for {:.1f} GB of aggregators: {}",
                            gigabytes(config.memory_bytes) + gigabytes(config.other_bytes), why));
}

// Without this check, the kernel could grant more memory than the host has. It would end the process when the switch
// clears its aggregators.
Result<void> check_memory(const SwitchNodeConfig& config) {
    struct sysinfo host {};
    if (sysinfo(&host) != 0) return {};
    const std::uint64_t present = (std::uint64_t{host.totalram} + host.totalswap) * host.mem_unit;
    if (config.memory_bytes <= present && config.other_bytes <= present - config.memory_bytes) return {};
    return no_memory(config, fmt::format("this host has {:.1f} GB including swap", gigabytes(present)));
}

}  // namespace

Result<std::unique_ptr<SwitchNode>> SwitchNode::start(const SwitchNodeConfig& config, std::function<void()> failed,
                                                      Elsewhere elsewhere) {
    if (auto fits = check_memory(config); !fits) return tl::unexpected(fits.error());
    std::unique_ptr<SwitchNode> node(new SwitchNode(config));
    node->failed_ = std::move(failed);
    node->elsewhere_ = std::move(elsewhere);
    try {
        if (auto opened = node->open_shards(); !opened) return tl::unexpected(opened.error());
    } catch (const std::bad_alloc&) {
        return no_memory(config, "the kernel refused the allocation");
    }
    SwitchNode& self = *node;
    for (std::size_t i = 0; i < node->loops_.size(); ++i) {
        node->threads_.emplace_back([&self, i] {
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

SwitchNode::SwitchNode(const SwitchNodeConfig& config) : config_(config), id_(random_id()), started_(net::now()) {}

SwitchNode::~SwitchNode() { stop(); }

Result<void> SwitchNode::open_shards() {
    const auto room = std::make_shared<SharedRoom>(config_.jobs, config_.channels);
    for (std::uint32_t i = 0; i < config_.shards; ++i) {
        net::LoopConfig loop{.spin = config_.spin, .core = std::nullopt};
        if (i < config_.cores.size()) loop.core = config_.cores[i];
        auto opened = net::EventLoop::open(loop);
        if (!opened) return tl::unexpected(opened.error());
        loops_.push_back(*std::move(opened));
        ShardDriver::Dispatch dispatch;
        if (i == 0) {
            dispatch = [this](auto bytes, const wire::Address& from, wire::Ecn ecn) {
                this->dispatch(bytes, from, ecn);
            };
        }
        auto shard = ShardDriver::open(config_, i, *loops_.back(), std::move(dispatch), room);
        if (!shard) return tl::unexpected(shard.error());
        shards_.push_back(*std::move(shard));
    }
    if (config_.parent.family() != wire::Family::none) {
        auto link = ParentLink::open(config_.parent, *loops_.front());
        if (!link) return tl::unexpected(link.error());
        parent_ = *std::move(link);
    }
    return {};
}

void SwitchNode::stop() {
    stopping_ = true;
    for (const auto& loop : loops_) loop->stop();
    for (std::thread& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
    threads_.clear();
}

std::optional<Error> SwitchNode::failure() const {
    const std::scoped_lock lock(failure_mutex_);
    return failure_;
}

// On the first shard's thread, like the functions below up to reply().
void SwitchNode::dispatch(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn) {
    if (const auto version = wire::foreign_version(bytes)) {
        refuse_version(*version, from, bytes.size());
        return;
    }
    switch (wire::control_type(bytes).value_or(wire::ControlType::report)) {
        case wire::ControlType::hello: answer_hello(bytes, from, ecn); break;
        case wire::ControlType::stats: answer_stats(bytes, from); break;
        case wire::ControlType::join:
        case wire::ControlType::leave:
        case wire::ControlType::joined:
        case wire::ControlType::refused: route_to_shard(bytes, from); break;
        default: break;
    }
}

void SwitchNode::route_to_shard(std::span<const std::byte> bytes, const wire::Address& from) {
    // All four messages begin with job, token and channel.
    constexpr std::size_t channel_at = wire::control_prefix_bytes + 8;
    if (bytes.size() < channel_at + 2) return;
    const std::uint32_t job = wire::load_u32(bytes.data() + wire::control_prefix_bytes);
    const std::uint16_t channel = wire::load_u16(bytes.data() + channel_at);
    const std::size_t shard = mix(mix(job) + channel) % shards_.size();
    shards_[shard]->deliver({from, {bytes.begin(), bytes.end()}});
}

void SwitchNode::refuse_version(std::uint8_t version, const wire::Address& to, std::size_t question_bytes) {
    std::array<std::byte, 1024> bytes{};
    wire::Refused refused{
        .reason = wire::Refusal::version,
        .text = fmt::format("this switch ({}) speaks version {} of the protocol, the sender version {}",
                            software_name(), wire::control_version & 0xFU, version & 0xFU)};
    // A question of another version may be too short for the text.
    if (wire::encode(refused, bytes) > wire::most_amplification * question_bytes) refused.text.clear();
    reply(to, {bytes.data(), wire::encode(refused, bytes)}, question_bytes);
}

void SwitchNode::answer_hello(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn) {
    const auto hello = wire::decode_hello(bytes);
    if (!hello) return;
    std::vector<std::byte> answer(std::max<std::size_t>(bytes.size(), 1024));
    if (parent_ != nullptr && !parent_->answers()) {
        const wire::Refused refused{
            .reason = wire::Refusal::parent,
            .text = fmt::format(
                "this switch runs, but its parent {} does not answer: start the parent, or correct --parent",
                to_string(config_.parent))};
        reply(from, {answer.data(), wire::encode(refused, answer)}, bytes.size());
        return;
    }
    wire::Welcome welcome{.nonce = hello->nonce,
                          .received_bytes = static_cast<std::uint32_t>(bytes.size()),
                          .path = {{.id = id_,
                                    .aggregators = std::max(config_.kernel_aggregators, aggregators_of_shard(config_)),
                                    .lanes = config_.lanes,
                                    .slots = config_.slots}},
                          .software = software_name()};
    if (parent_ != nullptr) {
        welcome.path.insert(welcome.path.end(), parent_->path().begin(), parent_->path().end());
    }
    // At least as long as the question, and with its ECN bits: both directions then carry them.
    reply(from, {answer.data(), wire::encode(welcome, answer, bytes.size())}, bytes.size(), ecn);
}

void SwitchNode::answer_stats(std::span<const std::byte> bytes, const wire::Address& from) {
    const auto stats = wire::decode_stats(bytes);
    if (!stats) return;
    if (stats->snapshot == 0) {
        shards_.front()->publish();  // publishes this thread's report; those of other threads are slightly older
        if (reports_.size() == kept_reports) reports_.erase(reports_.begin());
        reports_.push_back({next_report_++, to_json(snapshot())});
    }
    const auto found =
        stats->snapshot == 0 ? reports_.end() - 1 : std::ranges::find(reports_, stats->snapshot, &KeptReport::number);
    if (found == reports_.end()) return;
    const std::size_t parts = (found->text.size() + wire::report_part_bytes - 1) / wire::report_part_bytes;
    if (stats->part >= parts) return;
    std::array<std::byte, 2 * wire::report_part_bytes> answer{};
    const wire::Report report{
        .nonce = stats->nonce,
        .snapshot = found->number,
        .part = stats->part,
        .parts = static_cast<std::uint16_t>(parts),
        .text = found->text.substr(stats->part * wire::report_part_bytes, wire::report_part_bytes)};
    reply(from, {answer.data(), wire::encode(report, answer)}, bytes.size());
}

void SwitchNode::reply(const wire::Address& to, std::span<const std::byte> answer, std::size_t question_bytes,
                       wire::Ecn ecn) {
    if (answer.empty() || answer.size() > wire::most_amplification * question_bytes) return;
    shards_.front()->post({to, {answer.begin(), answer.end()}, ecn});
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
    client::add_parts(config_.report_parts, report.parts);
    for (const auto& shard : shards_) report.shards.push_back(shard->snapshot());
    if (elsewhere_) report.shards.push_back(elsewhere_());
    for (const client::ShardReport& shard : report.shards) report.memory_bytes += client::memory_of_kernel(shard);
    return report;
}

}  // namespace atp::switchd
