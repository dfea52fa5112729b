// SPDX-License-Identifier: Apache-2.0
#include "scale_vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "support/network.h"
#include "tensor/number_fitter.h"
#include "tensor/tensors.h"

namespace atp::conformance {
namespace {

using numeric::ElementType;
using tensor::LaneType;
using tensor::NumberFitter;

constexpr std::uint32_t lanes_of_packet = 352;
constexpr std::uint32_t short_cell = 128;    // elements of a cell of int16 and int8
constexpr std::uint32_t short_span = 5'632;  // elements of a span of int16 and int8
constexpr std::uint32_t few = 300;           // elements of a small tensor, which is not exact
constexpr double job_scale = 1e8;

using Values = std::vector<float>;
using Step = std::vector<Runs<float>>;  // what each worker adds

struct Job {
    std::string description;
    LaneType lane_type = LaneType::int32;
    std::vector<Step> steps;
};

// The tensor of a worker in one operation.
struct Operand {
    Values in;
    Values out;
    NumberFitter::Fitted fitted{};
};

template <class Value, class Values>
Runs<Value> runs_of(const Values& values) {
    Runs<Value> runs;
    for (const Value value : values) {
        if (runs.empty() || runs.back().second != value) runs.emplace_back(0, value);
        ++runs.back().first;
    }
    return runs;
}

Runs<std::uint32_t> bits_of(const Values& values) {
    std::vector<std::uint32_t> bits;
    for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return runs_of<std::uint32_t>(bits);
}

Values values_of(const Runs<float>& runs) {
    Values values;
    for (const auto& [count, value] : runs) values.insert(values.end(), count, value);
    return values;
}

int exponent_of(std::uint8_t scale) { return int{scale} - static_cast<int>(ATP_SCALE_ONE); }

Runs<std::uint32_t> words_of(const protocol::Tensor& plain) {
    std::vector<std::byte> bytes(plain.size() * ATP_LANE_BYTES);
    if (!plain.load_integers(0, bytes)) throw std::logic_error("a plain tensor has no integers");
    std::vector<std::uint32_t> words;
    for (std::size_t at = 0; at < bytes.size(); at += ATP_LANE_BYTES) words.push_back(wire::load_u32(&bytes[at]));
    return runs_of<std::uint32_t>(words);
}

// The integer of element `at` of the `each` ones that share a word.
std::int32_t integer_at(const std::byte* word, std::size_t at, std::size_t each) {
    const unsigned bits = 32 / static_cast<unsigned>(each);
    const std::uint32_t left = wire::load_u32(word) << (bits * at);
    return static_cast<std::int32_t>(left) >> (32 - bits);
}

// Neighbours that share a word are equal in all jobs, so they have an integer together.
std::vector<std::optional<std::int32_t>> integers_of(const protocol::Tensor& tensor) {
    const std::size_t each = atp_elements_per_word(tensor.form());
    std::vector<std::optional<std::int32_t>> integers;
    for (std::uint64_t first = 0; first < tensor.size(); first += each) {
        std::array<std::byte, ATP_LANE_BYTES> word{};
        const bool fits = tensor.load_integers(first, word);
        for (std::size_t at = 0; at < each; ++at) {
            integers.push_back(fits ? std::optional(integer_at(word.data(), at, each)) : std::nullopt);
        }
    }
    return integers;
}

ScaledSpan span_of(const tensor::SpanScales& scales, std::uint64_t span) {
    ScaledSpan found{.proposal = exponent_of(scales.proposal(span)),
                     .coarsest = exponent_of(scales.coarsest(span)),
                     .scale = exponent_of(scales.scale(span))};
    if (scales.scale(span) == protocol::exact_scale) return found;
    const std::uint64_t each = scales.span() / scales.cell();
    for (std::uint64_t cell = span * each; cell < std::min((span + 1) * each, scales.cells()); ++cell) {
        found.cells.push_back(exponent_of(scales.cell_scale(cell)));
    }
    return found;
}

void add_sums(ScaledStep& step, const std::vector<std::vector<std::optional<std::int32_t>>>& integers) {
    std::vector<std::optional<std::int64_t>> sums(integers.front().size(), 0);
    for (const auto& own : integers) {
        step.lanes.push_back(runs_of<std::optional<std::int32_t>>(own));
        for (std::size_t at = 0; at < sums.size(); ++at) {
            sums[at] = sums[at] && own[at] ? std::optional(*sums[at] + *own[at]) : std::nullopt;
        }
    }
    step.sums = runs_of<std::optional<std::int64_t>>(sums);
}

// After the operation: what its tensors contained and became.
ScaledStep step_of(const std::vector<std::unique_ptr<Operand>>& operands) {
    ScaledStep step;
    std::vector<std::vector<std::optional<std::int32_t>>> integers;
    for (const auto& operand : operands) {
        step.inputs.push_back(bits_of(operand->in));
        const auto& before = operand->fitted.before;
        if (before.size() == 2) step.exponents.push_back(words_of(*before.front()));
        if (!before.empty()) step.votes.push_back(words_of(*before.back()));
        integers.push_back(integers_of(*operand->fitted.tensor));
    }
    const tensor::SpanScales& scales = *operands.front()->fitted.scales;
    for (std::uint64_t span = 0; span < scales.count(); ++span) step.spans.push_back(span_of(scales, span));
    add_sums(step, integers);
    step.results = bits_of(operands.front()->out);
    for (const auto& operand : operands) {
        if (bits_of(operand->out) != step.results) throw std::logic_error("workers have different sums");
    }
    return step;
}

// Runs the job with the machines of workers, a switch and a server. Its tensors exist until the end, as references do.
ScaleVector run(const Job& job) {
    const auto workers = static_cast<unsigned>(job.steps.front().size());
    testing::NetworkConfig config;
    config.channel.lanes = lanes_of_packet;
    config.channel.audit = false;
    config.membership = *protocol::Membership::star(workers);
    config.scale = job_scale;
    testing::Network network(config);
    const NumberFitter::Config of_numbers{
        .form = {.scale = job_scale, .scaling = tensor::Scaling::dynamic, .lane_type = job.lane_type},
        .ranks = workers,
        .feed = std::make_shared<protocol::SilentWaker>()};
    std::vector<std::unique_ptr<NumberFitter>> fitters;
    for (unsigned worker = 0; worker < workers; ++worker) fitters.push_back(std::make_unique<NumberFitter>(of_numbers));
    ScaleVector vector{.description = job.description, .form = {}, .steps = {}};
    std::vector<std::vector<std::unique_ptr<Operand>>> all;
    for (const Step& step : job.steps) {
        auto& operands = all.emplace_back();
        for (unsigned worker = 0; worker < workers; ++worker) {
            Operand& own = *operands.emplace_back(std::make_unique<Operand>());
            own.in = values_of(step[worker]);
            own.out.resize(own.in.size());
            own.fitted =
                fitters[worker]->fit(tensor::make_sum_tensor(ElementType::float32, own.in.data(), own.out.data(),
                                                             own.in.size(), static_cast<float>(job_scale), 1),
                                     ElementType::float32, {.elements = own.in.size()});
            for (const auto& before : own.fitted.before) network.submit(worker, *before);
            network.submit(worker, *own.fitted.tensor);
        }
        if (!network.finish()) throw std::logic_error("an operation did not end");
        vector.steps.push_back(step_of(operands));
    }
    const std::uint8_t form = all.front().front()->fitted.tensor->form();
    vector.form = form == ATP_DTYPE_INT32 ? "int32" : form == ATP_DTYPE_INT16 ? "int16" : "int8";
    return vector;
}

// Every worker adds the same values.
Step equal(unsigned workers, const Runs<float>& values) { return Step(workers, values); }

Runs<float> all(float value) { return {{few, value}}; }

std::vector<Job> int32_jobs() {
    const Runs<float> mixed{{100, 1.25F}, {100, -0x1.8p-9F}, {50, 0x1.2345p-20F}, {28, 0x1.8p-23F}, {22, 0x1.4p-22F}};
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return {
        {"256 elements are sent as floats at 2^127, without a vote", LaneType::int32, {equal(2, {{256, 1.0F}})}},
        {"the first scale follows from exponents, the next ones from sums",
         LaneType::int32,
         {equal(3, mixed), equal(3, mixed), {all(1.0F), all(-0.75F), mixed}}},
        {"sums rise: the second operation exceeds the scale and is sent as floats, the third fits",
         LaneType::int32,
         {equal(2, all(0.5F)), equal(2, all(1000.0F)), equal(2, all(1000.0F))}},
        {"sums fall within the scale, which rises by at most 2^4 in each operation",
         LaneType::int32,
         {equal(2, all(1.0F)), equal(2, all(0x1p-10F)), equal(2, all(0x1p-10F)), equal(2, all(0x1p-10F)),
          equal(2, all(0x1p-10F))}},
        {"numbers fall too far: all vote against the scale, twice, and the span is exact",
         LaneType::int32,
         {equal(4, all(1.0F)), equal(4, all(0x1p-24F)), equal(4, all(0x1p-24F))}},
        {"one worker's number is large enough, so the small ones of the others are rounded",
         LaneType::int32,
         {equal(2, all(1.0F)), {all(0x1p-30F), all(1.0F)}}},
        {"an infinite sum lowers the scale by one",
         LaneType::int32,
         {equal(2, all(1.0F)), {Runs<float>{{4, infinity}, {few - 4, 1.0F}}, all(1.0F)}, equal(2, all(1.0F))}},
        {"zeros take the scale of the job first, and later keep their scale",
         LaneType::int32,
         {equal(2, all(0.0F)), equal(2, all(0.0F)), equal(2, all(1.0F)), equal(2, all(0.0F)), equal(2, all(1.0F))}},
        {"a span of zeros begins with the scale of the largest numbers",
         LaneType::int32,
         {equal(2, {{16'192, 0.0F}, {few, 3.0F}}), equal(2, {{16'192, 0x1p-8F}, {few, 3.0F}})}},
        {"subnormal numbers have the finest scale",
         LaneType::int32,
         {equal(2, all(0x1p-140F)), equal(2, all(0x1p-140F)), equal(2, all(0x1p-100F))}},
    };
}

std::vector<Job> narrow_jobs() {
    const Runs<float> cells{{short_cell, 1.0F}, {short_cell, 0.3F}, {short_cell, 0x1p-6F}, {short_cell, 0.0F}};
    const Runs<float> two_spans{{short_span - short_cell, 1.0F}, {short_cell, 0.01F}, {short_cell, 0x1p-12F}};
    const Runs<float> tiny{{short_cell, 0x1p-90F}, {2 * short_cell, 0x1p-95F}};
    const Runs<float> jump{
        {short_cell, 1.0F}, {short_cell, 0.3F}, {4, 1e4F}, {short_cell - 4, 0x1p-6F}, {short_cell, 0.0F}};
    std::vector<Job> jobs;
    for (const LaneType type : {LaneType::int16, LaneType::int8}) {
        const std::string in = type == LaneType::int16 ? "int16: " : "int8: ";
        jobs.push_back({in + "each cell has a scale, at most 4 times that of the coarsest",
                        type,
                        {equal(4, cells), equal(4, cells), equal(4, cells)}});
        jobs.push_back({in + "spans have scales of their own", type, {equal(2, two_spans), equal(2, two_spans)}});
        jobs.push_back(
            {in + "cells finer than 2^100 have one scale", type, {equal(2, tiny), equal(2, tiny), equal(2, tiny)}});
        jobs.push_back({in + "elements without an integer are exact, their neighbours keep their bits",
                        type,
                        {equal(2, cells), {jump, cells}, equal(2, cells)}});
    }
    return jobs;
}

template <class Value>
nlohmann::ordered_json json_of(const Runs<Value>& runs) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const auto& [count, value] : runs) {
        if constexpr (std::is_integral_v<Value>) {
            json.push_back({count, value});
        } else {
            json.push_back({count, value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr)});
        }
    }
    return json;
}

