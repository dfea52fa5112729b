// SPDX-License-Identifier: Apache-2.0
// C interface that reducer.py calls through ctypes.
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
    std::int32_t switchml;     // 1: SwitchML, 0: ATP
    std::int32_t dynamic;      // 1: dynamic scaling, 0: fixed
    std::int32_t int16_lanes;  // 1: int16 lanes, 0: int32
};

struct accuracy_counters {
    std::uint64_t fragments, float_fragments, overflows, bytes;
};

ACCURACY_API Reducer* accuracy_open(const accuracy_config* config) try {
    const atp::accuracy::ReducerConfig own{
        .workers = config->workers,
        .lanes = static_cast<std::uint16_t>(config->lanes),
        .form = {.scale = config->scale,
                 .scaling = config->dynamic != 0 ? atp::tensor::Scaling::dynamic : atp::tensor::Scaling::fixed,
                 .lane_type = config->int16_lanes != 0 ? atp::tensor::LaneType::int16 : atp::tensor::LaneType::int32}};
    return (config->switchml != 0 ? atp::accuracy::make_switchml(own) : atp::accuracy::make_atp(own)).release();
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return nullptr;
}

ACCURACY_API int accuracy_sum(Reducer* reducer, const float* inputs, std::uint32_t workers, float* sums,
                              std::uint64_t elements) try {
    reducer->sum({inputs, workers * elements}, {sums, elements});
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return -1;
}

ACCURACY_API void accuracy_count(const Reducer* reducer, accuracy_counters* counters) {
    const atp::accuracy::Counters now = reducer->counters();
    *counters = {now.fragments, now.float_fragments, now.overflows, now.bytes};
}

ACCURACY_API void accuracy_close(Reducer* reducer) { delete reducer; }
