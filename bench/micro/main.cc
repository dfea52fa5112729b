// SPDX-License-Identifier: Apache-2.0
// bench_micro: compares the inner loops of ATP with the roofline of this host. Prints a table, or JSON.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "measure.h"
#include "subjects.h"
#include "wire/format.h"

namespace atp::bench {
namespace {

using MakeSubject = std::function<Subject(const Size&)>;
using Subjects = std::vector<std::pair<std::string, MakeSubject>>;

using MakeConversion = Subject (*)(const Size&, numeric::ElementType, std::uint8_t);
constexpr std::pair<const char*, MakeConversion> conversions[] = {{"send", send_subject}, {"receive", receive_subject}};

Subjects all_subjects() {
    Subjects subjects{
        {"quantise", quantise_subject},     {"dequantise", dequantise_subject},
        {"accumulate", accumulate_subject}, {"switch_62", switch_62_subject},
        {"switch_352", switch_352_subject}, {"switch_352_proof", switch_352_proof_subject},
        {"simulator", simulator_subject},
    };
    using numeric::ElementType;
    for (const auto& [action, make] : conversions) {
        for (const ElementType type : {ElementType::float32, ElementType::float16, ElementType::bfloat16}) {
            for (const std::uint8_t form : {ATP_DTYPE_INT32, ATP_DTYPE_INT16, ATP_DTYPE_INT8}) {
                subjects.emplace_back(conversion_name(action, type, form),
                                      [make, type, form](const Size& size) { return make(size, type, form); });
            }
        }
    }
    return subjects;
}

constexpr int exit_failed = 1;
constexpr int exit_bad_usage = 2;

struct Options {
    std::vector<std::string> only;
    Size size{.tensor_bytes = 256'000'000, .ring_packets = 512};
    Effort effort{.rounds = 11, .round_seconds = 0.05};
    bool json = false;
    bool quick = false;
    bool smoke = false;
    bool fail_below_bar = false;
};

void add_options(CLI::App& app, const Subjects& subjects, Options& options) {
    std::vector<std::string> names;
    for (const auto& [name, make] : subjects) {
        names.emplace_back(name);
    }
    app.add_option("--only", options.only, "measure only these, comma-separated")
        ->delimiter(',')
        ->check(CLI::IsMember(names));
    app.add_option("--tensor", options.size.tensor_bytes,
                   "bytes of the tensor, or of the stream of packets, such as 64MB or 25MiB")
        ->transform(CLI::AsSizeValue(true))
        ->check(CLI::Range(std::size_t{1'000}, std::size_t{64'000'000'000}))
        ->capture_default_str();
    const auto power_of_two = [](const std::string& text) {
        std::size_t packets = 0;
        const bool fits = CLI::detail::lexical_cast(text, packets) && std::has_single_bit(packets) && packets <= 65536;
        return fits ? std::string() : text + " is not a power of two from 1 to 65536";
    };
    app.add_option("--ring", options.size.ring_packets, "packets or aggregators in use at once, a power of two")
        ->check(CLI::Validator(power_of_two, "POWER_OF_TWO"))
        ->capture_default_str();
    app.add_option("--rounds", options.effort.rounds, "rounds of each side; the table shows the median")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    app.add_option("--round-seconds", options.effort.round_seconds, "shortest round in seconds")
        ->check(CLI::Range(0.0, 60.0))
        ->capture_default_str();
    app.add_flag("--json", options.json, "print a JSON array of {name, value, unit, limit, share}");
    auto* quick =
        app.add_flag("--quick", options.quick, "measure a quarter of the data in few rounds, with more noise");
    app.add_flag("--smoke", options.smoke, "check results with little data; the figures are invalid")->excludes(quick);
    app.add_flag("--fail-below-bar", options.fail_below_bar, "exit with status 1 if a figure misses its bar");
}

// --quick and --smoke replace only options that the user did not set.
void apply_presets(const CLI::App& app, Options& options) {
    const auto preset = [&app](const char* flag, auto& value, auto replacement) {
        if (app.count(flag) == 0) {
            value = replacement;
        }
    };
    if (options.quick) {
        preset("--tensor", options.size.tensor_bytes, std::size_t{64'000'000});
        preset("--rounds", options.effort.rounds, 5);
        preset("--round-seconds", options.effort.round_seconds, 0.02);
    }
    if (options.smoke) {
        preset("--tensor", options.size.tensor_bytes, std::size_t{500'000});
        preset("--ring", options.size.ring_packets, std::size_t{16});
        preset("--rounds", options.effort.rounds, 1);
        preset("--round-seconds", options.effort.round_seconds, 0.0);
    }
}

std::string bar_to_string(const Figure& figure) {
    if (figure.bar.least == 0) return "";
    const std::string least = figure.bar.on == BarOn::share
                                  ? fmt::format("share >= {:.2f}", figure.bar.least)
                                  : fmt::format(">= {:.4g} {}", figure.bar.least, figure.unit);
    return fmt::format("{} {}", least, figure.bar_met() ? "met" : "MISSED");
}

void print_row(const Figure& figure) {
    fmt::print("{:<24} {:>12.5g} {:<14} {:>12.5g} {:>7.3f}  {:<30}{}\n", figure.name, figure.value, figure.unit,
               figure.limit, figure.share, bar_to_string(figure), figure.verified ? "" : "  WRONG RESULT");
    std::fflush(stdout);
}

void print_json(const std::vector<Figure>& figures) {
    fmt::print("[\n");
    for (const Figure& figure : figures) {
        fmt::print(R"(  {{"name": "{}", "value": {}, "unit": "{}", "limit": {}, "share": {}}}{})"
                   "\n",
                   figure.name, figure.value, figure.unit, figure.limit, figure.share,
                   &figure == &figures.back() ? "" : ",");
    }
    fmt::print("]\n");
}

int report(const std::vector<Figure>& figures, const Options& options) {
    if (options.json) {
        print_json(figures);
    }
    int status = 0;
    for (const Figure& figure : figures) {
        if (!figure.verified) {
            fmt::print(stderr, "bench_micro: {}: the result is wrong, so its figure is invalid\n", figure.name);
            status = exit_failed;
        } else if (options.fail_below_bar && !figure.bar_met()) {
            fmt::print(stderr, "{}: below its bar, {}\n", figure.name, bar_to_string(figure));
            status = exit_failed;
        }
    }
    return status;
}

int run(const Subjects& subjects, const Options& options) {
    if (!options.json) {
        fmt::print("{:<24} {:>12} {:<14} {:>12} {:>7}  {}\n", "name", "value", "unit", "limit", "share", "bar");
    }
    std::vector<Figure> figures;
    for (const auto& [name, make] : subjects) {
        if (!options.only.empty() && std::ranges::find(options.only, name) == options.only.end()) {
            continue;
        }
        figures.push_back(measure(make(options.size), options.effort));
        if (!options.json) {
            print_row(figures.back());
        }
    }
    return report(figures, options);
}

// Google Benchmark gets its default arguments only: this program decides what to measure and how often.
void initialise_google_benchmark(char* program) {
    int argument_count = 1;
    char* arguments[] = {program, nullptr};
    benchmark::Initialize(&argument_count, arguments);
}

}  // namespace
}  // namespace atp::bench

int main(int argc, char** argv) {
    using namespace atp::bench;
    CLI::App app{
        "Measure ATP's inner loops on one core. `limit` is the roofline of this machine, measured in turns with them: "
        "the\n"
        "rate of memcpy for the same bytes between the same buffers. `share` is value / limit. All results are "
        "verified."};
    app.name("bench_micro");
    Options options;
    const Subjects subjects = all_subjects();
    add_options(app, subjects, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    apply_presets(app, options);
    initialise_google_benchmark(argv[0]);
    return run(subjects, options);
}
