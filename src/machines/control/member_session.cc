// SPDX-License-Identifier: Apache-2.0
#include "control/member_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

namespace atp::control {
namespace {

// errors.md, refused: the switch has no tenants, or another host answers for it
constexpr auto no_key_asked = "the switch asks for no key: give it the tenant's key, or join without one";

std::string key_missing(const std::string& name) {
    // errors.md, refused: the key is of another switch
    return fmt::format("the switch asks for a key at '{}', and there is none: write one with `atp key for`", name);
}

// nullopt: the key is for another switch.
std::optional<crypto::TenantKey> key_at(const crypto::TenantKey& key, const std::string& name) {
    if (key.at_switch.empty()) return crypto::key_for_switch(key, name);
    if (key.at_switch == name || name == own_key_name) return key;
    return std::nullopt;
}

}  // namespace

MemberSession::Belief MemberSession::handle_message(std::span<const std::byte> bytes) {
    switch (wire::control_type(bytes).value_or(wire::ControlType::refused)) {
        case wire::ControlType::joined: return prove_joined(bytes) ? Belief::believed : Belief::stray;
        case wire::ControlType::retry:
            if (const auto retry = wire::decode<wire::Retry>(bytes)) return handle_retry(*retry);
            return Belief::stray;
        default: {  // a REFUSED, maybe of another version
            if (!wire::refusal_version(bytes)) return Belief::stray;
            if (prove_refused(bytes)) return Belief::believed;
            const auto refused = wire::decode<wire::Refused>(bytes);
            return unproven(refused ? refused->text : "the switch refused in another version");
        }
    }
}

MemberSession::Belief MemberSession::unproven(std::string why) {
    problem_ = std::move(why);
    return Belief::unproven;
}

MemberSession::Belief MemberSession::handle_retry(const wire::Retry& retry) {
    if (retry.nonce != nonce_ || key_of(retry) != channel_) return Belief::stray;
    if (retry.boot == 0 || retry.name.empty()) return unproven(no_key_asked);
    return propose(retry) ? Belief::believed : unproven(key_missing(retry.name));
}

// False: no key fits.
bool MemberSession::propose(const wire::Retry& retry) {
    if (proposed_ && proposed_->boot == retry.boot && proposed_->name == retry.name) {
        proposed_->cookie = retry.cookie;
        return true;
    }
    for (const MemberKey& each : keys_) {
        const auto key = key_at(*each.key, retry.name);
        if (!key) continue;
        proposed_ = std::make_unique<Session>(retry, *key, each.charged);
        return true;
    }
    return false;
}

bool MemberSession::prove_joined(std::span<const std::byte> bytes) {
    const auto coded = wire::code_of<wire::JoinedCode>(bytes);
    if (!coded) return false;
    // Who recorded an earlier process of this switch can propose its session, and repeat its answers.
    const auto answers = [&](const Session& session) {
        const auto joined = wire::decode<wire::Joined>(bytes);
        return joined && session.first_epoch != 0 && joined->epoch >= session.first_epoch;
    };
    if (proposed_ && proposed_->code.fits(*coded, Direction::down) && answers(*proposed_)) {
        proven_ = std::move(proposed_);
    } else if (!proven_ || !proven_->code.fits(*coded, Direction::down)) {
        return false;
    }
    proven_->cookie = coded->part.cookie;
    return true;
}

bool MemberSession::prove_refused(std::span<const std::byte> bytes) const {
    const auto coded = wire::code_of<wire::PlainCode>(bytes);
    if (!coded) return false;
    return std::ranges::any_of(std::array{proposed_.get(), proven_.get()}, [&](const Session* session) {
        return session != nullptr && session->code.fits(*coded, Direction::down);
    });
}

// However many RETRYs somebody forges, every second JOIN is one of the proven session.
MemberSession::Session* MemberSession::session_of_next_join() {
    if (!proven_) return proposed_.get();
    tried_proposed_ = proposed_ && !tried_proposed_;
    return tried_proposed_ ? proposed_.get() : proven_.get();
}

std::size_t MemberSession::encode(const wire::JoiningMessage& message, std::span<std::byte> bytes,
                                  std::size_t padded_bytes) {
    wire::JoiningMessage coded = message;
    Session* session = nullptr;
    if (auto* const join = std::get_if<wire::Join>(&coded)) {
        if (join->cookie != 0) session = session_of_next_join();
        join->cookie = session == nullptr ? 0 : session->cookie;
        if (session != nullptr && session->first_epoch == 0) session->first_epoch = join->epoch;
    } else {
        session = proven_ ? proven_.get() : proposed_.get();
    }
    std::size_t size = encode_bare(coded, bytes);
    if (size != 0 && session != nullptr) size = append_code(coded, *session, bytes, size);
    return pad(bytes, size, wire::least_bytes_of(coded, padded_bytes));
}

std::size_t MemberSession::append_code(const wire::JoiningMessage& message, const Session& session,
                                       std::span<std::byte> bytes, std::size_t size) const {
    if (std::holds_alternative<wire::Join>(message))
        return session.code.append(session.begin, Direction::up, bytes, size);
    return session.code.append(wire::PlainCode{}, Direction::up, bytes, size);
}

}  // namespace atp::control
