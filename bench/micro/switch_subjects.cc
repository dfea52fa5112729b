// SPDX-License-Identifier: Apache-2.0
// Measures the whole path through a switch on one core, from packet bytes to decision and output bytes. Each of eight
// workers sends a window of fragments. Gradients come from memory outside all caches, aggregators are scattered over a
// table of the usual size, and each fragment gets an ACK. The rate counts gradients only. The roofline is memcpy of the
// gradients into memory of the size of the aggregators, in the same order.
#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "packets.h"
#include "protocol/switch.h"
#include "subjects.h"
#include "wire/packet.h"

namespace atp::bench {
namespace {

constexpr std::uint32_t job = 7;
constexpr std::uint32_t token = 0x5EED;
constexpr std::uint32_t members_mask = (1U << workers) - 1;
// Packets of one recvmmsg() call.
constexpr std::size_t driver_batch = 64;

// Packets in the order of a round: every worker sends its whole window, slot by slot; then all ACKs arrive.
class Traffic {
  public:
    // `flags`: of the gradients.
    Traffic(const Size& size, std::uint32_t lanes, std::uint16_t flags)
        : window_(size.ring_packets),
          rounds_(std::max(size.tensor_bytes / (size.ring_packets * workers * ATP_LANE_BYTES * lanes), std::size_t{1})),
          lanes_(lanes),
          flags_(flags),
          gradients_(rounds_ * workers * window_, lanes),
          // No code here reads an ACK's lanes, so one lane suffices.
          acks_(rounds_ * window_, 1),
          config_{
              .aggregators = std::max(protocol::SwitchConfig{}.aggregators, static_cast<std::uint32_t>(2 * window_)),
              .lanes = lanes},
          switch_(config_),
          copies_(std::size_t{config_.aggregators} * gradients_.packet_bytes()) {
        admitted_ = switch_.admit(job, token, 0);
        for (std::size_t at = 0; at < gradients_.count(); ++at) {
            write_lanes(at);
        }
    }

    [[nodiscard]] std::size_t gradients() const { return gradients_.count(); }
    [[nodiscard]] std::size_t packet_bytes() const { return gradients_.packet_bytes(); }

    // Writes new packets with the next sequence numbers into the same buffers, as a network card would do.
    void receive() {
        first_seq_ += static_cast<std::uint32_t>(fragments());
        for (std::size_t at = 0; at < gradients_.count(); ++at) {
            wire::encode_header(header(ATP_TYPE_GRADIENT, seq_of_gradient(at), worker_of(at)), gradients_.packet(at));
            if (worker_of(at) + 1 == workers) {
                write_lanes(at);  // the switch overwrote these lanes with the sum
            }
        }
        for (std::size_t at = 0; at < acks_.count(); ++at) {
            wire::encode_header(header(ATP_TYPE_ACK, first_seq_ + static_cast<std::uint32_t>(at), 0), acks_.packet(at));
        }
    }

    void aggregate() {
        results_ = 0;
        for (std::size_t round = 0; round < rounds_; ++round) {
            handle(gradients_, round * workers * window_, workers * window_);
            handle(acks_, round * window_, window_);
        }
    }

    void copy() {
        for (std::size_t at = 0; at < gradients_.count(); ++at) {
            const std::size_t to = index_of(at % window_) * gradients_.packet_bytes();
            copy_bytes(copies_.data() + to, gradients_.packet(at).data(), gradients_.packet_bytes());
        }
    }

    // True if every decision was right, and every result has the sum of all workers.
    bool right() {
        const auto& events = switch_.counters().events;
        const bool decided = events[ATP_EVENT_CLAIMED] % fragments() == 0 &&
                             events[ATP_EVENT_CLAIMED] == events[ATP_EVENT_COMPLETED] &&
                             events[ATP_EVENT_CLAIMED] == events[ATP_EVENT_RELEASED] &&
                             events[ATP_EVENT_ADDED] == events[ATP_EVENT_CLAIMED] * (workers - 2);
        if (!admitted_ || !decided || results_ != fragments() || switch_.occupied() != 0) {
            return false;
        }
        for (std::size_t at = 0; at < gradients_.count(); ++at) {
            if (worker_of(at) + 1 == workers && !result_is_right(at)) {
                return false;
            }
        }
        return true;
    }

  private:
    [[nodiscard]] std::size_t fragments() const { return rounds_ * window_; }
    [[nodiscard]] std::size_t worker_of(std::size_t gradient) const { return gradient / window_ % workers; }
    [[nodiscard]] std::uint32_t seq_of_gradient(std::size_t gradient) const {
        const std::size_t round = gradient / (workers * window_);
        return first_seq_ + static_cast<std::uint32_t>(round * window_ + gradient % window_);
    }
    // Scatters indices like a hash without collisions: an odd factor permutes a table whose size is a power of two.
    [[nodiscard]] std::uint32_t index_of(std::size_t slot) const {
        return static_cast<std::uint32_t>(slot) * 0x9E3779B1U & (std::bit_floor(config_.aggregators) - 1);
    }

