// SPDX-License-Identifier: Apache-2.0
#include "endpoint/node_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "wire/packet.h"

namespace atp::endpoint {

NodeMachine::NodeMachine(const NodeMachineConfig& config) : config_(config) { config_.self.id = config.id; }

NodeTask NodeMachine::handle_message(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn,
                                     wire::Outbox& out) {
    using wire::ControlType;
    if (const auto version = wire::foreign_version(bytes)) {
        refuse_version(*version, bytes, from, out);
        return {};
    }
    const auto type = wire::control_type(bytes);
    if (type == ControlType::hello) {
        if (const auto hello = wire::decode<wire::Hello>(bytes)) {
            ++counters_.hellos;
            answer_hello(*hello, bytes.size(), from, ecn, out);
            return {};
        }
    } else if (type == ControlType::stats) {
        if (const auto stats = wire::decode<wire::Stats>(bytes)) return handle_stats(*stats, bytes.size(), from, out);
    } else if (type == ControlType::join || type == ControlType::leave || type == ControlType::joined ||
               type == ControlType::refused || type == ControlType::retry) {
        if (const auto shard = shard_of(bytes)) return {.kind = NodeTask::Kind::deliver, .shard = *shard};
    }
    ++counters_.ignored;
    return {};
}

// All messages of a channel begin with nonce, job, token and channel.
std::optional<std::uint32_t> NodeMachine::shard_of(std::span<const std::byte> bytes) const {
    constexpr std::size_t job_at = wire::control_prefix_bytes + 8;
    constexpr std::size_t channel_at = job_at + 4 + 8;
    if (bytes.size() < channel_at + 2) return std::nullopt;
    const std::uint32_t job = wire::load_u32(bytes.data() + job_at);
    const std::uint16_t channel = wire::load_u16(bytes.data() + channel_at);
    return mix(mix(job) + channel) % config_.shards;
}

void NodeMachine::refuse_version(std::uint8_t version, std::span<const std::byte> question, const wire::Address& to,
                                 wire::Outbox& out) {
    wire::Refused refused{
        .nonce = wire::nonce_of(question).value_or(0),
        .reason = wire::Refusal::version,
        // errors.md, forms, version mismatch: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
        .text = fmt::format("this switch ({}) speaks version {} of the protocol, the sender version {}",
                            config_.software, wire::control_version & 0xFU, version & 0xFU)};
    // A question of another version may be too short for the text.
    std::array<std::byte, 1024> bytes{};
    if (wire::encode(refused, bytes) > question.size()) refused.text.clear();
    answer(refused, to, question.size(), wire::Ecn::not_capable, out);
}

void NodeMachine::answer_hello(const wire::Hello& hello, std::size_t question_bytes, const wire::Address& to,
                               wire::Ecn ecn, wire::Outbox& out) {
    if (parent_ != nullptr && !parent_->answers()) {
        const wire::Refused refused{
            .nonce = hello.nonce,
            .reason = wire::Refusal::parent,
            .text = fmt::format(
                // errors.md, refused: the root does not run, or a firewall is between the switches
                "this switch runs, but its parent {} does not answer: start the parent, or correct --parent",
                to_string(config_.parent))};
        answer(refused, to, question_bytes, wire::Ecn::not_capable, out);
        return;
    }
    wire::Welcome welcome{.nonce = hello.nonce,
                          .received_bytes = static_cast<std::uint32_t>(question_bytes),
                          .path = {config_.self},
                          .software = config_.software};
    if (parent_ != nullptr) welcome.path.insert(welcome.path.end(), parent_->path().begin(), parent_->path().end());
    // At least as long as the question, and with its ECN bits: both directions then carry them.
    answer(welcome, to, question_bytes, ecn, out, question_bytes);
}

NodeTask NodeMachine::handle_stats(const wire::Stats& stats, std::size_t question_bytes, const wire::Address& from,
                                   wire::Outbox& out) {
    const ReportRequest request{.stats = stats, .from = from, .bytes = question_bytes};
    if (stats.snapshot == 0) {
        request_ = request;
        return {.kind = NodeTask::Kind::take_report};
    }
    const KeptReport& kept = reports_[stats.snapshot % kept_reports];
    if (kept.number == stats.snapshot) {
        answer_stats(request, kept, out);
    } else {
        ++counters_.ignored;
    }
    return {};
}

void NodeMachine::handle_report(std::string text, wire::Outbox& out) {
    if (!request_) return;
    if (next_report_ == 0) ++next_report_;  // 0 asks for a new report
    KeptReport& kept = reports_[next_report_ % kept_reports];
    kept = {.number = next_report_++, .text = std::move(text)};
    answer_stats(*request_, kept, out);
    request_.reset();
}

void NodeMachine::answer_stats(const ReportRequest& request, const KeptReport& kept, wire::Outbox& out) {
    const std::size_t parts = (kept.text.size() + wire::report_part_bytes - 1) / wire::report_part_bytes;
    if (request.stats.part >= parts) {
        ++counters_.ignored;
        return;
    }
    const wire::Report report{
        .nonce = request.stats.nonce,
        .snapshot = kept.number,
        .part = request.stats.part,
        .parts = static_cast<std::uint16_t>(parts),
        .text = kept.text.substr(request.stats.part * wire::report_part_bytes, wire::report_part_bytes)};
    answer(report, request.from, request.bytes, wire::Ecn::not_capable, out);
}

template <class Message, class... Padding>
void NodeMachine::answer(const Message& message, const wire::Address& to, std::size_t question_bytes, wire::Ecn ecn,
                         wire::Outbox& out, Padding... padding) {
    constexpr std::size_t longest_unpadded = 2 * wire::report_part_bytes;
    const std::span<std::byte> room = out.reserve(std::max(question_bytes, longest_unpadded));
    if (room.empty()) {
        ++counters_.no_room;
        return;
    }
    const std::size_t size = wire::encode(message, room, padding...);
    if (size == 0 || size > question_bytes) {
        ++counters_.too_long;
        return;
    }
    out.commit(size, to, ecn);
    ++counters_.answered;
}

}  // namespace atp::endpoint
