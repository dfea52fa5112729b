// SPDX-License-Identifier: Apache-2.0
#include "comm/refusal.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "comm/listing.h"

namespace atp::comm {
namespace {

net::Reason reason_of(Status status) {
    switch (status) {
        case Status::malformed: return net::Reason::malformed;
        case Status::version_mismatch: return net::Reason::version_mismatch;
        case Status::too_large: return net::Reason::too_large;
        case Status::exhausted: return net::Reason::exhausted;
        case Status::rejected: return net::Reason::rejected;
        case Status::cancelled: return net::Reason::timed_out;
        case Status::done: break;
    }
    return net::Reason::failed;
}

}  // namespace

tl::unexpected<Refusal> refuse(Status status, std::string text) {
    return tl::unexpected<Refusal>(Refusal{status, std::move(text)});
}

net::Failure to_failure(const Refusal& refusal, std::string peer) {
    return net::fail(net::Operation::rendezvous, reason_of(refusal.status), std::move(peer), refusal.text);
}

net::Failure nobody_has_set(std::span<const std::string> keys, std::string peer, protocol::Duration elapsed) {
    std::vector<std::string> quoted;
    quoted.reserve(keys.size());
    for (const std::string& key : keys) quoted.push_back(fmt::format("'{}'", key));
    return net::Failure(net::Error{.operation = net::Operation::rendezvous,
                                   .reason = net::Reason::timed_out,
                                   .peer = std::move(peer),
                                   .elapsed = elapsed,
                                   .text = fmt::format("nobody has set {}", list_some(quoted))});
}

}  // namespace atp::comm
