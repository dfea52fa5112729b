// SPDX-License-Identifier: Apache-2.0
// Members with and without keys, a switch with tenants that restarts, and somebody who reads all their messages,
// repeats them, changes them and makes up others. For any order of all this, the switch believes only JOINs and LEAVEs
// that a member made at this process of the switch, for the tenant whose key it has, and a member believes only answers
// that the switch made for it. A switch in the path with the file of tenants charges none but the tenant of this
// member. In the end, each member with a key of the switch still joins.
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "control/charged_key.h"
#include "control/gatekeeper.h"
#include "control/member_session.h"
#include "control/switch_codes.h"
#include "input.h"
#include "require.h"
#include "wire/message_code.h"

namespace atp::fuzz {
namespace {

using control::MemberSession;
using Belief = MemberSession::Belief;

constexpr std::size_t most_steps = 300;
constexpr Duration hold = std::chrono::seconds(3);
constexpr std::size_t int32_path_at = 122;  // in a JOIN: a switch in the path may set it

crypto::TenantKey key_of_tenant(std::uint32_t id, std::string tenant) {
    crypto::TenantKey key{.id = id, .tenant = std::move(tenant)};
    key.key.bytes().front() = static_cast<std::byte>(id);
    return key;
}

// What a code proves of a message; nullopt: it has none.
template <class Part>
std::optional<Bytes> proven_part(const Bytes& bytes) {
    const auto coded = wire::code_of<Part>(bytes);
    if (!coded) return std::nullopt;
    Bytes part(coded->covered.begin(), coded->covered.end());
    if (wire::control_type(bytes) == wire::ControlType::join) part.at(int32_path_at) = std::byte{0};
    part.insert(part.end(), coded->part.code.begin(), coded->part.code.end());
    return part;
}
std::optional<Bytes> proven_part(const Bytes& bytes) {
    switch (wire::control_type(bytes).value_or(wire::ControlType::retry)) {
        case wire::ControlType::join: return proven_part<wire::JoinCode>(bytes);
        case wire::ControlType::joined: return proven_part<wire::JoinedCode>(bytes);
        default: return proven_part<wire::PlainCode>(bytes);
    }
}

wire::Join join_of(std::uint64_t nonce) {
    wire::Join join;
    join.nonce = nonce;
    join.terms.job = 5, join.terms.token = 6;
    join.terms.lanes = 8, join.terms.window_log2 = 4, join.terms.aggregators = 16;
    join.terms.mask1 = 1, join.terms.scale = 1;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    return join;
}

class Story {
  public:
    explicit Story(Input& input) : input_(input) {
        const std::array keys{key_of_tenant(7, "vision"), key_of_tenant(8, "speech"), key_of_tenant(9, "unknown")};
        std::vector<control::Tenant> tenants;
        for (const crypto::TenantKey& key : keys) {
            if (key.id != 9) tenants.push_back({.name = key.tenant, .keys = {key_for_switch(key, "leaf")}});
            const auto shared = std::make_shared<const crypto::TenantKey>(key);
            const std::uint64_t nonce = 1000 + members_.size();
            members_.push_back({.tenant = key.id == 9 ? "" : key.tenant,
                                .key = key.id,
                                .nonce = nonce,
                                .session = MemberSession({{.key = shared}}, nonce, control::key_of(join_of(nonce)))});
        }
        tenants_ = std::make_shared<const control::Tenants>(std::move(tenants));
        restart();
    }

    void run() {
        for (std::size_t step = 0; step < most_steps && !input_.empty(); ++step) take_step();
        now_ += 10 * hold;
        for (std::size_t member = 0; member < members_.size(); ++member) {
            // A session that is proven is tried in turn with one that a RETRY proposes.
            for (int attempt = 0; attempt < 3; ++attempt) {
                ask(member);
                join(member);
                answer(member);
            }
            require(members_[member].joined_at == process_ || members_[member].tenant.empty(),
                    "a member with a key joins in the end");
            require(members_[member].tenant.empty() || members_[member].session.is_proven(),
                    "a member with a key believes its switch in the end");
        }
    }

