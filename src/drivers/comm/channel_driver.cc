// SPDX-License-Identifier: Apache-2.0
#include "comm/channel_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "control/join_tree.h"
#include "net/clock.h"
#include "wire/packet.h"

namespace atp::comm {
namespace {

constexpr Duration join_impatient = std::chrono::milliseconds(50);
constexpr Duration join_refresh = std::chrono::seconds(1);
// A missing member gets this time to return: if a switch restarts, all members join again.
constexpr Duration lost_grace = std::chrono::seconds(3);
constexpr Duration publish_interval = std::chrono::milliseconds(50);
// Before it ends, a server in a worker process waits until it has received no packet for this long, for late workers.
constexpr Duration server_linger = std::chrono::milliseconds(300);
constexpr Duration server_linger_most = std::chrono::seconds(2);
constexpr std::size_t batch_packets = 64;
constexpr int batches_per_round = 8;
// Packets sent between two reads of the socket.
constexpr int packets_per_transmit = 256;

bool goes_up(std::span<const std::byte> bytes) {
    if (bytes.size() < ATP_HEADER_BYTES || wire::load_u8(bytes.data()) != ATP_VERSION) return false;
    const std::uint8_t type = wire::load_u8(bytes.data() + ATP_OFFSET_TYPE);
    return type == ATP_TYPE_GRADIENT || type == ATP_TYPE_PROBE;
}

// Receiver field of an ACK; nullopt for other packets.
std::optional<std::uint16_t> receiver_of_result(std::span<const std::byte> bytes) {
    if (bytes.size() < ATP_HEADER_BYTES || wire::load_u8(bytes.data()) != ATP_VERSION) return std::nullopt;
    if (wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) != ATP_TYPE_ACK) return std::nullopt;
    return wire::load_u16(bytes.data() + ATP_OFFSET_WORKER);
}

std::unique_ptr<endpoint::ChannelEngine> engine_of(const ChannelPlan& plan) {
    return plan.other == nullptr ? endpoint::make_engine(plan.worker)
                                 : plan.other->make_engine(plan.terms, plan.worker.place);
}

std::string without_server(const wire::Endpoint& server) {
    const std::string where = server.family == 0 ? "" : " at " + to_string(control::address_of(server));
    return fmt::format("the switches did not reach the parameter server{}", where);
}

}  // namespace

