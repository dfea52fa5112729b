// SPDX-License-Identifier: Apache-2.0
#include "store/store_refusal.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"

namespace atp::store {
namespace {

Reason reason_of(StoreStatus status) {
    switch (status) {
        case StoreStatus::malformed: return Reason::malformed;
        case StoreStatus::version_mismatch: return Reason::version_mismatch;
        case StoreStatus::too_large: return Reason::too_large;
        case StoreStatus::exhausted: return Reason::exhausted;
        case StoreStatus::rejected: return Reason::rejected;
        case StoreStatus::cancelled: return Reason::timed_out;
        case StoreStatus::done: break;
    }
    return Reason::failed;
}

}  // namespace

tl::unexpected<StoreRefusal> refuse(StoreStatus status, std::string text) {
    return tl::unexpected<StoreRefusal>(StoreRefusal{status, std::move(text)});
}

Failure to_failure(const StoreRefusal& refusal, std::string peer) {
    return fail(Operation::rendezvous, reason_of(refusal.status), std::move(peer), printable(refusal.text));
}

Failure keys_not_set(std::span<const std::string> keys, std::string peer, Duration elapsed) {
    std::vector<std::string> quoted;
    quoted.reserve(keys.size());
    for (const std::string& key : keys) quoted.push_back(fmt::format("'{}'", printable(key)));
    return Failure(Error{.operation = Operation::rendezvous,
                         .reason = Reason::timed_out,
                         .peer = std::move(peer),
                         .elapsed = elapsed,
                         .text = fmt::format("no rank has set {}", list_some(quoted))});
}

}  // namespace atp::store