  private:
    struct Member {
        std::string tenant;  // empty: the switch has not this key
        std::uint32_t key = 0;
        std::uint64_t nonce = 0;
        MemberSession session;
        std::uint32_t epoch = 0;
        unsigned joined_at = 0;  // process of the switch that believed its last JOIN; 0: none
    };
    // Who made a message, at which process of the switch.
    struct Origin {
        std::size_t member = 0;
        unsigned process = 0;
    };

    void take_step() {
        const std::size_t member = input_.below(static_cast<std::uint32_t>(members_.size()));
        switch (input_.below(12)) {
            case 0: now_ += std::chrono::milliseconds(20 * input_.byte()); break;
            case 1: ask(member); break;
            case 2: join(member); break;
            case 3: answer(member); break;
            case 4: leave(member); break;
            case 5: refuse(member); break;
            case 6: restart(); break;
            case 7: deliver_anywhere(input_.some_bytes(200)); break;
            case 8: deliver_anywhere(spliced()); break;
            case 9: deliver_anywhere(changed()); break;
            default: deliver_anywhere(recorded()); break;
        }
    }

    void restart() {
        const Secret secret{++process_, 77};
        codes_ = std::make_unique<control::SwitchCodes>(
            control::SwitchCodesConfig{.tenants = tenants_, .secret = secret, .hold = hold});
        gatekeeper_ = std::make_unique<control::Gatekeeper>(secret, std::vector<control::AddressRange>{},
                                                            codes_->introduction(), codes_->cookie_period());
    }

    Bytes encoded_down(const wire::JoiningMessage& message) {
        Bytes bytes(2048);
        bytes.resize(codes_->encode(message, address_, *gatekeeper_, bytes, 0, now_));
        return bytes;
    }
    Bytes encoded_up(Member& member, const wire::JoiningMessage& message) {
        Bytes bytes(2048);
        bytes.resize(member.session.encode(message, bytes, 0));
        return bytes;
    }
    // The one who reads all keeps it.
    void send(std::size_t member, bool up, const Bytes& bytes) {
        record_.push_back(bytes);
        if (const auto part = proven_part(bytes)) (up ? made_up_ : made_down_)[*part] = {member, process_};
        if (up) give_switch(bytes);
        if (!up) give_member(member, bytes);
    }

    void ask(std::size_t member) {
        wire::Join join = join_of(members_[member].nonce);
        join.epoch = ++members_[member].epoch;
        if (const auto retry = gatekeeper_->handle_join(join, address_, now_)) {
            send(member, false, encoded_down(*retry));
            cookie_ = retry->cookie;
        }
    }
    void join(std::size_t member) {
        wire::Join join = join_of(members_[member].nonce);
        join.epoch = ++members_[member].epoch;
        join.cookie = cookie_;
        send(member, true, encoded_up(members_[member], join));
    }
    void answer(std::size_t member) {
        const wire::Join join = join_of(members_[member].nonce);
        send(member, false,
             encoded_down(wire::Joined{.nonce = join.nonce,
                                       .job = join.terms.job,
                                       .token = join.terms.token,
                                       .epoch = members_[member].epoch,
                                       .number = ++number_}));
    }
    void leave(std::size_t member) {
        const wire::Join join = join_of(members_[member].nonce);
        send(member, true,
             encoded_up(members_[member], wire::Leave{.nonce = join.nonce,
                                                      .job = join.terms.job,
                                                      .token = join.terms.token,
                                                      .epoch = ++members_[member].epoch}));
    }
    void refuse(std::size_t member) {
        const wire::Join join = join_of(members_[member].nonce);
        send(member, false,
             encoded_down(wire::Refused{.nonce = join.nonce,
                                        .job = join.terms.job,
                                        .token = join.terms.token,
                                        .reason = wire::Refusal::full,
                                        .text = "full"}));
    }