Result<std::unique_ptr<ChannelDriver>> ChannelDriver::open(std::unique_ptr<net::UdpSocket> socket,
                                                           const ChannelPlan& plan) {
    auto loop = net::EventLoop::open(plan.loop);
    if (!loop) return tl::unexpected(loop.error());
    std::unique_ptr<ChannelDriver> channel(new ChannelDriver(*std::move(loop), std::move(socket), plan));
    ChannelDriver& self = *channel;
    self.loop_->add(self);
    if (auto watched = self.loop_->watch(self, self.socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    if (plan.group) self.open_group();
    self.thread_ = std::thread([&self] {
        if (auto ran = self.loop_->run(); !ran) self.fail(ran.error(), net::now());
    });
    return channel;
}

ChannelDriver::ChannelDriver(std::unique_ptr<net::EventLoop> loop, std::unique_ptr<net::UdpSocket> socket,
                             const ChannelPlan& plan)
    : plan_(plan),
      loop_(std::move(loop)),
      socket_(std::move(socket)),
      worker_(engine_of(plan)),
      has_tokens_(worker_->has_tokens()),
      datagrams_(batch_packets),
      data_address_(plan.switch_address) {
    if (plan.hosts_server) {
        server_ = std::make_unique<endpoint::HostedServer>(
            protocol::ServerConfig{.channel = endpoint::channel_config(plan.terms), .scale = plan.terms.scale},
            *plan.membership);
    }
}

ChannelDriver::~ChannelDriver() { stop(); }

Result<void> ChannelDriver::wait_ready(Time deadline) {
    const Time begin = net::now();
    std::unique_lock lock(mutex_);
    for (Time now = begin; !ready_ && !error_ && now < deadline; now = net::now()) {
        changed_.wait_for(lock, std::min<Duration>(deadline - now, net::longest_sleep));
    }
    if (error_) return tl::unexpected(*error_);
    if (ready_) return {};
    return tl::unexpected(Error{
        .operation = Operation::join,
        .reason = Reason::timed_out,
        .peer = to_string(plan_.switch_address),
        .elapsed = net::now() - begin,
        .text = joining_text_.empty() ? "the switch does not answer: diagnose it with `atp doctor`" : joining_text_});
}

void ChannelDriver::submit(const Handle& work, std::size_t part) {
    std::optional<Error> error;
    {
        const std::scoped_lock lock(mutex_);
        error = error_;
        if (!error) submitted_.push_back({work, part});
    }
    if (!error) {
        loop_->wake();
        return;
    }
    error->operation = work->operation();
    error->reason = Reason::closed;
    error->elapsed = {};
    error->text = "an earlier error closed this communicator; form a new one. First error: " + error->text;
    work->finish_part(std::move(error));
}

void ChannelDriver::abort(const Error& reason) {
    {
        const std::scoped_lock lock(mutex_);
        abort_ = reason;
    }
    loop_->wake();
}

void ChannelDriver::stop() {
    if (!thread_.joinable()) return;
    if (server_ != nullptr && !error()) {
        const Time most = net::now() + server_linger_most;
        while (net::now() < most) {
            if (net::now() - Time(Duration(served_)) > server_linger) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    loop_->stop();
    thread_.join();
    fail({.operation = Operation::wait, .reason = Reason::closed, .text = "the communicator was closed"}, net::now());
}

// Without LEAVE, the other members would wait for this rank.
void ChannelDriver::leave() {
    const wire::Leave leave{.job = plan_.terms.job,
                            .token = plan_.terms.token,
                            .channel = plan_.terms.channel,
                            .unit = plan_.unit.unit,
                            .member = static_cast<std::uint8_t>(std::countr_zero(plan_.unit.members))};
    const std::span<std::byte> room = socket_->reserve(64);
    if (room.empty()) return;
    socket_->commit(wire::encode(leave, room), plan_.switch_address, wire::Ecn::not_capable);
    static_cast<void>(socket_->flush());
}

ChannelCounters ChannelDriver::counters() const {
    const std::scoped_lock lock(mutex_);
    return published_;
}

std::vector<std::string> ChannelDriver::without() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> missing = published_report_.missing();
    if (!group_failure_.empty()) missing.push_back("multicast: " + group_failure_);
    return missing;
}

std::optional<Error> ChannelDriver::error() const {
    const std::scoped_lock lock(mutex_);
    return error_;
}

// ----------------------------------------------------------------------------------------------------- On its thread

void ChannelDriver::handle_ready(int descriptor, net::Ready ready, Time now) {
    if (group_socket_ != nullptr && descriptor == group_socket_->descriptor()) {
        receive_from_group(now);
        return;
    }
    if (ready.write && blocked_) flush();
    if (ready.read || ready.failed) receive(now);
}

void ChannelDriver::receive(Time now) {
    for (int batch = 0; batch < batches_per_round || socket_->has_more(); ++batch) {
        const auto count = socket_->receive(datagrams_);
        if (!count) {
            fail(count.error(), now);
            loop_->unwatch(socket_->descriptor());
            return;
        }
        if (*count == 0) return;
        counted_ = true;
        for (std::size_t i = 0; i < *count; ++i) handle_datagram(datagrams_[i], now);
        take_events(now);
        transmit(now);
    }
}

// Without the group, every result comes as a copy, so nothing fails.
void ChannelDriver::open_group() {
    auto socket = net::UdpSocket::open(*plan_.group);
    if (!socket) return close_group(socket.error());
    group_socket_ = *std::move(socket);
    if (auto watched = loop_->watch(*this, group_socket_->descriptor(), {}); !watched) close_group(watched.error());
}

void ChannelDriver::close_group(const Error& why) {
    if (group_socket_ != nullptr) loop_->unwatch(group_socket_->descriptor());
    group_socket_.reset();
    const std::scoped_lock lock(mutex_);
    group_failure_ = to_string(why);
}

void ChannelDriver::report_group() {
    if (auto joined = group_socket_->rejoin_group(); !joined) close_group(joined.error());
}

void ChannelDriver::receive_from_group(Time now) {
    for (int batch = 0; batch < batches_per_round || group_socket_->has_more(); ++batch) {
        const auto count = group_socket_->receive(datagrams_);
        if (!count) return close_group(count.error());
        if (*count == 0) return;
        counted_ = true;
        for (std::size_t i = 0; i < *count; ++i) handle_group_datagram(datagrams_[i], now);
        take_events(now);
        transmit(now);
    }
}

template <class Message>
bool ChannelDriver::is_mine(const Message& message) const {
    return message.job == plan_.terms.job && message.token == plan_.terms.token &&
           message.channel == plan_.terms.channel;
}

void ChannelDriver::handle_group_datagram(const wire::Datagram& datagram, Time now) {
    if (const auto joined = wire::decode_joined(datagram.bytes)) {
        if (is_mine(*joined) && reception_.handle_message(now)) join_next_ = now;
    } else if (receiver_of_result(datagram.bytes) && !ended_) {
        reception_.handle_group_result();
        results_by_group_ = true;
        ++group_results_;
        worker_->handle_packet(datagram.bytes, datagram.ecn == wire::Ecn::congested, now);
    } else {
        ++strays_;
    }
}

void ChannelDriver::handle_datagram(const wire::Datagram& datagram, Time now) {
    const bool congested = datagram.ecn == wire::Ecn::congested;
    if (wire::control_type(datagram.bytes) || wire::refusal_version(datagram.bytes)) {
        handle_control(datagram, now);
    } else if (goes_up(datagram.bytes)) {
        if (server_ == nullptr) {
            ++strays_;
            return;
        }
        served_ = now.time_since_epoch().count();
        server_->server.handle_packet(datagram.bytes, congested, now);
    } else if (!believes(*datagram.from)) {
        ++strays_;
    } else if (!ended_) {
        note_own_result(datagram.bytes);
        worker_->handle_packet(datagram.bytes, congested, now);
    }
}

void ChannelDriver::note_own_result(std::span<const std::byte> bytes) {
    const auto receiver = receiver_of_result(bytes);
    if (receiver == ATP_WORKER_ALL) {
        results_by_group_ = false;
    } else if (receiver) {
        reception_.handle_own_result();
    }
}

// Without tokens, only the sender's address identifies packets.
bool ChannelDriver::believes(const wire::Address& from) const { return has_tokens_ || from == data_address_; }

void ChannelDriver::handle_control(const wire::Datagram& datagram, Time now) {
    if (const auto joined = wire::decode_joined(datagram.bytes); joined && is_mine(*joined)) {
        handle_joined(*joined, *datagram.from, now);
        return;
    }
    if (const auto version = wire::refusal_version(datagram.bytes)) {
        const auto refused = wire::decode_refused(datagram.bytes);
        const bool foreign = !refused || refused->reason == wire::Refusal::version;
        // A switch of another version cannot name the job, so only its address identifies it.
        if (foreign ? *datagram.from != plan_.switch_address : !is_mine(*refused)) {
            ++strays_;
            return;
        }
        fail({.operation = Operation::join,
              .reason = foreign ? Reason::version_mismatch : Reason::rejected,
              .peer = to_string(*datagram.from),
              .text = refused && !refused->text.empty() ? refused->text
                                                        : fmt::format("it speaks version {}", *version & 0xFU)},
             now);
        return;
    }
    const auto join = wire::decode_join(datagram.bytes);
    if (join && server_ != nullptr && join->level == ATP_LEVELS && join->terms == plan_.terms) {
        answer_join(*join, *datagram.from);
        return;
    }
    ++strays_;
}

void ChannelDriver::handle_joined(const wire::Joined& joined, const wire::Address& from, Time now) {
    switch_answered_ = now;
    data_address_ = from;
    if (joined.ready) {
        standing_ = Standing::ready;
        waiting_for_.clear();
    } else {
        note_missing(joined);
        if (standing_ == Standing::ready) {
            standing_ = Standing::lost;
            lost_since_ = now;
            join_next_ = now;
        }
    }
    const std::scoped_lock lock(mutex_);
    joining_text_ =
        waiting_for_.empty() ? without_server(plan_.terms.server) : fmt::format("{} did not join", waiting_for_);
    if (joined.ready && !ready_) {
        worker_->begin(joined.stream);
        ready_ = true;
        changed_.notify_all();
    }
}

// After the tree is lost, reports the ranks that were missing first, while they are: others leave as a consequence.
void ChannelDriver::note_missing(const wire::Joined& joined) {
    std::uint32_t units = joined.missing_units;
    std::uint32_t members = joined.missing_members;
    if (standing_ == Standing::lost) {
        units &= missing_units_;
        members &= missing_members_;
        if (units == 0 || (members == 0) != (missing_members_ == 0)) return;
    }
    missing_units_ = units;
    missing_members_ = members;
    waiting_for_ = missing_ranks(units, members);
}

// Answers the last switch, whose server runs here.
void ChannelDriver::answer_join(const wire::Join& join, const wire::Address& from) {
    server_down_ = from;
    const std::span<std::byte> room = socket_->reserve(64);
    if (room.empty()) return;
    const wire::Joined joined{
        .job = join.terms.job, .token = join.terms.token, .channel = join.terms.channel, .ready = true};
    socket_->commit(wire::encode(joined, room), from, wire::Ecn::not_capable);
}

void ChannelDriver::join(Time now) {
    const bool ready = standing_ == Standing::ready;
    const bool receives_group = group_socket_ != nullptr && reception_.assess(now, ready);
    if (group_socket_ != nullptr && reception_.reports_again()) report_group();
    const bool hurries = !ready || (group_socket_ != nullptr && reception_.hurries());
    join_next_ = now + (hurries ? join_impatient : join_refresh);
    const std::span<std::byte> room = socket_->reserve(256);
    if (room.empty()) return;
    const wire::Join join{.terms = plan_.terms,
                          .level = plan_.level,
                          .begun = standing_ != Standing::joining,
                          .receives_group = receives_group,
                          .units = {plan_.unit}};
    const std::size_t size = wire::encode(join, room);
    if (size != 0) socket_->commit(size, plan_.switch_address, wire::Ecn::not_capable);
}

void ChannelDriver::handle_wake(Time now) {
    std::optional<Error> abort;
    {
        const std::scoped_lock lock(mutex_);
        while (!submitted_.empty()) {
            waiting_.push_back(std::move(submitted_.front()));
            submitted_.pop_front();
        }
        abort.swap(abort_);
    }
    if (abort) fail(*abort, now);
    take_submissions(now);
}

void ChannelDriver::take_submissions(Time now) {
    while (!waiting_.empty()) {
        Part& part = waiting_.front();
        const auto number = worker_->submit(part.work->slices()[part.number], now, part.work->deadline());
        if (!number) {
            if (!worker_->failed()) return;  // its queue is full: the next event makes room
            break;
        }
        in_flight_.push_back(std::move(part));
        waiting_.pop_front();
    }
}

void ChannelDriver::take_events(Time now) {
    if (ended_) return;
    while (const auto event = worker_->poll_event()) {
        if (event->kind != endpoint::EngineEvent::Kind::completed) {
            // fail() ends this part with all others, so that a caller that sees the error finds the channel ended.
            fail(describe(*event, now), now);
            return;
        }
        const Part part = std::move(in_flight_.front());
        in_flight_.pop_front();
        part.work->finish_part(std::nullopt);
    }
    if (!waiting_.empty()) take_submissions(now);
}

void ChannelDriver::transmit(Time now) {
    for (int sent = 0; sent < packets_per_transmit && !blocked_ && !ended_; ++sent) {
        std::span<std::byte> room = socket_->reserve(worker_->packet_bytes());
        if (room.empty()) {
            flush();
            room = socket_->reserve(worker_->packet_bytes());
            if (room.empty()) break;
        }
        const auto size = worker_->poll_transmit(room, now);
        if (!size) break;
        counted_ = true;
        socket_->commit(*size, data_address_);
    }
    if (server_ != nullptr) transmit_server();
    flush();
}

void ChannelDriver::transmit_server() {
    while (server_->server.has_transmit() && !blocked_) {
        std::span<std::byte> room = socket_->reserve(server_->server.packet_bytes());
        if (room.empty()) {
            flush();
            room = socket_->reserve(server_->server.packet_bytes());
            if (room.empty()) return;
        }
        const auto transmit = server_->server.poll_transmit(room);
        if (!transmit) return;
        if (server_down_.family() != wire::Family::none) socket_->commit(transmit->size, server_down_);
    }
}

void ChannelDriver::flush() {
    const bool waits = socket_->flush().waiting != 0;
    if (waits == blocked_) return;
    blocked_ = waits;
    static_cast<void>(loop_->change(socket_->descriptor(), {.read = true, .write = waits}));
}

void ChannelDriver::handle_timeout(Time now) {
    if (ended_) return;
    if (now >= join_next_) join(now);
    worker_->handle_timeout(now);
    take_events(now);
    const bool pending = !in_flight_.empty() || !waiting_.empty();
    if (standing_ == Standing::lost && pending && now - lost_since_ > lost_grace) {
        fail({.operation = Operation::wait,
              .reason = Reason::failed,
              .peer = waiting_for_.empty() ? to_string(plan_.switch_address) : waiting_for_,
              .elapsed = now - lost_since_,
              .text = waiting_for_.empty() ? "the switches lost the parameter server: check its process"
                                           : waiting_for_ + " left the job or is unreachable: check its process"},
             now);
    }
    publish(now);
}

void ChannelDriver::finish_round(Time now) {
    if (!blocked_) transmit(now);
    publish(now);
}

Time ChannelDriver::poll_timeout() const {
    if (ended_) return never;
    const Time lost = standing_ == Standing::lost ? lost_since_ + lost_grace + std::chrono::milliseconds(1) : never;
    return std::min(
        {worker_->poll_timeout(), join_next_, lost > net::now() ? lost : never, counted_ ? publish_next_ : never});
}

// Ends the channel for good. The worker is not driven any more: it refers to tensors that their owners may free when
// this function has finished their parts.
void ChannelDriver::fail(const Error& error, Time now) {
    std::deque<Part> parts;
    parts.swap(in_flight_);
    std::ranges::move(waiting_, std::back_inserter(parts));
    waiting_.clear();
    {
        const std::scoped_lock lock(mutex_);
        std::ranges::move(submitted_, std::back_inserter(parts));
        submitted_.clear();
        if (!error_) error_ = error;
        changed_.notify_all();
    }
    if (!ended_) {
        ended_ = true;
        leave();
        counted_ = true;
        publish_next_ = now;
        publish(now);
    }
    for (const Part& part : parts) {
        Error own = error;
        own.operation = part.work->operation();
        own.elapsed = std::max(Duration::zero(), now - part.work->begun());
        part.work->finish_part(std::move(own));
    }
}

Error ChannelDriver::describe(const endpoint::EngineEvent& event, Time now) const {
    switch (event.kind) {
        case endpoint::EngineEvent::Kind::mismatched:
            return {.reason = Reason::mismatched,
                    .elapsed = event.elapsed,
                    .text =
                        "the ranks called different operations: make all ranks call the same sequence with equal types "
                        "and sizes"};
        case endpoint::EngineEvent::Kind::overflowed:
            return {.reason = Reason::too_large,
                    .elapsed = event.elapsed,
                    .text = fmt::format("a value or a sum does not fit 32 bits (floats at scale {}), and the protocol "
                                        "{} has no server that adds it: use a smaller scale, or ATP",
                                        plan_.terms.scale, wire::to_string(plan_.terms.protocol))};
        default: return describe_silence(event, now);
    }
}

Error ChannelDriver::describe_silence(const endpoint::EngineEvent& event, Time now) const {
    Error error{.reason = Reason::timed_out, .elapsed = event.elapsed};
    const std::string missing = missing_ranks(event.missing_units, event.missing_members);
    // Ranks that were missing may have joined since the last message of the switch.
    const bool switch_silent = now - switch_answered_ > 3 * join_refresh;
    error.peer = missing.empty() || switch_silent ? to_string(plan_.switch_address) : missing;
    if (!missing.empty() && !switch_silent) {
        error.text = "no data of this operation arrived from them: check that these processes run and call it";
    } else if (!event.answered || now - event.answered_at > std::chrono::seconds(1)) {
        error.text = fmt::format(
            "nothing was received from the {} {}", worker_->answerer(),
            event.answered ? fmt::format("for {:.1f} s", to_seconds(now - event.answered_at)) : std::string("at all"));
        if (switch_silent) {
            error.text += fmt::format(", and nothing from the switch for {:.1f} s", to_seconds(now - switch_answered_));
        }
    } else {
        error.text = fmt::format("timed out although the {} answers: raise the timeout", worker_->answerer());
    }
    return error;
}

// "rank 3", "ranks 3, 5"; empty if there are none.
std::string ChannelDriver::missing_ranks(std::uint32_t units, std::uint32_t members) const {
    std::string list;
    unsigned count = 0;
    for (; units != 0; units &= units - 1) {
        const auto unit = static_cast<unsigned>(std::countr_zero(units));
        if (unit >= plan_.membership->units()) break;
        const std::uint32_t mask = plan_.membership->unit_mask(unit);
        for (std::uint32_t bits = members == 0 ? mask : members & mask; bits != 0; bits &= bits - 1) {
            list += fmt::format("{}{}", count == 0 ? "" : ", ",
                                plan_.membership->rank_of(unit, static_cast<unsigned>(std::countr_zero(bits))));
            ++count;
        }
    }
    if (count == 0) return {};
    return (count == 1 ? "rank " : "ranks ") + list;
}

void ChannelDriver::publish(Time now) {
    if (!counted_ || now < publish_next_) return;
    counted_ = false;
    publish_next_ = now + publish_interval;
    const std::scoped_lock lock(mutex_);
    published_.worker = worker_->counters();
    if (server_ != nullptr) published_.server = server_->server.counters();
    published_.udp = socket_->counters();
    if (group_socket_ != nullptr) published_.group_udp = group_socket_->counters();
    published_.group_results = group_results_;
    published_.results_by_group = results_by_group_;
    // Copying texts allocates memory: copy them only if they changed.
    if (published_report_.revision() != socket_->report().revision()) published_report_ = socket_->report();
    published_.window_packets = worker_->window_packets();
    published_.strays = strays_;
}

}  // namespace atp::comm
