// SPDX-License-Identifier: Apache-2.0
// Measures what a worker does with each element: reads it from a tensor of one type and writes an integer of a form,
// and the reverse. One side is a tensor that is too large for any cache; the other side is a ring of buffers that is
// reused. The roofline is memcpy of the elements.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "numeric/half.h"
#include "packets.h"
#include "protocol/fragment_format.h"
#include "protocol/waker.h"
#include "subjects.h"
#include "tensor/fitted_tensor.h"
#include "tensor/tensors.h"

namespace atp::bench {
namespace {

using numeric::ElementType;

// Values are multiples of 2^-6 below 1: exact in every type, and at this scale integers of 7 bits.
constexpr int scale_exponent = 6;

std::int32_t integer_at(std::size_t at) {
    constexpr int bits_dropped = 17;  // lane_value() has 24 bits
    return lane_value(at) >> bits_dropped;
}

float value_at(std::size_t at) { return static_cast<float>(integer_at(at)) / static_cast<float>(1 << scale_exponent); }

// Elements in host memory.
class Elements {
  public:
    Elements(ElementType type, std::size_t count) : type_(type), bytes_(count * numeric::bytes_of(type)) {}

    std::byte* at(std::size_t element) { return &bytes_[element * numeric::bytes_of(type_)]; }
    void set(std::size_t element, float value) {
        std::uint16_t half = 0;
        if (type_ == ElementType::float16) numeric::floats_to_halves(&value, 1, &half);
        if (type_ == ElementType::bfloat16) numeric::floats_to_bfloats(&value, 1, &half);
        const void* const source = type_ == ElementType::float32 ? static_cast<const void*>(&value) : &half;
        std::memcpy(at(element), source, numeric::bytes_of(type_));
    }
    float get(std::size_t element) {
        float value = 0;
        std::uint16_t half = 0;
        std::memcpy(type_ == ElementType::float32 ? static_cast<void*>(&value) : &half, at(element),
                    numeric::bytes_of(type_));
        if (type_ == ElementType::float16) numeric::halves_to_floats(&half, 1, &value);
        if (type_ == ElementType::bfloat16) numeric::bfloats_to_floats(&half, 1, &value);
        return value;
    }

  private:
    ElementType type_;
    std::vector<std::byte> bytes_;
};

// A tensor with a scale of its own, and the ring: a buffer holds the integers or the elements of a fragment.
struct Conversion {
    Conversion(const Size& size, ElementType element_type, std::uint8_t lane_form)
        : type(element_type),
          form(lane_form),
          fragment(lanes_of_mtu * atp_elements_per_word(form)),
          fragments(std::max(size.tensor_bytes / ATP_LANE_BYTES / fragment, std::size_t{1})),
          element_bytes(numeric::bytes_of(type)),
          buffer_bytes(std::size_t{fragment} * ATP_LANE_BYTES),
          elements(type, fragments * fragment),
          ring(size.ring_packets * buffer_bytes) {}

    std::span<std::byte> buffer(std::size_t at, std::size_t bytes) {
        return {&ring[at % (ring.size() / buffer_bytes) * buffer_bytes], bytes};
    }
    // Sums settle once in the life of a tensor, so each pass has a new one.
    void renew() {
        const std::uint64_t count = fragments * fragment;
        const auto scales =
            std::make_shared<tensor::SpanScales>(count, form, nullptr, std::make_shared<protocol::SilentWaker>());
        scales->begin(protocol::scale_byte(scale_exponent));
        for (std::uint64_t span = 0; span < scales->count(); ++span) scales->decide(span, true);
        tensor = std::make_unique<tensor::FittedTensor>(
            tensor::make_sum_tensor(type, elements.at(0), elements.at(0), count, 1, 1),
            tensor::FittedTensor::Numbers{.form = form, .scales = scales});
    }

    ElementType type;
    std::uint8_t form;
    std::size_t fragment;  // elements
    std::size_t fragments;
    std::size_t element_bytes;
    std::size_t buffer_bytes;
    Elements elements;
    std::vector<std::byte> ring;
    std::unique_ptr<tensor::FittedTensor> tensor;
    bool fits = true;
};

std::int32_t integer_of(const std::byte* integers, std::size_t at, std::size_t bytes) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < bytes; ++byte) {
        bits = bits << 8U | std::to_integer<std::uint32_t>(integers[at * bytes + byte]);
    }
    const auto unused = static_cast<unsigned>(32 - 8 * bytes);
    return static_cast<std::int32_t>(bits << unused) >> unused;
}

