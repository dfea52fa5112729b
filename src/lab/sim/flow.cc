// SPDX-License-Identifier: Apache-2.0
#include "sim/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

namespace atp::sim {

// The fields that both ends read. They are shorter than any ATP packet, so that a segment cannot be decoded as one.
struct Segment {
    std::uint32_t flow = 0;
    std::uint16_t payload = 0;  // 0: an acknowledgement
    bool push = false;          // the sender cannot send more now: the receiver acknowledges at once
    bool echo = false;          // the receiver has seen marked segments
    std::uint64_t number = 0;   // of the segment; in an acknowledgement, of the segment that caused it
    std::uint64_t expected = 0;
};
static_assert(sizeof(Segment) == 24);

namespace {

// In addition to UDP, which overhead_bytes includes: TCP's header is 12 bytes longer, and RoCEv2 adds 12 bytes.
constexpr std::uint32_t header_bytes = 12;
constexpr std::uint32_t mtu_bytes = 1500;
constexpr std::uint32_t payload_max = mtu_bytes - 20 - 8 - header_bytes;
constexpr unsigned segments_an_ack = 2;
constexpr unsigned newer_until_lost = 3;
constexpr double initial_window = 10;
// 4 MB, the maximum send buffer of Linux.
constexpr double window_max = 4'000'000.0 / payload_max;
constexpr double window_min = 2;
constexpr std::uint64_t at_host_max_bytes = 32'000;

// Twice the number of segments that keep the path busy, so that a queue in the path does not reduce the rate.
double window_of_path(const Shared& shared, const Flow::Ends& ends) {
    unsigned links = 1;
    for (NodeId at = ends.from;; ++links) {
        at = shared.fabric.links[shared.fabric.next_hop(at, ends.to)].to;
        if (at == ends.to) break;
    }
    const double wire_bytes = mtu_bytes + shared.scenario.overhead_bytes;
    const double bits_per_ns = static_cast<double>(shared.scenario.rate_bits_per_s) / 1e9;
    const double serialisation_ns = wire_bytes * 8 / bits_per_ns;
    const double round_trip_ns =
        links * (2.0 * static_cast<double>(shared.scenario.delay.count()) + 2 * serialisation_ns);
    return std::max(8.0, std::ceil(2 * round_trip_ns / serialisation_ns));
}

Segment read(std::span<const std::byte> packet) {
    Segment segment;
    assert(packet.size() == sizeof segment);
    std::memcpy(&segment, packet.data(), sizeof segment);
    return segment;
}

}  // namespace

Flow::Flow(const Shared& shared, ProgramId program, std::uint32_t number, const Ends& ends, Transport transport)
    : shared_(shared),
      program_(program),
      number_(number),
      ends_(ends),
      transport_(transport),
      uplink_(shared.fabric.next_hop(ends.from, ends.to)),
      at_host_(at_host_max_bytes),
      window_(transport == Transport::tcp ? initial_window : window_of_path(shared, ends)),
      slow_start_until_(window_max) {}

std::uint32_t Flow::number_of(std::span<const std::byte> packet) { return read(packet).flow; }

std::string Flow::describe(std::span<const std::byte> packet) {
    const Segment segment = read(packet);
    return segment.payload == 0
               ? fmt::format("ACK flow={} expected={} seen={}{}", segment.flow, segment.expected, segment.number,
                             segment.echo ? " echo" : "")
               : fmt::format("SEGMENT flow={} number={} bytes={}", segment.flow, segment.number, segment.payload);
}

// ------------------------------------------------------------------------------------------------------------- Sender

void Flow::send(const Message& message, std::uint32_t rank, Time now) {
    const auto unbegun = [](const Waiting& waiting) { return waiting.left == waiting.message.bytes; };
    auto at = waiting_.end();
    while (at != waiting_.begin() && std::prev(at)->rank > rank && unbegun(*std::prev(at))) --at;
    waiting_.insert(at, {.message = message, .rank = rank, .left = message.bytes});
    transmit(now);
}

bool Flow::may_send() const {
    return (!lost_.empty() || !waiting_.empty()) && static_cast<double>(in_flight_) + 1 <= window_;
}

void Flow::transmit(Time now) {
    while (may_send()) {
        if (!at_host_.has_room(now)) {
            wake_by(at_host_.half_empty_at());
            return;
        }
        send_segment(next_segment(now), now);
    }
}

std::uint64_t Flow::next_segment(Time now) {
    if (lost_.empty()) {
        cut_segment(now);
        return next() - 1;
    }
    const std::uint64_t number = lost_.front();
    lost_.pop_front();
    Sent& again = sent(number);
    again.state = State::sent;
    again.resent = true;
    again.at = now;
    ++counters_.resent;
    return number;
}

void Flow::cut_segment(Time now) {
    Waiting& first = waiting_.front();
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(first.left, payload_max));
    first.left -= bytes;
    sent_.push_back({.at = now, .bytes = bytes});
    ++counters_.segments;
    if (first.left != 0) return;
    begun_.push_back({.message = first.message, .end = next()});
    waiting_.pop_front();
}

