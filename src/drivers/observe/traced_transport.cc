// SPDX-License-Identifier: Apache-2.0
#include "observe/traced_transport.h"

#include <string>
#include <utility>

#include "net/clock.h"
#include "net/transport_over.h"

namespace atp::observe {
namespace {

// Events of the machine behind a transport. The machine has the time of its batch, which is before the packets of the
// batch are received. The time of the call keeps the events of a fragment in order.
//
// Ownership: borrows the queue. Threads, failure: as TraceQueue.
class MachineEvents final : public wire::TraceSink {
  public:
    explicit MachineEvents(wire::TraceSink& queue) : queue_(queue) {}

    void packet(Time, std::string_view what, std::span<const std::byte> bytes, const wire::Address* peer,
                bool arrived) override {
        queue_.packet(net::now(), what, bytes, peer, arrived);
    }

  private:
    wire::TraceSink& queue_;
};

// Copies each packet to the trace.
//
// Ownership: shares the trace file, which owns the queue `sink`.
// Calling order, threads, failure: as net::TransportOver.
class TracedTransport final : public net::TransportOver {
  public:
    TracedTransport(std::unique_ptr<net::Transport> transport, std::shared_ptr<TraceFile> file, wire::TraceSink& sink)
        : TransportOver(std::move(transport)), file_(std::move(file)), sink_(sink), events_(sink) {}

    [[nodiscard]] wire::TraceSink& events() { return events_; }

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return reserved_ = TransportOver::reserve(max_bytes);
    }
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override {
        last_ = reserved_.first(bytes);
        sent(to);
        TransportOver::commit(bytes, to, ecn);
    }
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override {
        if (!TransportOver::borrow(bytes, to, ecn)) return false;
        last_ = bytes;
        sent(to);
        return true;
    }
    [[nodiscard]] bool repeat(const wire::Address& to) override {
        if (!TransportOver::repeat(to)) return false;
        sent(to);
        return true;
    }

    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) override {
        auto count = TransportOver::receive(datagrams);
        if (!count) return count;
        const Time now = net::now();
        for (const wire::Datagram& datagram : datagrams.first(*count)) {
            sink_.packet(now, datagram.ecn == wire::Ecn::congested ? "received marked" : "received", datagram.bytes,
                         datagram.from, true);
        }
        return count;
    }

  private:
    void sent(const wire::Address& to) { sink_.packet(net::now(), "sent", last_, &to, false); }

    std::shared_ptr<TraceFile> file_;
    wire::TraceSink& sink_;
    MachineEvents events_;
    std::span<std::byte> reserved_;    // of the last reserve()
    std::span<const std::byte> last_;  // of the last commit() or borrow(), for repeat()
};

}  // namespace

std::unique_ptr<net::Transport> trace_transport(std::unique_ptr<net::Transport> transport,
                                                std::shared_ptr<TraceFile> file, wire::TraceSink** events) {
    wire::TraceSink& sink = file->add_queue(to_string(transport->local()));
    auto traced = std::make_unique<TracedTransport>(std::move(transport), std::move(file), sink);
    if (events != nullptr) *events = &traced->events();
    return traced;
}

}  // namespace atp::observe
