// SPDX-License-Identifier: Apache-2.0
// What a tree reports for the log of its switch.
#include <fmt/format.h>

#include "control/join_tree.h"

namespace atp::control {
inline namespace ATP_VARIANT {
namespace {

constexpr std::size_t most_notices = 1024;

// Otherwise the child is a switch.
bool is_worker(const Branch& branch, const Branch::Child& child) {
    if (branch.level == ATP_LEVELS) return false;
    return branch.level == 0 || child.unit.direct || child.unit.members != child.unit.mask0;
}

std::string name_of(const wire::Edge& edge) {
    switch (edge.kind) {
        case wire::EdgeKind::member:
        case wire::EdgeKind::path_mtu: return fmt::format("member {} of unit {}", edge.member, edge.unit);
        case wire::EdgeKind::leaf: return fmt::format("the switch of unit {}", edge.unit);
        case wire::EdgeKind::parent: return fmt::format("the parent of the switch of unit {}", edge.unit);
        case wire::EdgeKind::server: break;
    }
    return "the host of the server";
}

// Not of an edge whose member left, which is no failure.
std::string reason_of(const wire::Edge& edge) {
    const std::string name = name_of(edge);
    switch (edge.evidence) {
        case wire::Evidence::silence: return fmt::format("{} sent nothing for {} ms", name, edge.silent_ms);
        case wire::Evidence::closed: return "the process of " + name + " ended";
        case wire::Evidence::too_long:
            return edge.detail == 0 ? "long packets are lost on the path to or from " + name
                                    : fmt::format("the path MTU of {} is {} bytes", name, edge.detail);
        case wire::Evidence::one_direction: return name + " receives nothing";
        case wire::Evidence::left:
        case wire::Evidence::paused: break;
    }
    return fmt::format("this process did not run for {} ms", edge.silent_ms);
}

}  // namespace

void JoinTree::report(TreeNotice notice) {
    if (notices_.size() == most_notices) notices_.pop_front();
    notices_.push_back(std::move(notice));
}

void JoinTree::report(TreeNotice::Kind kind, const Branch& branch, const wire::Address& address, std::string reason) {
    report({.kind = kind,
            .job = branch.terms.job,
            .channel = branch.terms.channel,
            .level = branch.level,
            .address = address,
            .members = branch.receivers,
            .reason = std::move(reason)});
}

void JoinTree::report_formed(const Branch& branch, const wire::Address& from, const Proof& proof) {
    TreeNotice notice{.kind = TreeNotice::Kind::job_formed,
                      .job = branch.terms.job,
                      .channel = branch.terms.channel,
                      .level = branch.level,
                      .address = from,
                      .job_name = branch.job_name};
    if (proof.tenant != nullptr) {
        notice.tenant = branch.owner.tenant;
        notice.key = proof.key_id;
        notice.channels = config_.room->use_of(branch.owner).channels;
    }
    report(std::move(notice));
}

void JoinTree::report_member(TreeNotice::Kind kind, const Branch& branch, const Branch::Child& child,
                             std::string_view reason) {
    TreeNotice notice{.kind = kind,
                      .job = branch.terms.job,
                      .channel = branch.terms.channel,
                      .level = branch.level,
                      .address = child.address,
                      .unit = child.unit.unit,
                      .reason = std::string(reason)};
    if (is_worker(branch, child)) notice.rank = child.unit.ranks.front();
    report(std::move(notice));
}

void JoinTree::report_failure(const Branch& branch, const wire::Edge& edge) {
    report(TreeNotice::Kind::job_failed, branch, address_of(edge.at), reason_of(edge));
}

std::optional<TreeNotice> JoinTree::poll_notice() {
    if (notices_.empty()) return std::nullopt;
    TreeNotice next = std::move(notices_.front());
    notices_.pop_front();
    return next;
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
