// SPDX-License-Identifier: Apache-2.0
// C interface that reducer.py calls through ctypes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "reducer.h"

#define ACCURACY_API extern "C" __attribute__((visibility("default")))

using atp::accuracy::Reducer;

struct accuracy_config {
    std::uint32_t workers;
    std::uint32_t lanes;
    double scale;
    std::int32_t switchml;   // 1: SwitchML, 0: ATP
    std::int32_t dynamic;    // 1: dynamic scaling, 0: fixed
    std::int32_t lane_type;  // of tensor::LaneType
    std::int32_t type;       // of numeric::ElementType
};

struct accuracy_counters {
    std::uint64_t fragments, float_fragments, overflows, bytes;
};

ACCURACY_API Reducer* accuracy_open(const accuracy_config* config) try {
    const atp::accuracy::ReducerConfig own{
        .workers = config->workers,
        .lanes = static_cast<std::uint16_t>(config->lanes),
        .type = static_cast<atp::numeric::ElementType>(config->type),
        .form = {.scale = config->scale,
                 .scaling = config->dynamic != 0 ? atp::tensor::Scaling::dynamic : atp::tensor::Scaling::fixed,
                 .lane_type = static_cast<atp::tensor::LaneType>(config->lane_type)}};
    return (config->switchml != 0 ? atp::accuracy::make_switchml(own) : atp::accuracy::make_atp(own)).release();
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return nullptr;
}

ACCURACY_API int accuracy_sum(Reducer* reducer, const std::byte* inputs, std::byte* sums, std::uint64_t elements) try {
    reducer->sum(inputs, sums, elements);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return -1;
}

// Writes at most `most` scales. Returns their number.
ACCURACY_API std::uint64_t accuracy_scales(const Reducer* reducer, float* scales, std::uint64_t most) {
    const std::vector<float> all = reducer->scales();
    std::copy_n(all.begin(), std::min<std::size_t>(most, all.size()), scales);
    return all.size();
}

ACCURACY_API void accuracy_count(const Reducer* reducer, accuracy_counters* counters) {
    const atp::accuracy::Counters now = reducer->counters();
    *counters = {now.fragments, now.float_fragments, now.overflows, now.bytes};
}

ACCURACY_API void accuracy_close(Reducer* reducer) { delete reducer; }
