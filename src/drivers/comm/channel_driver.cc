// SPDX-License-Identifier: Apache-2.0
#include "comm/channel_driver.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "endpoint/channel_text.h"
#include "net/clock.h"

namespace atp::comm {
namespace {

constexpr Duration publish_interval = std::chrono::milliseconds(50);
constexpr std::size_t batch_packets = 64;
constexpr std::size_t batch_errors = 16;
constexpr int batches_per_round = 8;
// Gradients sent between two reads of the transport.
constexpr unsigned packets_per_transmit = 256;

}  // namespace

Result<std::unique_ptr<ChannelDriver>> ChannelDriver::open(std::unique_ptr<net::Transport> transport,
                                                           const ChannelPlan& plan,
                                                           std::shared_ptr<ChannelThread> thread) {
    std::unique_ptr<ChannelDriver> channel(new ChannelDriver(std::move(thread), std::move(transport), plan));
    ChannelDriver& self = *channel;
    self.thread_->join(self);
    if (auto watched = self.thread_->loop().watch(self, self.transport_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    if (plan.group) self.open_group(*plan.group);
    return channel;
}

ChannelDriver::ChannelDriver(std::shared_ptr<ChannelThread> thread, std::unique_ptr<net::Transport> transport,
                             const ChannelPlan& plan)
    : thread_(std::move(thread)),
      transport_(std::move(transport)),
      machine_(plan.machine),
      datagrams_(batch_packets),
      hooks_(plan.hooks) {}

ChannelDriver::~ChannelDriver() { stop(); }

Result<void> ChannelDriver::wait_ready(Time deadline) {
    const Time begin = net::now();
    if (exchange_.wait_ready(deadline)) return {};
    if (auto error = exchange_.error()) return tl::unexpected(*std::move(error));
    return tl::unexpected(endpoint::error_of_slow_join(exchange_.waiting(), net::now() - begin, machine_.config()));
}

void ChannelDriver::submit(const Handle& work, std::size_t part) {
    const auto ended = exchange_.submit({work, part});
    if (ended) work->finish_part(endpoint::error_after_end(*ended, work->operation()));
}

void ChannelDriver::abort(const Error& reason) {
    exchange_.abort(reason);
    thread_->loop().wake();
}

void ChannelDriver::stop() {
    if (std::exchange(stopped_, true)) return;
    if (!thread_->started()) return leave();
    stopping_ = true;
    wake();
    left_->wait(false);
    fail({.operation = Operation::wait, .reason = Reason::closed, .text = "the communicator was closed"}, net::now());
}

// ----------------------------------------------------------------------------------------------------- On its thread

void ChannelDriver::handle_ready(int descriptor, net::Ready ready, Time now) {
    due_ = true;
    if (group_socket_ != nullptr && descriptor == group_socket_->descriptor()) {
        const auto handle = [&](const wire::Datagram& datagram) { machine_.handle_group_datagram(datagram, now); };
        if (auto received = receive(*group_socket_, handle, now); !received) close_group(received.error());
        return;
    }
    if (ready.write && blocked_) flush();
    if (ready.failed) errors_due_ = true;
    if (!ready.read && !ready.failed) return;
    const auto handle = [&](const wire::Datagram& datagram) { machine_.handle_datagram(datagram, now); };
    if (auto received = receive(*transport_, handle, now); !received) {
        fail(received.error(), now);
        thread_->loop().unwatch(transport_->descriptor());
    }
}

template <class Visit>
Result<void> ChannelDriver::receive(net::Transport& from, Visit&& visit, Time now) {
    for (int batch = 0; batch < batches_per_round || from.has_more(); ++batch) {
        const auto count = from.receive(datagrams_);
        if (!count) return tl::unexpected(count.error());
        if (*count == 0) return {};
        counted_ = true;
        for (std::size_t i = 0; i < *count; ++i) visit(datagrams_[i]);
        take_events(now);
        transmit(now);
        if (from.drained()) return {};
    }
    return {};
}

void ChannelDriver::receive_errors(Time now) {
    due_ = true;
    std::array<wire::SendError, batch_errors> errors;
    const std::size_t count = transport_->take_errors(errors);
    errors_due_ = count == errors.size();
    for (std::size_t i = 0; i < count; ++i) machine_.handle_send_error(errors[i], now);
    take_events(now);
}

// Without the group, every result comes as a copy, so nothing fails.
void ChannelDriver::open_group(const net::UdpConfig& config) {
    auto socket = net::UdpSocket::open(config);
    if (!socket) return close_group(socket.error());
    group_socket_ = *std::move(socket);
    if (auto watched = thread_->loop().watch(*this, group_socket_->descriptor(), {}); !watched)
        close_group(watched.error());
}

void ChannelDriver::close_group(const Error& why) {
    if (group_socket_ != nullptr) thread_->loop().unwatch(group_socket_->descriptor());
    group_socket_.reset();
    machine_.handle_group_lost();
    due_ = true;
    exchange_.set_group_failure(to_string(why));
}

void ChannelDriver::handle_wake(Time now) {
    due_ = true;
    if (const auto abort = exchange_.take(waiting_)) fail(*abort, now);
    if (stopping_) machine_.close(now);
    take_events(now);
}

void ChannelDriver::take_submissions(Time now) {
    while (ready_ && !waiting_.empty()) {
        WorkPart& part = waiting_.front();
        if (!machine_.submit(part.work->slices()[part.number], now, part.work->deadline())) return;
        in_flight_.push_back(std::move(part));
        waiting_.pop_front();
    }
}

void ChannelDriver::take_events(Time now) {
    while (const auto event = machine_.poll_event(now)) {
        switch (event->kind) {
            case endpoint::ChannelEvent::Kind::completed: {
                const WorkPart part = std::move(in_flight_.front());
                in_flight_.pop_front();
                part.work->finish_part(std::nullopt);
                break;
            }
            case endpoint::ChannelEvent::Kind::waiting:
                exchange_.set_waiting(
                    endpoint::waiting_text(std::get<control::MemberCause>(event->cause), machine_.config()));
                break;
            case endpoint::ChannelEvent::Kind::ready:
                ready_ = true;
                if (event->int32_lanes && hooks_.int32_lanes) hooks_.int32_lanes();
                exchange_.set_ready();
                break;
            case endpoint::ChannelEvent::Kind::group_forgotten: group_forgotten_ = true; break;
            case endpoint::ChannelEvent::Kind::slow:
                if (hooks_.slow) hooks_.slow(endpoint::slow_text(event->pace, machine_.config()));
                break;
            case endpoint::ChannelEvent::Kind::differs:
                machine_.state(in_flight_[event->number].work->called(), now);
                break;
            // fail() ends all parts, so that a caller that sees the error finds the channel ended.
            case endpoint::ChannelEvent::Kind::failed:
                return fail(endpoint::error_of(event->cause, machine_.config()), now);
            case endpoint::ChannelEvent::Kind::closed: closed_ = true; return;
        }
    }
    take_submissions(now);
}

void ChannelDriver::transmit(Time now) {
    machine_.transmit_control(*transport_);
    unsigned left = packets_per_transmit;
    while (!blocked_) {
        const auto sent = machine_.transmit(*transport_, left, now);
        if (sent.gradients != 0) counted_ = true;
        left -= sent.gradients;
        const bool room_expected = sent.no_room && transport_->waiting() != 0;
        if (!room_expected) break;
        flush();
    }
    flush();
    if (left == 0) due_ = true;
}

void ChannelDriver::flush() {
    const net::Flush flushed = transport_->flush();
    if (flushed.refused != 0) errors_due_ = true;
    const bool waits = flushed.waiting != 0;
    if (waits == blocked_) return;
    blocked_ = waits;
    static_cast<void>(thread_->loop().change(transport_->descriptor(), {.read = true, .write = waits}));
}

void ChannelDriver::handle_timeout(Time now) {
    due_ = true;
    machine_.handle_timeout(now);
    take_events(now);
    end_late(now);
    publish(now);
}

// The machine enforces the deadlines of the parts that it has. `never` if no part waits for the tree.
Time ChannelDriver::earliest_waiting() const {
    Time earliest = never;
    if (ready_) return earliest;
    for (const WorkPart& part : waiting_) earliest = std::min(earliest, part.work->deadline());
    return earliest;
}

// Some ranks have not joined in the time that an operation has.
void ChannelDriver::end_late(Time now) {
    if (now < earliest_waiting()) return;
    const Duration waited = now - waiting_.front().work->begun();
    fail(endpoint::error_of_slow_join(exchange_.waiting(), waited, machine_.config()), now);
}

void ChannelDriver::finish_round(Time now) {
    if (std::exchange(group_forgotten_, false) && group_socket_ != nullptr) {
        if (auto joined = group_socket_->rejoin_group(); !joined) close_group(joined.error());
    }
    if (errors_due_) receive_errors(now);
    if (!blocked_ && std::exchange(due_, false)) transmit(now);
    publish(now);
    if (closed_) leave();
}

// Nothing may follow: stop() may destroy the channel.
void ChannelDriver::leave() {
    const std::shared_ptr<std::atomic<bool>> left = left_;
    thread_->leave(*this);
    *left = true;
    left->notify_all();
}

void ChannelDriver::handle_loop_failure(const Error& error) {
    fail(error, net::now());
    leave();
}

Time ChannelDriver::poll_timeout() const {
    return std::min({machine_.poll_timeout(), earliest_waiting(), counted_ ? publish_next_ : never});
}

// Ends the channel for good. The machine does not access tensors any more: their owners may free them once their part
// is finished here.
void ChannelDriver::fail(const Error& error, Time now) {
    machine_.end();
    std::deque<WorkPart> parts;
    parts.swap(in_flight_);
    std::ranges::move(waiting_, std::back_inserter(parts));
    waiting_.clear();
    exchange_.close(error, parts);
    if (!std::exchange(ended_, true)) {
        if (hooks_.ended) hooks_.ended(error);
        // Without LEAVE, the other members would wait for this rank.
        machine_.transmit_control(*transport_);
        static_cast<void>(transport_->flush());
        counted_ = true;
        publish_next_ = now;
        publish(now);
    }
    for (const WorkPart& part : parts) {
        part.work->finish_part(endpoint::error_of_part(error, part.work->operation(), now - part.work->begun()));
    }
}

// Only after some fragments: the first ones alone say little.
void ChannelDriver::report_floats() {
    constexpr std::uint64_t tolerated = 100;  // one fragment in so many
    if (!hooks_.floats) return;
    const protocol::WorkerCounters counters = machine_.worker().counters();
    if (counters.sent < tolerated || counters.float_fragments * tolerated <= counters.sent) return;
    std::exchange(hooks_.floats, {})(counters);
}

void ChannelDriver::publish(Time now) {
    if (!counted_ || now < publish_next_) return;
    counted_ = false;
    publish_next_ = now + publish_interval;
    report_floats();
    exchange_.publish({.worker = machine_.worker().counters(),
                       .server = machine_.server_counters(),
                       .member = machine_.member_counters(),
                       .udp = transport_->counters(),
                       .group_udp = group_socket_ != nullptr ? group_socket_->counters() : net::UdpCounters{},
                       .group_results = machine_.group_results(),
                       .results_by_group = machine_.results_by_group(),
                       .window_packets = machine_.worker().window_packets(),
                       .strays = machine_.strays()},
                      transport_->report());
}

}  // namespace atp::comm
