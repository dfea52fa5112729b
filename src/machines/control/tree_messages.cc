// SPDX-License-Identifier: Apache-2.0
#include "control/tree_messages.h"

namespace atp::control {
inline namespace ATP_VARIANT {

bool is_of_another_job(const JoinTree& tree, std::span<const std::byte> bytes) {
    const auto& only = tree.config().only;
    if (!only || wire::control_type(bytes) != wire::ControlType::join) return false;
    const auto key = key_of_message(bytes);
    return !key || key->of_job() != *only;
}

TreeReception handle_tree_message(JoinTree& tree, Gatekeeper& gatekeeper, std::span<const std::byte> bytes,
                                  std::size_t length, const wire::Address& from, Time now) {
    // Before the JOIN is decoded: anyone can send it, from any address.
    if (is_of_another_job(tree, bytes)) return {};
    if (auto retry = gatekeeper.handle_join(bytes, from, now)) return {.understood = true, .retry = retry};
    if (const auto join = wire::decode<wire::Join>(bytes)) {
        if (length < wire::least_question_bytes) return {};
        tree.handle_join(*join, from, now, length);
    } else if (const auto leave = wire::decode<wire::Leave>(bytes)) {
        tree.handle_leave(*leave, from, now);
    } else if (const auto joined = wire::decode<wire::Joined>(bytes)) {
        tree.handle_joined(*joined, from, now);
    } else if (const auto refused = wire::decode<wire::Refused>(bytes)) {
        tree.handle_refused(*refused, from, now);
    } else if (const auto retry = wire::decode<wire::Retry>(bytes)) {
        tree.handle_retry(*retry, from, now);
    } else {
        return {};
    }
    return {.understood = true};
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
