// SPDX-License-Identifier: Apache-2.0
#include "endpoint/node_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "control/channel_key.h"
#include "wire/packet.h"

namespace atp::endpoint {

NodeMachine::NodeMachine(const NodeMachineConfig& config)
    : config_(config), gatekeeper_(config.secret), limit_(config.secret) {
    config_.self.id = config.id;
}

NodeTask NodeMachine::handle_message(const ControlMessage& message, wire::Outbox& out, Time now) {
    using wire::ControlType;
    const auto version = wire::foreign_version(message.bytes);
    const auto type = wire::control_type(message.bytes);
    const bool asks = version || type == ControlType::hello || type == ControlType::stats;
    if (asks && !limit_.admit(message.from, now)) {
        ++counters_.limited;
        return {};
    }
    if (version) {
        refuse_version(*version, message, out);
        return {};
    }
    if (type == ControlType::hello) {
        if (const auto hello = wire::decode<wire::Hello>(message.bytes)) {
            ++counters_.hellos;
            answer_hello(*hello, message, out);
            return {};
        }
    } else if (type == ControlType::stats) {
        if (const auto stats = wire::decode<wire::Stats>(message.bytes)) {
            return handle_stats(*stats, message, out, now);
        }
    } else if (type == ControlType::join || type == ControlType::leave || type == ControlType::joined ||
               type == ControlType::refused || type == ControlType::retry) {
        if (const auto shard = shard_of(message.bytes)) return {.kind = NodeTask::Kind::deliver, .shard = *shard};
    }
    ++counters_.ignored;
    return {};
}

std::optional<std::uint32_t> NodeMachine::shard_of(std::span<const std::byte> bytes) const {
    const auto key = control::key_of_message(bytes);
    if (!key) return std::nullopt;
    return mix(mix(key->job) + key->channel) % config_.shards;
}

void NodeMachine::refuse_version(std::uint8_t version, const ControlMessage& question, wire::Outbox& out) {
    wire::Refused refused{
        .nonce = wire::nonce_of(question.bytes).value_or(0),
        .reason = wire::Refusal::version,
        // errors.md, forms, version mismatch: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
        .text = fmt::format("this switch ({}) speaks version {} of the protocol, the sender version {}",
                            config_.software, wire::control_version & 0xFU, version & 0xFU)};
    // A question of another version may be too short for the text.
    std::array<std::byte, 1024> bytes{};
    if (wire::encode(refused, bytes) > question.length) refused.text.clear();
    answer(refused, question.from, question.length, wire::Ecn::not_capable, out);
}

void NodeMachine::answer_hello(const wire::Hello& hello, const ControlMessage& question, wire::Outbox& out) {
    if (parent_ != nullptr && !parent_->answers()) {
        const wire::Refused refused{
            .nonce = hello.nonce,
            .reason = wire::Refusal::parent,
            .text = fmt::format(
                // errors.md, refused: the root does not run, or a firewall is between the switches
                "this switch runs, but its parent {} does not answer: start the parent, or correct --parent",
                to_string(config_.parent))};
        answer(refused, question.from, question.length, wire::Ecn::not_capable, out);
        return;
    }
    wire::Welcome welcome{.nonce = hello.nonce,
                          .received_bytes = static_cast<std::uint32_t>(question.length),
                          .path = {config_.self},
                          .software = config_.software};
    if (parent_ != nullptr) welcome.path.insert(welcome.path.end(), parent_->path().begin(), parent_->path().end());
    // As long as the question, and with its ECN bits: both directions then carry them. No link but loopback carries
    // more than that limit, and a switch should not reflect more.
    answer(welcome, question.from, question.length, question.ecn, out,
           std::min(question.length, wire::longest_welcome_bytes));
}

NodeTask NodeMachine::handle_stats(const wire::Stats& stats, const ControlMessage& question, wire::Outbox& out,
                                   Time now) {
    if (const auto retry = gatekeeper_.handle_stats(stats, question.from, now)) {
        answer(*retry, question.from, question.length, wire::Ecn::not_capable, out);
        return {};
    }
    const ReportRequest request{.stats = stats, .from = question.from, .bytes = question.length};
    if (stats.snapshot == 0) {
        if (reports_.has_room(now)) return request_report(request, now);
        answer_stats(request, reports_.newest(), out);
    } else if (const KeptReports::KeptReport* const kept = reports_.find(stats.snapshot)) {
        answer_stats(request, *kept, out);
    } else {
        ++counters_.ignored;
    }
    return {};
}

// A question that is repeated has the nonce of the first.
NodeTask NodeMachine::request_report(const ReportRequest& request, Time now) {
    const bool waits = std::ranges::any_of(waiting_, [&](const ReportRequest& other) {
        return other.stats.nonce == request.stats.nonce && other.from == request.from;
    });
    if (waits || waiting_.size() == most_waiting) {
        ++counters_.ignored;
    } else {
        waiting_.push_back(request);
    }
    return handle_timeout(now);
}

NodeTask NodeMachine::handle_timeout(Time now) {
    if (now < poll_timeout()) return {};
    taking_ = waiting_.size();
    next_report_ = now + report_interval;
    return {.kind = NodeTask::Kind::take_report};
}

void NodeMachine::handle_report(std::string text, wire::Outbox& out, Time now) {
    if (taking_ == 0) return;
    const KeptReports::KeptReport& kept = reports_.add(std::move(text), now);
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(taking_);
    std::for_each(waiting_.begin(), end, [&](const ReportRequest& request) { answer_stats(request, kept, out); });
    waiting_.erase(waiting_.begin(), end);
    taking_ = 0;
}

void NodeMachine::answer_stats(const ReportRequest& request, const KeptReports::KeptReport& kept, wire::Outbox& out) {
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
    const std::span<std::byte> room =
        out.reserve(std::max(std::min(question_bytes, wire::longest_welcome_bytes), longest_unpadded));
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
