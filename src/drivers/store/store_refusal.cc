// SPDX-License-Identifier: Apache-2.0
#include "store/store_refusal.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"

namespace atp::store {
namespace {

Reason reason_of(Status status) {
    switch (status) {
        case Status::malformed: return Reason::malformed;
        case Status::version_mismatch: return Reason::version_mismatch;
        case Status::too_large: return Reason::too_large;
        case Status::exhausted: return Reason::exhausted;
        case Status::rejected: return Reason::rejected;
        case Status::cancelled: return Reason::timed_out;
        case Status::done: break;
    }
    return Reason::failed;
}

}  // namespace

tl::unexpected<Refusal> refuse(Status status, std::string text) {
    return tl::unexpected<Refusal>(Refusal{status, std::move(text)});
}

Failure to_failure(const Refusal& refusal, std::string peer) {
    return fail(Operation::rendezvous, reason_of(refusal.status), std::move(peer), refusal.text);
}

Failure nobody_has_set(std::span<const std::string> keys, std::string peer, Duration elapsed) {
    std::vector<std::string> quoted;
    quoted.reserve(keys.size());
    for (const std::string& key : keys) quoted.push_back(fmt::format("'{}'", key));
    return Failure(Error{.operation = Operation::rendezvous,
                         .reason = Reason::timed_out,
                         .peer = std::move(peer),
                         .elapsed = elapsed,
                         .text = fmt::format("nobody has set {}", list_some(quoted))});
}

}  // namespace atp::store
