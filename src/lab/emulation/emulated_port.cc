// SPDX-License-Identifier: Apache-2.0
#include "emulation/emulated_port.h"

#include <algorithm>
#include <limits>

namespace atp::emulation {
namespace {

constexpr std::uint64_t work_per_byte = 8 * 1'000'000'000ULL;
// The work of a full queue plus one admitted packet fits 64 bits.
static_assert(most_queue_bytes <= std::numeric_limits<std::uint64_t>::max() / work_per_byte / 2);

std::uint64_t queue_bytes_of(const PortConfig& config) {
    if (config.rate_bits_per_s <= 0 || config.queue_bytes == 0) return most_queue_bytes;
    return std::min(config.queue_bytes, most_queue_bytes);
}

std::uint64_t loss_threshold_of(const PortConfig& config) {
    return config.loss > 0 ? static_cast<std::uint64_t>(std::min(config.loss, 1.0) * 0x1p53) : 0;
}

std::uint64_t ecn_work_of(const PortConfig& config) {
    if (config.ecn_bytes == 0) return std::numeric_limits<std::uint64_t>::max();
    return std::min(config.ecn_bytes, most_queue_bytes) * work_per_byte;
}

}  // namespace

bool emulates(const PortConfig& config) { return config.rate_bits_per_s > 0 || config.loss > 0; }

PortCounters& PortCounters::operator+=(const PortCounters& other) {
    passed += other.passed;
    bytes += other.bytes;
    marked += other.marked;
    dropped_full += other.dropped_full;
    dropped_loss += other.dropped_loss;
    return *this;
}

EmulatedPort::EmulatedPort(const PortConfig& config, std::uint64_t seed, std::uint64_t stream)
    : rate_bits_per_s_(static_cast<std::uint64_t>(std::max<std::int64_t>(config.rate_bits_per_s, 0))),
      queue_bytes_(queue_bytes_of(config)),
      ecn_work_(ecn_work_of(config)),
      loss_threshold_(loss_threshold_of(config)),
      overhead_bytes_(config.overhead_bytes),
      early_(config.early),
      random_(seed, stream) {}

Admission EmulatedPort::admit(std::uint32_t bytes, Time now) {
    const std::uint64_t wire_bytes = std::uint64_t{bytes} + overhead_bytes_;
    const std::uint64_t backlog = backlog_work(now);
    if (wire_bytes > queue_bytes_ || backlog > (queue_bytes_ - wire_bytes) * work_per_byte) {
        ++counters_.dropped_full;
        return {.verdict = Verdict::drop_full, .departs = now};
    }
    const bool mark = backlog > ecn_work_;
    const Time departs = occupy(wire_bytes, now);
    if (loses()) {
        ++counters_.dropped_loss;
        return {.verdict = Verdict::drop_loss, .departs = departs};
    }
    ++counters_.passed;
    counters_.bytes += wire_bytes;
    counters_.marked += mark ? 1 : 0;
    // A held packet leaves at its departure. Until then no later packet may pass, because it would overtake.
    const bool passes = departs <= now + early_ && held_until_ <= now;
    if (!passes) held_until_ = departs;
    return {.verdict = passes ? Verdict::pass_now : Verdict::hold, .mark = mark, .departs = departs};
}

std::uint64_t EmulatedPort::backlog_bytes(Time now) const {
    return (backlog_work(now) + work_per_byte - 1) / work_per_byte;
}

std::uint64_t EmulatedPort::backlog_work(Time now) const {
    if (busy_until_ < now) return 0;
    return static_cast<std::uint64_t>((busy_until_ - now).count()) * rate_bits_per_s_ + rest_work_;
}

// Time at which the last bit is sent, rounded up: no packet leaves early.
Time EmulatedPort::occupy(std::uint64_t wire_bytes, Time now) {
    if (rate_bits_per_s_ == 0) return now;
    if (busy_until_ < now) {
        busy_until_ = now;
        rest_work_ = 0;
    }
    const std::uint64_t work = wire_bytes * work_per_byte + rest_work_;
    busy_until_ += Duration(static_cast<std::int64_t>(work / rate_bits_per_s_));
    rest_work_ = work % rate_bits_per_s_;
    return busy_until_ + Duration(rest_work_ == 0 ? 0 : 1);
}

bool EmulatedPort::loses() { return loss_threshold_ != 0 && (random_.next() >> 11U) < loss_threshold_; }

}  // namespace atp::emulation