void Flow::send_segment(std::uint64_t number, Time now) {
    ++in_flight_;
    const Segment segment{.flow = number_,
                          .payload = static_cast<std::uint16_t>(sent(number).bytes),
                          .push = !may_send(),
                          .number = number};
    send_packet(ends_.from, ends_.to, segment, segment.payload, now);
    const std::uint32_t wire_bytes = segment.payload + header_bytes + shared_.scenario.overhead_bytes;
    at_host_.add(shared_.network.link(uplink_).idle_at(), wire_bytes);
    if (timer_ == never) arm(now);
}

void Flow::send_packet(NodeId from, NodeId to, const Segment& segment, std::uint32_t payload, Time now) {
    PacketPool& pool = shared_.network.pool();
    const PacketId packet = pool.allocate(program_);
    pool.resize(packet, sizeof segment);
    std::memcpy(pool.data(packet), &segment, sizeof segment);
    pool.address(packet, to, header_bytes + payload, transport_ == Transport::rdma);
    shared_.network.send(shared_.fabric.next_hop(from, to), packet, false, now);
}

void Flow::handle_packet(const Arrival& arrival, Time now) {
    const Segment segment = read(shared_.network.pool().bytes(arrival.packet));
    if (segment.payload == 0) {
        handle_ack(segment, now);
    } else {
        handle_data(segment, arrival.congested, now);
    }
}

void Flow::handle_ack(const Segment& segment, Time now) {
    const std::uint64_t oldest_before = oldest_;
    std::uint64_t newly = note_seen(segment.number, now);
    for (; oldest_ < segment.expected; sent_.pop_front(), ++oldest_) newly += note_seen(oldest_, now);
    scanned_ = std::max(scanned_, oldest_);
    find_lost();
    if (segment.echo && oldest_ >= recovery_until_) halve();
    grow(newly);
    if (oldest_ != oldest_before) {
        backoff_ = 0;
        arm(now);
    }
    transmit(now);
}

// Returns the number of segments newly known to have arrived: 0 or 1.
std::uint64_t Flow::note_seen(std::uint64_t number, Time now) {
    if (number < oldest_) return 0;
    Sent& segment = sent(number);
    if (segment.state == State::seen) return 0;
    if (segment.state == State::sent) {
        --in_flight_;
    } else {
        std::erase(lost_, number);
    }
    segment.state = State::seen;
    highest_seen_ = std::max(highest_seen_, number + 1);
    if (!segment.resent) measure(now - segment.at);
    return 1;
}

void Flow::find_lost() {
    const std::uint64_t before = lost_.size();
    for (; scanned_ + newer_until_lost < highest_seen_; ++scanned_) {
        Sent& segment = sent(scanned_);
        if (segment.state != State::sent || segment.resent) continue;
        segment.state = State::lost;
        lost_.push_back(scanned_);
        --in_flight_;
    }
    if (lost_.size() != before && lost_.back() >= recovery_until_) halve();
}

void Flow::halve() {
    recovery_until_ = next();
    if (transport_ == Transport::rdma) return;
    ++counters_.halvings;
    window_ = slow_start_until_ = std::max(window_ / 2, window_min);
}

