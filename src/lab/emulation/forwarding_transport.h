// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "net/transport_over.h"
#include "policy/forwarded_share.h"

namespace atp::emulation {

// The transport of a worker that marks a share of its fragments, so that switches only forward them.
//
// Ownership, calling order, threads, failure: as net::TransportOver.
class ForwardingTransport final : public net::TransportOver {
  public:
    ForwardingTransport(std::unique_ptr<net::Transport> below, const policy::ForwardedShare& forwarded)
        : TransportOver(std::move(below)), forwarded_(forwarded) {}

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return reserved_ = TransportOver::reserve(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        forwarded_.mark(reserved_.first(bytes));
        TransportOver::commit(bytes, to, ecn);
    }

  private:
    policy::ForwardedShare forwarded_;
    std::span<std::byte> reserved_;  // of the last reserve()
};

}  // namespace atp::emulation
