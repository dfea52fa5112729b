// SPDX-License-Identifier: Apache-2.0
// A member with a key and a switch with tenants, without machines around them.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/gatekeeper.h"
#include "control/member_session.h"
#include "control/switch_codes.h"
#include "support/control_messages.h"

namespace atp::control {

using Bytes = std::vector<std::byte>;
using Belief = MemberSession::Belief;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::uint64_t nonce = 0x2122232425262728;
inline const wire::Join a_join = testing::join_of_worker();
inline const wire::Address member_address = *wire::Address::parse("10.0.0.2:5000");
inline const Secret first_start{1, 2};
inline const Secret second_start{3, 4};

inline crypto::TenantKey tenant_key(std::uint32_t id, std::string tenant) {
    crypto::TenantKey key{.id = id, .tenant = std::move(tenant)};
    key.key.bytes().front() = static_cast<std::byte>(id);
    return key;
}
inline const crypto::TenantKey vision = tenant_key(7, "vision");
inline const crypto::TenantKey speech = tenant_key(8, "speech");
inline const crypto::TenantKey fabric = tenant_key(9, "fabric");

inline std::shared_ptr<const crypto::TenantKey> shared(const crypto::TenantKey& key) {
    return std::make_shared<const crypto::TenantKey>(key);
}

inline std::shared_ptr<const Tenants> tenants_at(const std::string& name) {
    return std::make_shared<const Tenants>(std::vector{
        Tenant{.name = "vision", .keys = {key_for_switch(vision, name)}},
        Tenant{.name = "speech", .keys = {key_for_switch(speech, name)}},
        Tenant{.name = "fabric", .keys = {key_for_switch(fabric, name)}, .fabric = true},
    });
}

// The switch named "leaf", as one process of it.
struct Switch {
    explicit Switch(const Secret& secret = first_start, std::shared_ptr<const Tenants> tenants = tenants_at("leaf"),
                    std::shared_ptr<const crypto::TenantKey> parent_key = {})
        : codes({.tenants = std::move(tenants), .parent_key = std::move(parent_key), .secret = secret, .hold = hold}),
          gatekeeper(secret, {}, codes.introduction(), codes.cookie_period()) {}

    Bytes encoded(const wire::JoiningMessage& message) {
        Bytes bytes(2048);
        bytes.resize(codes.encode(message, member_address, gatekeeper, bytes, 0, now));
        return bytes;
    }
    Bytes retry(std::uint64_t to = nonce) {
        wire::Join join = a_join;
        join.nonce = to;
        const auto retry = gatekeeper.handle_join(join, member_address, now);
        return encoded(*retry);
    }
    SwitchCodes::JoinCheck check_join(const Bytes& bytes) {
        const auto join = wire::decode<wire::Join>(bytes);
        if (!join) return {.problem = "no JOIN"};
        return codes.check_join(*join, bytes, now);
    }
    bool check_leave(const Bytes& bytes) {
        const auto leave = wire::decode<wire::Leave>(bytes);
        return leave && codes.check_leave(*leave, bytes);
    }

    static constexpr Duration hold = seconds(3);
    SwitchCodes codes;
    Gatekeeper gatekeeper;
    Time now{seconds(100)};
};

struct Member {
    explicit Member(const crypto::TenantKey& key, std::uint64_t own_nonce = nonce, std::uint32_t charged = 0)
        : session({{.key = shared(key), .charged = charged}}, own_nonce, key_of(a_join)), nonce_(own_nonce) {}

    Bytes encoded(const wire::JoiningMessage& message) {
        Bytes bytes(2048);
        bytes.resize(session.encode(message, bytes, 0));
        return bytes;
    }
    Bytes join(std::uint64_t cookie = 1) {
        wire::Join join = a_join;
        join.nonce = nonce_;
        join.cookie = cookie;
        join.epoch = ++epoch_;
        return encoded(join);
    }
    Bytes leave() { return encoded(leave_of(nonce_, ++epoch_)); }
    Belief hear(const Bytes& bytes) { return session.handle_message(bytes); }

    static wire::Leave leave_of(std::uint64_t of, std::uint32_t epoch) {
        return {.nonce = of,
                .job = a_join.terms.job,
                .token = a_join.terms.token,
                .channel = a_join.terms.channel,
                .epoch = epoch};
    }

    MemberSession session;

  private:
    std::uint64_t nonce_;
    std::uint32_t epoch_ = 0;
};

inline wire::Joined joined_message(std::uint32_t epoch = 1) {
    return {.nonce = nonce,
            .job = a_join.terms.job,
            .token = a_join.terms.token,
            .channel = a_join.terms.channel,
            .epoch = epoch,
            .number = 1,
            .ready = true};
}
inline wire::Refused refused_message() {
    return {.nonce = nonce,
            .job = a_join.terms.job,
            .token = a_join.terms.token,
            .channel = a_join.terms.channel,
            .reason = wire::Refusal::full,
            .text = "no room"};
}

// A member of tenant vision that has joined.
struct Joined {
    Joined() {
        EXPECT_EQ(member.hear(node.retry()), Belief::believed);
        first_join = member.join();
        EXPECT_TRUE(node.check_join(first_join).believed);
        answer = node.encoded(joined_message());
        EXPECT_EQ(member.hear(answer), Belief::believed);
        EXPECT_TRUE(member.session.is_proven());
    }
    Switch node;
    Member member{vision};
    Bytes first_join;
    Bytes answer;
};

}  // namespace atp::control