void Flow::grow(std::uint64_t segments) {
    const bool slow_start = window_ < slow_start_until_;
    if (transport_ == Transport::rdma || (!slow_start && oldest_ < recovery_until_)) return;
    const auto count = static_cast<double>(segments);
    if (static_cast<double>(in_flight_) + count + 1 < window_) return;  // the window is not the limit
    window_ = std::min(slow_start ? window_ + count : window_ + count / window_, window_max);
}

// RTT estimation as in RFC 6298.
void Flow::measure(Duration round_trip) {
    if (smoothed_ == Duration::zero()) {
        smoothed_ = round_trip;
        variation_ = round_trip / 2;
        return;
    }
    variation_ = (3 * variation_ + std::chrono::abs(smoothed_ - round_trip)) / 4;
    smoothed_ = (7 * smoothed_ + round_trip) / 8;
}

Duration Flow::timeout() const {
    constexpr unsigned doublings_max = 16;
    const Duration once = std::max(shared_.scenario.min_timeout, smoothed_ + 4 * variation_);
    return std::min(once * (1U << std::min(backoff_, doublings_max)), shared_.scenario.max_timeout);
}

void Flow::arm(Time now) {
    timer_ = sent_.empty() ? never : now + timeout();
    wake_by(timer_);
}

// Schedules an event, unless an earlier event is scheduled. That event then schedules the next event: most timers move
// later, so this saves events.
void Flow::wake_by(Time time) {
    if (time >= woken_at_) return;
    woken_at_ = time;
    shared_.events.push({.time = time,
                         .order = shared_.events.next_order(),
                         .kind = Event::Kind::wake,
                         .program = program_,
                         .target = number_});
}

void Flow::on_wake(Time now) {
    if (woken_at_ > now) return;  // superseded by an earlier event
    woken_at_ = never;
    if (timer_ <= now) on_timeout(now);
    transmit(now);
    wake_by(timer_);
}

void Flow::on_timeout(Time now) {
    ++counters_.timeouts;
    lost_.clear();
    for (std::uint64_t number = oldest_; number < next(); ++number) {
        Sent& segment = sent(number);
        if (segment.state == State::seen) continue;
        segment.state = State::lost;
        lost_.push_back(number);
    }
    in_flight_ = 0;
    scanned_ = recovery_until_ = next();
    ++backoff_;
    if (transport_ == Transport::tcp) {
        slow_start_until_ = std::max(window_ / 2, window_min);
        window_ = 1;
    }
    arm(now);
}

// ----------------------------------------------------------------------------------------------------------- Receiver

void Flow::handle_data(const Segment& segment, bool congested, Time now) {
    echo_ |= congested;
    const bool in_order = segment.number == expected_ && arrived_.empty();
    if (in_order) {
        ++expected_;
    } else if (segment.number >= expected_) {
        const std::uint64_t place = segment.number - expected_;
        if (place >= arrived_.size()) arrived_.resize(place + 1);
        arrived_[place] = true;
        for (; !arrived_.empty() && arrived_.front(); arrived_.pop_front()) ++expected_;
    }
    deliver();
    ++unacknowledged_;
    const bool urgent = !in_order || segment.push || (congested && transport_ == Transport::tcp);
    if (urgent || unacknowledged_ >= segments_an_ack) acknowledge(segment.number, now);
}

void Flow::deliver() {
    for (; !begun_.empty() && begun_.front().end <= expected_; begun_.pop_front()) {
        counters_.delivered_bytes += begun_.front().message.bytes;
        received_.push_back(begun_.front().message);
    }
}

void Flow::acknowledge(std::uint64_t seen, Time now) {
    const Segment segment{.flow = number_, .echo = std::exchange(echo_, false), .number = seen, .expected = expected_};
    unacknowledged_ = 0;
    send_packet(ends_.to, ends_.from, segment, 0, now);
}

std::optional<Message> Flow::poll_received() {
    if (received_.empty()) return std::nullopt;
    const Message message = received_.front();
    received_.pop_front();
    return message;
}

}  // namespace atp::sim
