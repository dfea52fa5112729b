// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "control/gatekeeper.h"
#include "control/member_session.h"
#include "control/session_code.h"
#include "control/tenants.h"
#include "wire/address.h"
#include "wire/joining_message.h"

namespace atp::control {

struct SwitchCodesConfig {
    std::shared_ptr<const Tenants> tenants{};               // nullptr or none: the switch asks nobody for a key
    std::shared_ptr<const crypto::TenantKey> parent_key{};  // with which it joins its parent; nullptr: none
    Secret secret{};                                        // random, new at each start, equal in all threads
    Duration hold{};                                        // members are silent for no longer, and neither are parents
};

// The codes of a switch: it believes members with a key of its tenants only, proves to them what it answers, and joins
// its parents as a member with a key itself. An open switch without a key for its parent passes all messages unchanged.
//
// Nothing is kept of a JOIN before its code is right. Then the session is, for as long as the tree has that member.
//
// Ownership: shares the tenants and keys.
// Calling order: check_*() for each message, before anything else believes it, and after the cookie of a JOIN; encode()
//   for what is sent. Time does not decrease.
// Threads: none.
// Failure: a message without a right code changes nothing.
class SwitchCodes {
  public:
    static constexpr std::size_t most_sessions = std::size_t{1} << 16U;

    explicit SwitchCodes(SwitchCodesConfig config);

    [[nodiscard]] bool is_open() const { return control::is_open(config_.tenants.get()); }
    // What a RETRY tells of this switch.
    [[nodiscard]] Introduction introduction() const;
    [[nodiscard]] Duration cookie_period() const {
        return is_open() ? Gatekeeper::cookie_period : Gatekeeper::short_period(config_.hold);
    }
    // From now on. Sessions of keys that are gone go on.
    void set_tenants(std::shared_ptr<const Tenants> tenants) { config_.tenants = std::move(tenants); }

    struct JoinCheck {
        bool believed = false;
        Proof proof{};
        std::string problem{};  // not believed: for the operator, never for the sender
    };
    [[nodiscard]] JoinCheck check_join(const wire::Join& join, std::span<const std::byte> bytes, Time now);
    [[nodiscard]] bool check_leave(const wire::Leave& leave, std::span<const std::byte> bytes) const;
    struct AnswerCheck {
        bool believed = false;
        std::string problem{};  // the parent proves no key, and has not for so long that the channel must end
    };
    // A JOINED, REFUSED or RETRY of a parent.
    [[nodiscard]] AnswerCheck check_answer(std::span<const std::byte> bytes, Time now);
    // After the tree took or refused a JOIN that was believed.
    void settle(const wire::Join& join, bool is_member, Time now);

    [[nodiscard]] std::size_t sessions() const { return children_.size(); }

    // Without a member's session, and of an open switch: like wire::encode().
    [[nodiscard]] std::size_t encode(const wire::JoiningMessage& message, const wire::Address& to,
                                     const Gatekeeper& gatekeeper, std::span<std::byte> bytes, std::size_t padded_bytes,
                                     Time now);

  private:
    // A process of a member, in one channel.
    struct MemberId {
        ChannelKey channel{};
        std::uint64_t nonce = 0;

        auto operator<=>(const MemberId&) const = default;
    };
    struct ChildSession {
        std::uint32_t key = 0;
        std::uint32_t charged = 0;  // id of the tenant's key
        SessionCode code;
        Time until{};
    };
    struct ParentSession {
        MemberSession session;
        Time until{};
        Time unproven_since = never;
    };

    [[nodiscard]] JoinCheck check_new(const MemberId& id, const wire::Coded<wire::JoinCode>& coded, Time now);
    [[nodiscard]] const Tenant* tenant_of(std::uint32_t key) const;
    [[nodiscard]] Proof proof_of(std::uint32_t key, std::uint32_t charged) const;
    [[nodiscard]] MemberSession* session_with_parent(const wire::JoiningMessage& message, Time now);
    [[nodiscard]] std::vector<MemberKey> keys_for_parent(const ChannelKey& channel) const;
    [[nodiscard]] std::size_t encode_down(const wire::JoiningMessage& message, const wire::Address& to,
                                          const Gatekeeper& gatekeeper, std::span<std::byte> bytes,
                                          std::size_t padded_bytes, Time now) const;
    void forget_expired(Time now);

    SwitchCodesConfig config_;
    std::uint64_t boot_;
    std::map<MemberId, ChildSession> children_;
    std::map<ChannelKey, ParentSession> parents_;
    Time sweep_next_{};
};

}  // namespace atp::control
