// SPDX-License-Identifier: Apache-2.0
#include "control/tree_messages.h"

#include <utility>

namespace atp::control {
inline namespace ATP_VARIANT {

bool is_of_another_job(const JoinTree& tree, std::span<const std::byte> bytes) {
    const auto& only = tree.config().only;
    if (!only || wire::control_type(bytes) != wire::ControlType::join) return false;
    const auto key = key_of_message(bytes);
    return !key || key->of_job() != *only;
}

namespace {

void handle_join(JoinTree& tree, SwitchCodes& codes, const wire::Join& join, std::span<const std::byte> bytes,
                 std::size_t length, const wire::Address& from, Time now) {
    SwitchCodes::JoinCheck check = codes.check_join(join, bytes, now);
    if (!check.believed) return tree.refuse_unproven(join, from, std::move(check.problem), now);
    tree.handle_join(join, from, now, length, check.proof);
    const Branch* const branch = tree.find(key_of(join));
    const Branch::Child* const child = branch == nullptr ? nullptr : branch->at(Branch::position_of(join));
    codes.settle(join, child != nullptr && child->nonce == join.nonce, now);
}

// False: nothing may believe this message of a parent.
bool is_believed(JoinTree& tree, SwitchCodes& codes, std::span<const std::byte> bytes, Time now) {
    const SwitchCodes::AnswerCheck check = codes.check_answer(bytes, now);
    if (check.believed) return true;
    tree.note_unproven();
    if (!check.problem.empty()) tree.give_up_parent(*key_of_message(bytes), check.problem, now);
    return false;
}

}  // namespace

TreeReception handle_tree_message(JoinTree& tree, Gatekeeper& gatekeeper, SwitchCodes& codes,
                                  std::span<const std::byte> bytes, std::size_t length, const wire::Address& from,
                                  Time now) {
    // Before the JOIN is decoded: anyone can send it, from any address.
    if (is_of_another_job(tree, bytes)) return {};
    if (auto retry = gatekeeper.handle_join(bytes, from, now)) return {.understood = true, .retry = retry};
    if (const auto join = wire::decode<wire::Join>(bytes)) {
        if (length < wire::least_question_bytes) return {};
        handle_join(tree, codes, *join, bytes, length, from, now);
    } else if (const auto leave = wire::decode<wire::Leave>(bytes)) {
        codes.check_leave(*leave, bytes) ? tree.handle_leave(*leave, from, now) : tree.note_unproven();
    } else if (const auto joined = wire::decode<wire::Joined>(bytes)) {
        if (is_believed(tree, codes, bytes, now)) tree.handle_joined(*joined, from, now);
    } else if (const auto refused = wire::decode<wire::Refused>(bytes)) {
        if (is_believed(tree, codes, bytes, now)) tree.handle_refused(*refused, from, now);
    } else if (const auto retry = wire::decode<wire::Retry>(bytes)) {
        if (is_believed(tree, codes, bytes, now)) tree.handle_retry(*retry, from, now);
    } else {
        return {};
    }
    return {.understood = true};
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
