// SPDX-License-Identifier: Apache-2.0
#include "control/tree_messages.h"

namespace atp::control {
inline namespace ATP_VARIANT {

TreeReception handle_tree_message(JoinTree& tree, Gatekeeper& gatekeeper, std::span<const std::byte> bytes,
                                  const wire::Address& from, Time now) {
    if (const auto join = wire::decode<wire::Join>(bytes)) {
        if (bytes.size() < wire::least_question_bytes) return {};
        const auto& only = tree.config().only;
        if (only && *only != key_of(*join).of_job()) return {};
        if (auto retry = gatekeeper.handle_join(*join, from, now)) return {.understood = true, .retry = retry};
        tree.handle_join(*join, from, now, bytes.size());
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
