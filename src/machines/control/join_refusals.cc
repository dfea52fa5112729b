// SPDX-License-Identifier: Apache-2.0
// How a tree refuses all members of a channel. Messages of another version do not come here: endpoint/node_machine.cc
// refuses them.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "control/join_tree.h"

namespace atp::control {
inline namespace ATP_VARIANT {

void JoinTree::could_not_open(const ChannelKey& key, std::string why) {
    Branch* branch = find(key);
    if (branch == nullptr) return;
    ++counters_.refused;
    refuse_all(*branch,
               {.job = key.job, .token = key.token, .channel = key.channel, .reason = wire::Refusal::full, .text = why},
               never);
    close(*branch, std::move(why));
}

void JoinTree::handle_refused(const wire::Refused& refused, const wire::Address& from, Time now) {
    Branch* branch = find(key_of(refused));
    if (branch == nullptr || !is_of_parent(*branch, refused.nonce, from)) {
        ++counters_.forged;
        return;
    }
    wire::Refused passed_on = refused;
    passed_on.text = fmt::format("{} (sent by {})", refused.text, to_string(from));
    const bool may_pass = refused.reason == wire::Refusal::full || refused.reason == wire::Refusal::place;
    if (!may_pass) bar(passed_on, now);
    end_refused(*branch, std::move(passed_on), now, from);
}

// One text for all that may be wrong: whoever guesses ids of keys, or jobs, learns nothing.
void JoinTree::refuse_unproven(const wire::Join& join, const wire::Address& from, std::string why, Time now) {
    ++counters_.unproven;
    outbox_.push_back(
        {from, wire::Refused{.nonce = join.nonce,
                             .job = join.terms.job,
                             .token = join.terms.token,
                             .channel = join.terms.channel,
                             .reason = wire::Refusal::key,
                             // errors.md, refused: the switch asks for keys, and this job has none of them
                             .text = "no such job or key"}});
    if (now < unproven_next_) return;
    unproven_next_ = now + timing.refresh;
    report({.kind = TreeNotice::Kind::job_refused,
            .job = join.terms.job,
            .channel = join.terms.channel,
            .level = join.level,
            .address = from,
            .reason = std::move(why)});
}

void JoinTree::give_up_parent(const ChannelKey& key, const std::string& why, Time now) {
    Branch* branch = find(key);
    if (branch == nullptr || branch->hosts) return;
    // errors.md, refused: the parent asks for another key, or for none
    std::string text = fmt::format("the parent {} proves no key of this job: {}", to_string(branch->up), why);
    end_refused(*branch,
                {.job = key.job,
                 .token = key.token,
                 .channel = key.channel,
                 .reason = wire::Refusal::parent,
                 .text = std::move(text)},
                now, branch->up);
}

bool JoinTree::refuse_barred(const wire::Join& join, const wire::Address& from) {
    const auto barred = barred_.find(key_of(join));
    if (barred == barred_.end()) return false;
    ++counters_.refused;
    wire::Refused answer = barred->second.refused;
    answer.nonce = join.nonce;
    outbox_.push_back({from, std::move(answer)});
    return true;
}

// `branch`: of the channel of this JOIN; nullptr: none.
void JoinTree::refuse(const wire::Join& join, const wire::Address& from, const Proof& proof, Objection objection,
                      Branch* branch, Time now) {
    ++counters_.refused;
    report({.kind = TreeNotice::Kind::job_refused,
            .job = join.terms.job,
            .channel = join.terms.channel,
            .level = join.level,
            .address = from,
            .reason = objection.why.empty() ? objection.text : objection.why,
            .tenant = proof.tenant == nullptr ? std::string() : proof.tenant->name,
            .key = proof.key_id});
    const wire::Refused refused{.nonce = join.nonce,
                                .job = join.terms.job,
                                .token = join.terms.token,
                                .channel = join.terms.channel,
                                .reason = objection.reason,
                                .text = std::move(objection.text)};
    outbox_.push_back({from, refused});
    if (refused.reason != wire::Refusal::restarted) return;
    // The sums are lost for those too that have not begun.
    bar(refused, now);
    if (branch != nullptr) end_refused(*branch, refused, now);
}

void JoinTree::set_tenants(std::shared_ptr<const Tenants> tenants, Time now) {
    config_.tenants = std::move(tenants);
    apply_limits();
    if (config_.tenants != nullptr) end_revoked(now);
}

void JoinTree::set_hosts(HostLists hosts) {
    config_.servers = std::move(hosts.servers);
    config_.groups = std::move(hosts.groups);
}

// A job cannot go on without one of its members.
void JoinTree::end_revoked(Time now) {
    std::map<ChannelKey, std::uint32_t> revoked;
    for (const auto& entry : branches_) {
        entry.second->for_each_child([&](const Branch::Child& child) {
            if (config_.tenants->is_revoked(child.key)) revoked[entry.first] = child.key;
        });
    }
    for (const auto& [key, id] : revoked) {
        Branch* const branch = find(key);
        if (branch == nullptr) continue;
        ++counters_.refused;
        end_refused(*branch,
                    {.job = key.job,
                     .token = key.token,
                     .channel = key.channel,
                     .reason = wire::Refusal::terms,
                     // errors.md, refused: the switch's operator lists the key as `revoked`
                     .text = fmt::format("key {} of a member is revoked: form the job again with a new key", id)},
                    now);
    }
}

void JoinTree::end_refused(Branch& branch, wire::Refused refused, Time now, const wire::Address& culprit) {
    refuse_all(branch, refused, now);
    close(branch, std::move(refused.text), culprit);
}

// A JOIN that a member sent before it read the REFUSED would open the channel again, without that member.
void JoinTree::bar(const wire::Refused& refused, Time now) {
    if (barred_.size() >= config_.channels) return;
    barred_[key_of(refused)] = {.refused = refused, .until = now + config_.hold};
    wake_at(now + config_.hold);
}

void JoinTree::unbar_expired(Time now) {
    std::erase_if(barred_, [now](const auto& entry) { return entry.second.until <= now; });
    for (const auto& [key, barred] : barred_) wake_at(barred.until);
}

void JoinTree::refuse_all(const Branch& branch, wire::Refused refused, Time now) {
    branch.for_each_child([&](const Branch::Child& child) {
        refused.nonce = child.nonce;
        outbox_.push_back({child.address, refused});
        if (now != never) repeat_last(now);
    });
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