    Bytes recorded() {
        const std::size_t number = input_.word() % 1024;
        return record_.empty() ? Bytes() : record_[number % record_.size()];
    }
    Bytes changed() {
        Bytes bytes = recorded();
        for (std::uint32_t changes = 1 + input_.below(3); changes != 0 && !bytes.empty(); --changes) {
            const std::size_t at =
                input_.below(2) == 0 ? input_.byte() : bytes.size() - 1 - input_.byte() % bytes.size();
            bytes[at % bytes.size()] ^= std::byte{input_.byte()};
        }
        return bytes;
    }
    // The first bytes of one message, and the last ones of another.
    Bytes spliced() {
        Bytes bytes = recorded();
        const Bytes other = recorded();
        const std::size_t from = bytes.empty() ? 0 : input_.word() % bytes.size();
        if (other.size() > from) {
            bytes.resize(from);
            bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        }
        return bytes;
    }
    void deliver_anywhere(const Bytes& bytes) {
        give_switch(bytes);
        for (std::size_t member = 0; member < members_.size(); ++member) give_member(member, bytes);
    }

    void give_switch(const Bytes& bytes) {
        if (const auto join = wire::decode<wire::Join>(bytes)) {
            const auto check = codes_->check_join(*join, bytes, now_);
            if (check.believed) {
                const Origin origin = origin_of(bytes, made_up_);
                Member& member = members_[origin.member];
                require(join->nonce == member.nonce, "a JOIN is of the member that made it");
                require(origin.process == process_, "a JOIN counts at no other process of the switch");
                require(check.proof.tenant != nullptr && check.proof.tenant->name == member.tenant,
                        "a JOIN is of the tenant whose key its member has");
                member.joined_at = process_;
            }
        }
        const auto leave = wire::decode<wire::Leave>(bytes);
        if (leave && codes_->check_leave(*leave, bytes)) {
            require(origin_of(bytes, made_up_).process == process_, "a LEAVE counts at no other process of the switch");
        }
        require(codes_->sessions() <= members_.size(), "a session is kept only of a member with a key");
    }
    void give_member(std::size_t number, const Bytes& bytes) {
        Member& member = members_[number];
        if (const auto joined = wire::decode<wire::Joined>(bytes)) {
            const std::uint32_t charged = control::charged_key(*tenants_, *joined, bytes);
            require(charged == 0 || charged == members_[origin_of(bytes, made_down_).member].key,
                    "a switch in the path charges nobody but the tenant of the member that was answered");
        }
        if (member.session.handle_message(bytes) != Belief::believed) return;
        if (wire::control_type(bytes) == wire::ControlType::retry) return;  // only proposes a session
        require(origin_of(bytes, made_down_).member == number, "a member believes only what is for it");
        require(!member.tenant.empty(), "a member without a key of the switch believes nothing");
    }
    static Origin origin_of(const Bytes& bytes, const std::map<Bytes, Origin>& made) {
        const auto part = proven_part(bytes);
        require(part.has_value(), "what is believed has a code");
        const auto found = made.find(*part);
        require(found != made.end(), "what is believed was made with its key");
        return found->second;
    }

    Input& input_;
    std::vector<Member> members_;
    std::shared_ptr<const control::Tenants> tenants_;
    std::unique_ptr<control::SwitchCodes> codes_;
    std::unique_ptr<control::Gatekeeper> gatekeeper_;
    const wire::Address address_ = *wire::Address::parse("10.0.0.2:5000");
    std::vector<Bytes> record_;
    std::map<Bytes, Origin> made_up_;
    std::map<Bytes, Origin> made_down_;
    std::uint64_t cookie_ = 1;
    std::uint32_t number_ = 0;
    unsigned process_ = 0;
    Time now_{std::chrono::seconds(100)};
};

}  // namespace

void run(Input& input) { Story(input).run(); }

}  // namespace atp::fuzz
