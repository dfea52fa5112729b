// SPDX-License-Identifier: Apache-2.0
#include "control/switch_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "control/timing.h"

namespace atp::control {
namespace {

// A REFUSED that is sent three times, 50 ms apart.
constexpr Duration time_of_answers = 4 * timing.hurry;
// A switch asks its parent 12 times in the parent's hold time, which is 60 s at most.
constexpr Duration time_of_parents = 2 * refresh_of(std::chrono::milliseconds(wire::most_hold_ms));

// No cookie, group number or nonce of a switch is a code of so few bytes.
std::uint64_t boot_of(const Secret& secret) {
    const std::array message{std::byte{'B'}};
    return std::max<std::uint64_t>(siphash(secret, message), 1);
}

// Whose tenant has the job.
std::uint32_t charged_by(const wire::JoinCode& part) { return part.charged == 0 ? part.key : part.charged; }

std::string name_of(const Tenants& tenants) {
    std::string name = tenants.switch_name();
    return name.empty() ? std::string(own_key_name) : name;
}

bool goes_up(const wire::JoiningMessage& message) {
    return std::holds_alternative<wire::Join>(message) || std::holds_alternative<wire::Leave>(message);
}

// Nobody has proven who gets a REFUSED for lack of a key: it may answer a JOIN that somebody forged in the name of a
// member, which would believe its code.
bool is_of_nobody(const wire::JoiningMessage& message) {
    const auto* const refused = std::get_if<wire::Refused>(&message);
    return std::holds_alternative<wire::Retry>(message) ||
           (refused != nullptr && refused->reason == wire::Refusal::key);
}

ChannelKey channel_of(const wire::JoiningMessage& message) {
    return std::visit([](const auto& each) { return key_of(each); }, message);
}

std::uint64_t nonce_in(const wire::JoiningMessage& message) {
    return std::visit([](const auto& each) { return each.nonce; }, message);
}

}  // namespace

SwitchCodes::SwitchCodes(SwitchCodesConfig config) : config_(std::move(config)), boot_(boot_of(config_.secret)) {}

Introduction SwitchCodes::introduction() const {
    return is_open() ? Introduction{} : Introduction{.boot = boot_, .name = name_of(*config_.tenants)};
}

SwitchCodes::JoinCheck SwitchCodes::check_join(const wire::Join& join, std::span<const std::byte> bytes, Time now) {
    if (is_open()) return {.believed = true};
    const auto coded = wire::code_of<wire::JoinCode>(bytes);
    if (!coded) return {.problem = "it has no key"};
    const MemberId id{key_of(join), join.nonce};
    const auto known = children_.find(id);
    if (known == children_.end() || known->second.key != coded->part.key) return check_new(id, *coded, now);
    if (!known->second.code.fits(*coded, Direction::up)) {
        return {.problem = fmt::format("its code is not of key {}", coded->part.key)};
    }
    if (charged_by(coded->part) != known->second.charged) return {.problem = "it names another tenant than before"};
    known->second.until = now + 2 * config_.hold;
    return {.believed = true, .proof = proof_of(known->second.key, known->second.charged)};
}

SwitchCodes::JoinCheck SwitchCodes::check_new(const MemberId& id, const wire::Coded<wire::JoinCode>& coded, Time now) {
    const wire::JoinCode& part = coded.part;
    const auto found = config_.tenants->find(part.key);
    if (!found) return {.problem = fmt::format("key {} is unknown", part.key)};
    const bool is_own = found->key->at_switch.empty();
    if (!is_own && part.name != found->key->at_switch) {
        return {.problem = fmt::format("key {} is of another switch", part.key)};
    }
    const crypto::TenantKey key = is_own ? crypto::key_for_switch(*found->key, part.name) : *found->key;
    SessionCode code(key.key, id.nonce, boot_, id.channel);
    if (!code.fits(coded, Direction::up)) return {.problem = fmt::format("its code is not of key {}", part.key)};
    const std::uint32_t charged = charged_by(part);
    if (!found->may_join_for(charged)) {
        return {.problem = fmt::format("tenant {} may not join for others", found->tenant->name)};
    }
    if (tenant_of(charged) == nullptr)
        return {.problem = fmt::format("key {}, for which it joins, is unknown", charged)};
    forget_expired(now);
    if (children_.size() >= most_sessions) return {.problem = "too many members join"};
    children_.insert_or_assign(
        id, ChildSession{.key = part.key, .charged = charged, .code = code, .until = now + 2 * config_.hold});
    return {.believed = true, .proof = proof_of(part.key, charged)};
}

Proof SwitchCodes::proof_of(std::uint32_t key, std::uint32_t charged) const {
    return {.tenant = tenant_of(charged), .sender = key == charged ? nullptr : tenant_of(key), .key_id = key};
}

const Tenant* SwitchCodes::tenant_of(std::uint32_t key) const {
    const auto found = config_.tenants->find(key);
    return found ? found->tenant : nullptr;
}

bool SwitchCodes::check_leave(const wire::Leave& leave, std::span<const std::byte> bytes) const {
    if (is_open()) return true;
    const auto known = children_.find({key_of(leave), leave.nonce});
    const auto coded = wire::code_of<wire::PlainCode>(bytes);
    return known != children_.end() && coded && known->second.code.fits(*coded, Direction::up);
}

void SwitchCodes::settle(const wire::Join& join, bool is_member, Time now) {
    const auto known = children_.find({key_of(join), join.nonce});
    if (known != children_.end() && !is_member) known->second.until = now + time_of_answers;
}

// ----------------------------------------------------------------------------------------------------------- Upwards

// Who forges a RETRY or REFUSED cannot keep a parent from answering, so what lasts is of the parent itself.
SwitchCodes::AnswerCheck SwitchCodes::check_answer(std::span<const std::byte> bytes, Time now) {
    if (is_open() && config_.parent_key == nullptr) return {.believed = true};
    const auto channel = key_of_message(bytes);
    const auto known = channel ? parents_.find(*channel) : parents_.end();
    if (known == parents_.end()) return {};
    ParentSession& parent = known->second;
    const MemberSession::Belief outcome = parent.session.handle_message(bytes);
    if (outcome != MemberSession::Belief::unproven) return {.believed = outcome == MemberSession::Belief::believed};
    if (parent.session.is_proven()) return {};
    parent.unproven_since = std::min(parent.unproven_since, now);
    return {.problem = now - parent.unproven_since < config_.hold ? std::string() : parent.session.problem()};
}

// Servers in ranks know the tenant's own key, and switches above only those of their own tenants.
std::vector<MemberKey> SwitchCodes::keys_for_parent(const ChannelKey& channel) const {
    std::vector<MemberKey> keys;
    std::uint32_t charged = 0;
    const auto child = children_.lower_bound({channel, 0});
    if (child != children_.end() && child->first.channel == channel) {
        charged = child->second.charged;
        const auto found = config_.tenants->find(charged);
        if (found) keys.push_back({.key = std::make_shared<const crypto::TenantKey>(*found->key)});
    }
    if (config_.parent_key != nullptr) keys.push_back({.key = config_.parent_key, .charged = charged});
    return keys;
}

// nullptr: the switch joins its parents without a key.
MemberSession* SwitchCodes::session_with_parent(const wire::JoiningMessage& message, Time now) {
    if (is_open() && config_.parent_key == nullptr) return nullptr;
    const ChannelKey channel = channel_of(message);
    const std::uint64_t nonce = nonce_in(message);
    auto known = parents_.find(channel);
    if (known == parents_.end()) {
        forget_expired(now);
        if (parents_.size() >= most_sessions) return nullptr;
        MemberSession session(keys_for_parent(channel), nonce, channel);
        known = parents_.emplace(channel, ParentSession{.session = std::move(session)}).first;
    }
    known->second.until = now + time_of_parents;
    return &known->second.session;
}

// ------------------------------------------------------------------------------------------------------------- Sending

std::size_t SwitchCodes::encode(const wire::JoiningMessage& message, const wire::Address& to,
                                const Gatekeeper& gatekeeper, std::span<std::byte> bytes, std::size_t padded_bytes,
                                Time now) {
    if (!goes_up(message)) return encode_down(message, to, gatekeeper, bytes, padded_bytes, now);
    MemberSession* const session = session_with_parent(message, now);
    return session == nullptr ? wire::encode(message, bytes, padded_bytes)
                              : session->encode(message, bytes, padded_bytes);
}

// A JOINED to a group has no nonce, and so no session.
std::size_t SwitchCodes::encode_down(const wire::JoiningMessage& message, const wire::Address& to,
                                     const Gatekeeper& gatekeeper, std::span<std::byte> bytes, std::size_t padded_bytes,
                                     Time now) const {
    const auto known = children_.find({channel_of(message), nonce_in(message)});
    if (known == children_.end() || is_of_nobody(message)) {
        return wire::encode(message, bytes, padded_bytes);
    }
    const SessionCode& code = known->second.code;
    std::size_t size = encode_bare(message, bytes);
    if (size == 0) return 0;
    if (std::holds_alternative<wire::Joined>(message)) {
        const wire::JoinedCode part{.cookie = gatekeeper.cookie_of(Gatekeeper::Question::join, to, now),
                                    .boot = boot_,
                                    .key = known->second.key,
                                    .charged = known->second.charged};
        size = code.append(part, Direction::down, bytes, size);
    } else {
        size = code.append(wire::PlainCode{}, Direction::down, bytes, size);
    }
    return pad(bytes, size, wire::least_bytes_of(message, padded_bytes));
}

void SwitchCodes::forget_expired(Time now) {
    if (now < sweep_next_) return;
    sweep_next_ = now + timing.hurry;
    std::erase_if(children_, [now](const auto& each) { return each.second.until < now; });
    std::erase_if(parents_, [now](const auto& each) { return each.second.until < now; });
}

}  // namespace atp::control