void put(std::byte* integers, std::size_t at, std::size_t bytes, std::uint32_t bits) {
    for (std::size_t byte = bytes; byte-- > 0; bits >>= 8U) {
        integers[at * bytes + byte] = static_cast<std::byte>(bits);
    }
}

Subject rate_of(std::string_view action, const Conversion& conversion) {
    Subject subject;
    subject.name = conversion_name(action, conversion.type, conversion.form);
    subject.unit = "GB/s";
    subject.units_per_pass =
        static_cast<double>(conversion.fragments * conversion.fragment * conversion.element_bytes) / 1e9;
    return subject;
}

}  // namespace

std::string conversion_name(std::string_view action, ElementType type, std::uint8_t form) {
    return fmt::format("{}_{}_int{}", action, to_string(type), 8 * protocol::element_bytes(form));
}

Subject send_subject(const Size& size, ElementType type, std::uint8_t form) {
    const auto state = std::make_shared<Conversion>(size, type, form);
    for (std::size_t at = 0; at < state->fragments * state->fragment; ++at) state->elements.set(at, value_at(at));
    Subject subject = rate_of("send", *state);
    const std::size_t lane_bytes = protocol::element_bytes(form);
    subject.prepare = [state] { state->renew(); };
    subject.pass = [state, lane_bytes] {
        for (std::size_t at = 0; at < state->fragments; ++at) {
            state->fits &=
                state->tensor->load_integers(at * state->fragment, state->buffer(at, state->fragment * lane_bytes));
        }
    };
    subject.limit_pass = [state] {
        const std::size_t bytes = state->fragment * state->element_bytes;
        for (std::size_t at = 0; at < state->fragments; ++at) {
            copy_bytes(state->buffer(at, bytes).data(), state->elements.at(at * state->fragment), bytes);
        }
    };
    subject.verify = [state, lane_bytes] {
        const std::size_t kept = std::min(state->fragments, state->ring.size() / state->buffer_bytes);
        bool equal = state->fits;
        for (std::size_t at = state->fragments - kept; at < state->fragments; ++at) {
            const std::byte* const integers = state->buffer(at, state->buffer_bytes).data();
            for (std::size_t lane = 0; lane < state->fragment; ++lane) {
                equal &= integer_of(integers, lane, lane_bytes) == integer_at(at * state->fragment + lane);
            }
        }
        return equal;
    };
    return subject;
}

// Sums of a tensor of 32-bit integers arrive as float32.
Subject receive_subject(const Size& size, ElementType type, std::uint8_t form) {
    const auto state = std::make_shared<Conversion>(size, type, form);
    const std::size_t lane_bytes = protocol::element_bytes(form);
    const std::size_t buffers = state->ring.size() / state->buffer_bytes;
    for (std::size_t at = 0; at < buffers * state->fragment; ++at) {
        std::byte* const integers = state->buffer(at / state->fragment, state->buffer_bytes).data();
        const auto bits = form == ATP_DTYPE_INT32 ? std::bit_cast<std::uint32_t>(value_at(at))
                                                  : static_cast<std::uint32_t>(integer_at(at));
        put(integers, at % state->fragment, lane_bytes, bits);
    }
    Subject subject = rate_of("receive", *state);
    subject.prepare = [state] { state->renew(); };
    subject.pass = [state, lane_bytes, form] {
        for (std::size_t at = 0; at < state->fragments; ++at) {
            const std::span<const std::byte> integers = state->buffer(at, state->fragment * lane_bytes);
            if (form == ATP_DTYPE_INT32) {
                state->tensor->store(at * state->fragment, integers);
            } else {
                state->tensor->store_narrow(at * state->fragment, integers);
            }
        }
    };
    subject.limit_pass = [state] {
        const std::size_t bytes = state->fragment * state->element_bytes;
        for (std::size_t at = 0; at < state->fragments; ++at) {
            copy_bytes(state->elements.at(at * state->fragment), state->buffer(at, bytes).data(), bytes);
        }
    };
    subject.verify = [state, buffers] {
        bool equal = true;
        for (std::size_t at = 0; at < state->fragments * state->fragment; ++at) {
            equal &= state->elements.get(at) == value_at(at % (buffers * state->fragment));
        }
        return equal;
    };
    return subject;
}

}  // namespace atp::bench
