// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "net/transport.h"

namespace atp::net {

// Passes each call on to another transport. Derived classes change or note what interests them.
//
// Ownership: owns the other transport.
// Calling order, threads, failure: as Transport.
class TransportOver : public Transport {
  public:
    explicit TransportOver(std::unique_ptr<Transport> below) : below_(std::move(below)) {}

    void expect(std::uint32_t packets) override { below_->expect(packets); }
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override { return below_->reserve(max_bytes); }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override { below_->commit(bytes, to, ecn); }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        return below_->borrow(bytes, to, ecn);
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override { return below_->repeat(to); }
    Flush flush() override { return below_->flush(); }
    [[nodiscard]] std::uint32_t waiting() const override { return below_->waiting(); }

    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) override {
        return below_->receive(datagrams);
    }
    [[nodiscard]] bool has_more() const override { return below_->has_more(); }
    [[nodiscard]] bool drained() const override { return below_->drained(); }
    [[nodiscard]] Time poll_timeout() const override { return below_->poll_timeout(); }
    [[nodiscard]] std::size_t take_errors(std::span<wire::SendError> errors) override {
        return below_->take_errors(errors);
    }

    void reach_group(const wire::Address& group, const wire::Address& from) override {
        below_->reach_group(group, from);
    }
    void forget_group(const wire::Address& group) override { below_->forget_group(group); }
    [[nodiscard]] bool reaches_groups() const override { return below_->reaches_groups(); }
    [[nodiscard]] const wire::Address& local() const override { return below_->local(); }
    [[nodiscard]] int descriptor() const override { return below_->descriptor(); }
    [[nodiscard]] const UdpReport& report() const override { return below_->report(); }
    [[nodiscard]] const UdpCounters& counters() const override { return below_->counters(); }
    [[nodiscard]] std::string report_parts() const override { return below_->report_parts(); }

  private:
    std::unique_ptr<Transport> below_;
};

}  // namespace atp::net