template <class Value>
nlohmann::ordered_json json_of(const std::vector<Runs<Value>>& of_workers) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Runs<Value>& runs : of_workers) json.push_back(json_of(runs));
    return json;
}

nlohmann::ordered_json json_of(const ScaledStep& step) {
    nlohmann::ordered_json spans = nlohmann::ordered_json::array();
    for (const ScaledSpan& span : step.spans) {
        spans.push_back(
            {{"proposal", span.proposal}, {"coarsest", span.coarsest}, {"scale", span.scale}, {"cells", span.cells}});
    }
    return {{"inputs", json_of(step.inputs)},  {"exponents", json_of(step.exponents)},
            {"votes", json_of(step.votes)},    {"spans", spans},
            {"lanes", json_of(step.lanes)},    {"sums", json_of(step.sums)},
            {"results", json_of(step.results)}};
}

}  // namespace

std::vector<ScaleVector> scale_vectors() {
    std::vector<ScaleVector> vectors;
    for (const auto& jobs : {int32_jobs(), narrow_jobs()}) {
        for (const Job& job : jobs) vectors.push_back(run(job));
    }
    return vectors;
}

nlohmann::ordered_json to_json(const ScaleVector& vector) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const ScaledStep& step : vector.steps) steps.push_back(json_of(step));
    return {{"description", vector.description},
            {"form", vector.form},
            {"workers", vector.steps.front().inputs.size()},
            {"job_scale", job_scale},
            {"steps", steps}};
}

}  // namespace atp::conformance
