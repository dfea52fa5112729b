// SPDX-License-Identifier: Apache-2.0
#include "control/hello_client.h"

#include <algorithm>
#include <utility>

namespace atp::control {

HelloClient::HelloClient(const HelloClientConfig& config)
    : config_(config), nonce_(config.first_nonce), sent_at_(remembered) {}

void HelloClient::begin(const HelloSeries& series, Time now) {
    series_ = series;
    series_.group = std::max(series.group, 1U);
    begun_ = true;
    sent_ = 0;
    group_left_ = 0;
    next_ = now;
}

std::size_t HelloClient::next_bytes() const {
    return std::max<std::size_t>(sent_ == 0 ? series_.first_bytes : series_.bytes, wire::least_question_bytes);
}

std::optional<std::size_t> HelloClient::poll_transmit(std::span<std::byte> buffer, Time now) {
    if (complete()) return std::nullopt;
    if (group_left_ == 0) {
        if (now < next_) return std::nullopt;
        group_left_ = series_.group;
        next_ = now + (answers_ ? series_.refresh : series_.interval);
    }
    const std::size_t size = wire::encode(wire::Hello{.nonce = nonce_}, buffer, next_bytes());
    if (size == 0) return std::nullopt;
    sent_at_[sent_ % remembered] = now;
    ++nonce_;
    ++sent_;
    --group_left_;
    return size;
}

std::optional<HelloAnswer> HelloClient::handle_message(std::span<const std::byte> bytes, const wire::Address& from,
                                                       Time now) {
    const auto version = wire::refusal_version(bytes);
    if (!version) return welcome_of(bytes, from, now);
    HelloAnswer answer{
        .kind = HelloAnswer::Kind::refused, .version = *version, .refusal = wire::decode<wire::Refused>(bytes)};
    const auto nonce = wire::nonce_of(bytes);
    if (from != config_.peer || !nonce || !is_known(*nonce)) return std::nullopt;
    if (!answer.refusal && !answer.is_foreign()) return std::nullopt;
    return answer;
}

std::optional<HelloAnswer> HelloClient::welcome_of(std::span<const std::byte> bytes, const wire::Address& from,
                                                   Time now) {
    auto welcome = wire::decode<wire::Welcome>(bytes);
    if (!welcome || !is_known(welcome->nonce) || (!config_.any_sender && from != config_.peer)) return std::nullopt;
    answers_ = true;
    answered_at_ = now;
    path_length_ = static_cast<std::uint32_t>(std::min(welcome->path.size(), path_.size()));
    std::copy_n(welcome->path.begin(), path_length_, path_.begin());

    HelloAnswer answer{.kind = HelloAnswer::Kind::welcome, .welcome = *std::move(welcome)};
    const std::uint64_t behind = nonce_ - answer.welcome.nonce;  // 1: the last HELLO
    if (behind <= sent_) {
        answer.number = sent_ - static_cast<std::uint32_t>(behind);
        if (behind <= remembered) answer.round_trip = now - sent_at_[*answer.number % remembered];
    }
    return answer;
}

void HelloClient::handle_timeout(Time now) {
    if (!answers_ || now - answered_at_ <= config_.hold) return;
    answers_ = false;
    path_length_ = 0;
}

}  // namespace atp::control