    [[nodiscard]] atp_header header(atp_type type, std::uint32_t seq, std::size_t worker) const {
        atp_header header{};
        header.type = static_cast<std::uint8_t>(type);
        header.lanes = type == ATP_TYPE_ACK ? ATP_FLOAT32_LANES : ATP_INT32_LANES;
        header.flags = type == ATP_TYPE_GRADIENT ? flags_ : std::uint16_t{0};
        header.window_log2 = static_cast<std::uint8_t>(std::countr_zero(window_));
        header.job = job;
        header.token = token;
        header.worker = type == ATP_TYPE_ACK ? std::uint16_t{ATP_WORKER_ALL} : static_cast<std::uint16_t>(worker);
        header.seq = seq;
        header.index = index_of(seq % window_);
        header.bitmap0 = type == ATP_TYPE_ACK ? members_mask : 1U << worker;
        header.mask0 = members_mask;
        header.bitmap1 = 1;
        header.mask1 = 1;
        return header;
    }

    void write_lanes(std::size_t gradient) {
        for (std::size_t lane = 0; lane < lanes_; ++lane) {
            gradients_.set(gradient, lane, lane_value(gradient * lanes_ + lane));
        }
    }

    void handle(Packets& packets, std::size_t first, std::size_t count) {
        std::array<protocol::PacketBuffer, driver_batch> packet_buffers;
        for (std::size_t done = 0; done < count; done += driver_batch) {
            const std::size_t batch = std::min(driver_batch, count - done);
            for (std::size_t at = 0; at < batch; ++at) {
                const std::span<std::byte> bytes = packets.packet(first + done + at);
                packet_buffers[at] = {.data = bytes.data(),
                                      .size = static_cast<std::uint32_t>(bytes.size()),
                                      .capacity = static_cast<std::uint32_t>(bytes.size()),
                                      .congested = false,
                                      .verdict = {}};
            }
            now_ += std::chrono::microseconds(10);
            switch_.handle_batch(std::span(packet_buffers).first(batch), now_);
            for (std::size_t at = 0; at < batch; ++at) {
                results_ += static_cast<std::size_t>(packet_buffers[at].verdict.route == protocol::Route::up);
            }
        }
    }

    bool result_is_right(std::size_t gradient) {
        wire::Packet packet;
        if (wire::decode(gradients_.packet(gradient), packet) != wire::DecodeError::none) {
            return false;
        }
        if (packet.header.bitmap0 != members_mask || packet.header.hop != 1 || packet.header.flags != flags_ ||
            packet.header.seq != seq_of_gradient(gradient)) {
            return false;
        }
        for (std::size_t lane = 0; lane < lanes_; ++lane) {
            std::int32_t sum = 0;
            for (std::size_t worker = 0; worker < workers; ++worker) {
                sum += lane_value((gradient - worker * window_) * lanes_ + lane);
            }
            if (gradients_.get(gradient, lane) != sum) {
                return false;
            }
        }
        return true;
    }

    std::size_t window_;
    std::size_t rounds_;
    std::size_t lanes_;
    std::uint16_t flags_;
    Packets gradients_;
    Packets acks_;
    protocol::SwitchConfig config_;
    protocol::Switch switch_;
    std::vector<std::byte> copies_;
    Time now_{};
    std::uint32_t first_seq_ = 0;
    std::size_t results_ = 0;
    bool admitted_ = false;
};

Subject switch_subject(const Size& size, std::uint32_t lanes, std::uint16_t flags = 0) {
    const auto traffic = std::make_shared<Traffic>(size, lanes, flags);
    Subject subject;
    subject.prepare = [traffic] { traffic->receive(); };
    subject.pass = [traffic] { traffic->aggregate(); };
    subject.limit_pass = [traffic] { traffic->copy(); };
    subject.verify = [traffic] { return traffic->right(); };
    subject.units_per_pass = static_cast<double>(traffic->gradients());
    return subject;
}

Subject long_packets_subject(const Size& size, std::uint16_t flags) {
    Subject subject = switch_subject(size, lanes_of_mtu, flags);
    constexpr double packet_bits = 8.0 * (ATP_HEADER_BYTES + lanes_of_mtu * ATP_LANE_BYTES);
    subject.unit = "Gbit/s";
    subject.units_per_pass *= packet_bits / 1e9;
    subject.bar = {BarOn::value, 25.0};
    return subject;
}

}  // namespace

Subject switch_62_subject(const Size& size) {
    Subject subject = switch_subject(size, lanes_of_papers);
    subject.name = "switch_62";
    subject.unit = "packets/s";
    subject.bar = {BarOn::value, 5e6};
    return subject;
}

Subject switch_352_subject(const Size& size) {
    Subject subject = long_packets_subject(size, 0);
    subject.name = "switch_352";
    return subject;
}

Subject switch_352_proof_subject(const Size& size) {
    Subject subject = long_packets_subject(size, ATP_FLAG_PROOF);
    subject.name = "switch_352_proof";
    return subject;
}

}  // namespace atp::bench
