// SPDX-License-Identifier: Apache-2.0
// The saved tree of a shard: see ShardMachine::persist_data() for the rest of its state.
#pragma once

#include "control/persist_join_tree.h"
#include "endpoint/shard_machine.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

// The jobs that the table admits follow from the tree.
template <protocol::Archive Archive>
void ShardMachine::persist_joining(Archive& archive) {
    const auto each_job = [this](auto&& visit) {
        tree_.for_each([&](const control::Branch& branch) { visit(branch.terms, branch.level); });
    };
    if constexpr (Archive::reads) {
        each_job([&](const wire::ChannelTerms& terms, unsigned) { switch_.dismiss(terms.job, terms.token); });
        limit_.refill();
    }
    tree_.persist(archive);
    if constexpr (Archive::reads) {
        each_job([&](const wire::ChannelTerms& terms, std::uint8_t level) {
            static_cast<void>(switch_.admit(terms.job, terms.token, level));
        });
    }
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
