// SPDX-License-Identifier: Apache-2.0
#include "apps/atp-lab/model_bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "apps/atp/bench_values.h"
#include "apps/common/cpu_time.h"
#include "apps/common/flags.h"
#include "base/units.h"

namespace atp::apps {
namespace {

constexpr double least_slowness = 0.001;
constexpr double most_slowness = 1e6;
constexpr std::uint64_t most_batch = 1'000'000;
constexpr double most_scale = 1e9;

std::optional<const workload::Model*> parse_model(std::string_view text) {
    const workload::Model* found = workload::find_model(text);
    return found == nullptr ? std::nullopt : std::optional(found);
}

std::optional<unsigned> parse_batch(std::string_view text) {
    const auto samples = parse_whole(text, 1, most_batch);
    return samples ? std::optional(static_cast<unsigned>(*samples)) : std::nullopt;
}
std::optional<double> parse_scale(std::string_view text) { return parse_real(text, 1, most_scale); }
std::optional<double> parse_slowness(std::string_view text) { return parse_real(text, least_slowness, most_slowness); }
std::optional<std::uint64_t> parse_bucket(std::string_view text) {
    const auto bytes = parse_size(text);
    return bytes && *bytes >= sizeof(float) ? bytes : std::nullopt;
}

}  // namespace

void add_model_flags(Command& command, BenchModel& model) {
    Flags flags(command, "Training");
    CLI::Option* const name =
        flags.parsed("--model", model.model, "NAME", parse_model, workload::model_names(),
                     "Sum the gradients of this model while ranks sleep for the time of its computation; --rounds "
                     "counts iterations, of which one at least is warm-up [none: tensors of --bytes]");
    for (const char* const excluded : {"--bytes", "--collective", "--peer", "--ladder"}) {
        name->excludes(command.get_option(excluded));
    }
    flags
        .parsed("--batch", model.bucketing.batch, "N", parse_batch, whole_forms(1, most_batch),
                "Samples of a rank in an iteration [the model's]")
        ->needs(name);
    flags
        .parsed("--scale", model.bucketing.scale, "FACTOR", parse_scale,
                fmt::format("a number from 1 to {}", most_scale),
                "Divisor of the model's parameters, buckets and times [1]")
        ->needs(name);
    flags
        .parsed("--slowness", model.bucketing.slowness, "FACTOR", parse_slowness,
                fmt::format("a number from {} to {}", least_slowness, most_slowness),
                "Factor of the model's times, for links slower than the test bed's [1]")
        ->needs(name);
    flags
        .parsed("--bucket", model.bucketing.bytes, "SIZE", parse_bucket, size_forms,
                "Size of the buckets of the model's tensors, before scaling [4MB]")
        ->needs(name);
}

std::vector<std::string> flags_of(const BenchModel& model) {
    if (model.model == nullptr) return {};
    const workload::Bucketing& bucketing = model.bucketing;
    std::vector<std::string> flags{"--model",    model.model->name,
                                   "--scale",    fmt::format("{}", bucketing.scale),
                                   "--slowness", fmt::format("{}", bucketing.slowness),
                                   "--bucket",   fmt::format("{}", bucketing.bytes)};
    if (bucketing.batch) flags.insert(flags.end(), {"--batch", fmt::format("{}", *bucketing.batch)});
    return flags;
}

Result<BenchSize> measure_model(const BenchRank& bench, store::Rendezvous& rendezvous,
                                const workload::Workload& workload, const BucketSum& sum) {
    const BenchValues values(bench.options, bench.type, bench.magnitude, bench.rank, bench.world);
    std::vector<std::span<std::byte>> buckets;
    std::vector<std::byte> tensor(workload.elements() * values.element_bytes());
    std::size_t begin = 0;
    for (const workload::Workload::Bucket& bucket : workload.buckets) {
        buckets.push_back(std::span(tensor).subspan(begin, bucket.elements * values.element_bytes()));
        begin += buckets.back().size();
    }
    CpuTime cpu;
    // Gradients replace the sums of the iteration before, and differ from its gradients, so that no old sum passes for
    // one of the last iteration.
    const auto start = [&](std::uint32_t number, unsigned iteration) {
        const std::span<std::byte> bucket = buckets[number];
        const auto first = static_cast<std::size_t>(bucket.data() - tensor.data()) / values.element_bytes();
        cpu.aside([&] { values.fill(bench.rank, first + iteration, bucket); });
        return sum(bucket.data(), bucket.size() / values.element_bytes());
    };
    const auto seconds = workload::train(workload, {.warmup = bench.warmup, .measured = bench.rounds},
                                         {.start = start, .warm = [&] { cpu.start(); }});
    cpu.stop();
    if (!seconds) return tl::unexpected(seconds.error());
    const std::size_t last = std::max(bench.warmup, 1U) + bench.rounds - 1;
    if (const auto wrong = values.wrong_sum(last, tensor)) return wrong_result(bench, tensor.size(), *wrong);
    return gather_rounds(rendezvous, 0, tensor.size(), *seconds, cpu.seconds());
}

}  // namespace atp::apps
