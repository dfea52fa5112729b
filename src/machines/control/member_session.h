// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/session_code.h"

namespace atp::control {

// A key with which a member may join.
struct MemberKey {
    std::shared_ptr<const crypto::TenantKey> key;
    std::uint32_t charged = 0;  // of a switch: id of its tenant's key; 0: the tenant of `key` itself
};

// What a member with a key, a worker or a switch below another one, proves to its switch in one channel, and what it
// believes of it.
//
// A RETRY has no code, so anybody who reads packets can forge it. It therefore only proposes a session, which JOINs try
// in turn with the proven one, until the answer to one of them has a code.
//
// Ownership: shares its keys.
// Calling order: handle_message() for what arrives, before anything else believes it; encode() for what is sent.
// Threads: none.
// Failure: what has no right code changes nothing.
class MemberSession {
  public:
    enum class Belief : std::uint8_t {
        believed,  // it is from the switch, or a RETRY that a JOIN shall answer
        unproven,  // it may be for this member: a REFUSED without a right code, or a RETRY that no key fits
        stray,     // it is for nobody here, or forged
    };

    // The first key that fits what the switch asks for counts.
    MemberSession(std::vector<MemberKey> keys, std::uint64_t nonce, const ChannelKey& channel)
        : keys_(std::move(keys)), nonce_(nonce), channel_(channel) {}

    // JOINED, REFUSED or RETRY.
    [[nodiscard]] Belief handle_message(std::span<const std::byte> bytes);
    // A JOIN or LEAVE of this member, padded like wire::encode() does. A JOIN gets the cookie of its session; without
    // one, it asks for a RETRY only.
    [[nodiscard]] std::size_t encode(const wire::JoiningMessage& message, std::span<std::byte> bytes,
                                     std::size_t padded_bytes);
    // Of the last message that was unproven.
    [[nodiscard]] const std::string& problem() const { return problem_; }
    // A message of the switch had a right code.
    [[nodiscard]] bool is_proven() const { return proven_ != nullptr; }

  private:
    struct Session {
        Session(const wire::Retry& retry, const crypto::TenantKey& key, std::uint32_t charged)
            : boot(retry.boot),
              name(retry.name),
              cookie(retry.cookie),
              code(key.key, retry.nonce, retry.boot, key_of(retry)) {
            begin.key = key.id, begin.charged = charged, begin.name = key.at_switch;
        }
        std::uint64_t boot;
        std::string name;  // of the switch
        std::uint64_t cookie;
        std::uint32_t first_epoch = 0;  // of its JOINs; 0: none was sent
        wire::JoinCode begin;           // of the codes of JOINs
        SessionCode code;
    };

    [[nodiscard]] Belief handle_retry(const wire::Retry& retry);
    [[nodiscard]] bool propose(const wire::Retry& retry);
    [[nodiscard]] bool prove_joined(std::span<const std::byte> bytes);
    [[nodiscard]] bool prove_refused(std::span<const std::byte> bytes) const;
    [[nodiscard]] Belief unproven(std::string why);
    [[nodiscard]] Session* session_of_next_join();
    [[nodiscard]] std::size_t append_code(const wire::JoiningMessage& message, const Session& session,
                                          std::span<std::byte> bytes, std::size_t size) const;

    std::vector<MemberKey> keys_;
    std::uint64_t nonce_;
    ChannelKey channel_;
    std::unique_ptr<Session> proven_;  // nullptr: no answer had a code yet
    std::unique_ptr<Session> proposed_;
    std::string problem_;
    bool tried_proposed_ = false;  // by the last JOIN
};

}  // namespace atp::control
