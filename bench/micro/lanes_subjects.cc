// SPDX-License-Identifier: Apache-2.0
// Measures quantise, dequantise and accumulate as a worker and a switch use them. One side is a tensor or a stream of
// packets that is too large for any cache; the other side is a ring of buffers that is reused. The roofline is memcpy
// of the same bytes between the same addresses in the same order.
#include <algorithm>
#include <memory>
#include <vector>

#include "numeric/lanes32_switch.h"
#include "numeric/lanes32_worker.h"
#include "packets.h"
#include "subjects.h"

namespace atp::bench {
namespace {

constexpr std::size_t lanes = lanes_of_mtu;
constexpr std::size_t lanes_bytes = lanes * ATP_LANE_BYTES;
// A power of two, so that values return from the wire unchanged.
constexpr float scale = 0x1p20F;
constexpr float inverse_scale = 0x1p-20F;
constexpr double share_bar = 0.8;

float float_value(std::size_t at) { return static_cast<float>(lane_value(at)) * inverse_scale; }

std::size_t fragments_in(const Size& size) { return std::max(size.tensor_bytes / lanes_bytes, std::size_t{1}); }

Subject gigabytes(std::string name, std::size_t fragments) {
    Subject subject;
    subject.name = std::move(name);
    subject.unit = "GB/s";
    subject.units_per_pass = static_cast<double>(fragments * lanes_bytes) / 1e9;
    subject.bar = {BarOn::share, share_bar};
    return subject;
}

}  // namespace

Subject quantise_subject(const Size& size) {
    struct State {
        std::vector<float> tensor;
        Packets ring;
        bool fits = true;
    };
    const std::size_t fragments = fragments_in(size);
    const auto state =
        std::make_shared<State>(State{std::vector<float>(fragments * lanes), Packets(size.ring_packets, lanes)});
    for (std::size_t at = 0; at < state->tensor.size(); ++at) {
        state->tensor[at] = float_value(at);
    }
    Subject subject = gigabytes("quantise", fragments);
    subject.pass = [state, fragments] {
        for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
            std::byte* const wire = state->ring.lanes_of(fragment % state->ring.count());
            state->fits &= numeric::quantise(&state->tensor[fragment * lanes], lanes, scale, wire);
        }
    };
    subject.limit_pass = [state, fragments] {
        for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
            std::byte* const wire = state->ring.lanes_of(fragment % state->ring.count());
            copy_bytes(wire, &state->tensor[fragment * lanes], lanes_bytes);
        }
    };
    subject.verify = [state, fragments] {
        Packets expected(state->ring.count(), lanes);
        for (std::size_t at = 0; at < fragments * lanes; ++at) {
            expected.set(at / lanes % expected.count(), at % lanes, lane_value(at));
        }
        return state->fits && state->ring.hash() == expected.hash();
    };
    return subject;
}

Subject dequantise_subject(const Size& size) {
    struct State {
        std::vector<float> tensor;
        Packets ring;
    };
    const std::size_t fragments = fragments_in(size);
    const auto state =
        std::make_shared<State>(State{std::vector<float>(fragments * lanes), Packets(size.ring_packets, lanes)});
    for (std::size_t at = 0; at < size.ring_packets * lanes; ++at) {
        state->ring.set(at / lanes, at % lanes, lane_value(at));
    }
    Subject subject = gigabytes("dequantise", fragments);
    subject.pass = [state, fragments] {
        for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
            const std::byte* const wire = state->ring.lanes_of(fragment % state->ring.count());
            numeric::dequantise(wire, lanes, inverse_scale, &state->tensor[fragment * lanes]);
        }
    };
    subject.limit_pass = [state, fragments] {
        for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
            const std::byte* const wire = state->ring.lanes_of(fragment % state->ring.count());
            copy_bytes(&state->tensor[fragment * lanes], wire, lanes_bytes);
        }
    };
    subject.verify = [state] {
        for (std::size_t at = 0; at < state->tensor.size(); ++at) {
            if (state->tensor[at] != float_value(at % (state->ring.count() * lanes))) {
                return false;
            }
        }
        return true;
    };
    return subject;
}

Subject accumulate_subject(const Size& size) {
    struct State {
        Packets stream;
        std::vector<std::int32_t> aggregators;
        bool overflow = false;
    };
    const std::size_t ring = size.ring_packets;
    // A group contains one gradient of each worker for each aggregator. The stream has only whole groups, so that each
    // aggregator holds the sum of all workers at the end.
    const std::size_t group = ring * workers;
    const std::size_t fragments = std::max(fragments_in(size) / group, std::size_t{1}) * group;
    const auto state =
        std::make_shared<State>(State{Packets(fragments, lanes), std::vector<std::int32_t>(ring * lanes)});
    for (std::size_t at = 0; at < fragments * lanes; ++at) {
        state->stream.set(at / lanes, at % lanes, lane_value(at));
    }
    Subject subject = gigabytes("accumulate", fragments);
    subject.pass = [state, fragments, ring] {
        for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
            const std::byte* const wire = state->stream.lanes_of(fragment);
            std::int32_t* const aggregator = &state->aggregators[fragment % ring * lanes];
            if (fragment / ring % workers == 0) {
                numeric::lanes_store(wire, lanes, aggregator);
            } else {
                state->overflow |= numeric::lanes_add(wire, lanes, aggregator);
            }
        }
    };
    subject.limit_pass = [state, fragments, ring] {
        for (std::size_t fragment = 0; fragment < fragments; ++fragment) {
            copy_bytes(&state->aggregators[fragment % ring * lanes], state->stream.lanes_of(fragment), lanes_bytes);
        }
    };
    subject.verify = [state, fragments, ring, group] {
        std::vector<std::int32_t> expected(ring * lanes);
        for (std::size_t at = (fragments - group) * lanes; at < fragments * lanes; ++at) {
            expected[at % expected.size()] += lane_value(at);
        }
        return !state->overflow && state->aggregators == expected;
    };
    return subject;
}

}  // namespace atp::bench
