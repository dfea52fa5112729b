// SPDX-License-Identifier: Apache-2.0
// Expected values: the elements of every worker, and the expected contents of every packet. They are computed from the
// configuration only, independently of the machines.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "check/configuration.h"
#include "protocol/channel.h"
#include "protocol/delivery.h"
#include "protocol/membership.h"
#include "wire/packet.h"

namespace atp::check {

inline constexpr std::uint16_t model_channel = 3;

[[nodiscard]] std::uint32_t job_number(unsigned job);
[[nodiscard]] std::uint64_t job_token(unsigned job, bool earlier_incarnation);
// The inverse of job_token(). Two jobs may have one number.
[[nodiscard]] unsigned job_of(std::uint64_t token);
[[nodiscard]] bool is_earlier(std::uint64_t token);
[[nodiscard]] protocol::ChannelConfig channel_of(const Configuration& configuration, unsigned job,
                                                 bool earlier_incarnation);

class Truth {
  public:
    // Borrows both; they must outlive this object.
    Truth(const Configuration& configuration, const protocol::Membership& membership)
        : configuration_(configuration), membership_(membership) {}

    // The element of a worker in the fragment at `offset` from the first.
    [[nodiscard]] float value(bool earlier_incarnation, unsigned rank, std::int32_t offset) const;
    // What a rank of this worker adds to that element, if the worker stands for several.
    [[nodiscard]] float value_of_rank(bool earlier_incarnation, unsigned worker, std::int32_t offset,
                                      unsigned rank) const;
    [[nodiscard]] unsigned ranks_each() const { return configuration_.ranks_each; }
    [[nodiscard]] std::uint8_t form() const { return configuration_.int16_lanes ? ATP_DTYPE_INT16 : ATP_DTYPE_INT32; }
    // Elements of a fragment, which are equal.
    [[nodiscard]] unsigned elements_each() const {
        return atp_elements_per_word(form()) * (configuration_.lanes() - 1U);
    }
    // Whether the fragment carries unscaled integers.
    [[nodiscard]] bool plain(std::int32_t offset) const;
    [[nodiscard]] protocol::Delivery delivery(std::int32_t offset) const;
    // The bit pattern of the result: the sum over all workers, or the value of the only sender.
    [[nodiscard]] std::uint32_t sum_bits(bool earlier_incarnation, std::int32_t offset) const;

    // Describes a wrong lane or audit word of a gradient, given the set that it names; empty if correct.
    [[nodiscard]] std::string wrong_gradient(const wire::Packet& packet) const;
    // Describes a wrong result; empty if correct.
    [[nodiscard]] std::string wrong_ack(const wire::Packet& packet) const;

    [[nodiscard]] std::int32_t offset_of(std::uint32_t seq) const {
        return static_cast<std::int32_t>(seq - configuration_.first_seq);
    }

  private:
    // Of all workers but the owner.
    [[nodiscard]] std::int64_t sum_of_others(bool earlier_incarnation, std::int32_t offset) const;
    // Whether the tensor of the fragment is in a mask of tensors.
    [[nodiscard]] bool is_in(std::uint8_t tensors, std::int32_t offset) const;

    const Configuration& configuration_;
    const protocol::Membership& membership_;
};

}  // namespace atp::check
