// SPDX-License-Identifier: Apache-2.0
// bench_sockets: throughput of each combination of socket calls, without a protocol. Prints a table, or JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "traffic.h"

namespace atp::bench {
namespace {

constexpr int exit_wrong_result = 1;
constexpr int exit_bad_usage = 2;

constexpr std::array<Mode, 4> modes{{
    {.name = "plain", .mmsg = false, .gso = false, .gro = false},
    {.name = "mmsg", .mmsg = true, .gso = false, .gro = false},
    {.name = "gso", .mmsg = true, .gso = true, .gro = false},
    {.name = "gro", .mmsg = true, .gso = true, .gro = true},
}};

struct Options {
    // Packets of 62 lanes, as in the papers; of 352 lanes, which fill Ethernet's MTU; of 2,036 lanes, for loopback.
    std::vector<std::uint32_t> sizes{296, 1456, 8192};
    int rounds = 5;
    double round_seconds = 0.2;
    bool v6 = false;
    bool json = false;
    bool smoke = false;
};

// A row of the table and the results of its rounds.
struct Row {
    std::uint32_t packet_bytes = 0;
    Mode mode{};
    std::vector<Outcome> outcomes;
};

struct Spread {
    double median;
    double min;
    double max;
};

Spread spread(const Row& row, double Outcome::*figure) {
    std::vector<double> values;
    std::ranges::transform(row.outcomes, std::back_inserter(values), figure);
    std::ranges::sort(values);
    return {values[values.size() / 2], values.front(), values.back()};
}

void add_options(CLI::App& app, Options& options) {
    app.add_option("--sizes", options.sizes, "bytes of a packet, comma-separated")
        ->delimiter(',')
        ->check(CLI::Range(8, 65'000))
        ->capture_default_str();
    app.add_option("--rounds", options.rounds, "rounds of each row, in turns; the table shows the median")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--round-seconds", options.round_seconds, "measured seconds of a round; a fifth more for warm-up")
        ->check(CLI::Range(0.001, 60.0))
        ->capture_default_str();
    app.add_flag("--v6", options.v6, "use IPv6");
    app.add_flag("--json", options.json, "print a JSON array with one object per row");
    app.add_flag("--smoke", options.smoke, "run one short round that checks the packets; its figures are invalid");
}

// The rows take turns, so that other load on the host affects all of them equally.
Result<std::vector<Row>> measure(const Options& options) {
    std::vector<Row> rows;
    for (const std::uint32_t size : options.sizes) {
        for (const Mode& mode : modes) rows.push_back({size, mode, {}});
    }
    for (int round = 0; round < options.rounds; ++round) {
        for (Row& row : rows) {
            const auto outcome = carry({.mode = row.mode,
                                        .family = options.v6 ? wire::Family::ipv6 : wire::Family::ipv4,
                                        .packet_bytes = row.packet_bytes,
                                        .seconds = options.round_seconds});
            if (!outcome) return Failure(outcome.error());
            row.outcomes.push_back(*outcome);
        }
    }
    return rows;
}

// The first row of each size is the baseline.
double times_plain(const std::vector<Row>& rows, const Row& row) {
    const auto plain = std::ranges::find(rows, row.packet_bytes, &Row::packet_bytes);
    return spread(row, &Outcome::gbit_per_s).median / spread(*plain, &Outcome::gbit_per_s).median;
}

void print_table(const std::vector<Row>& rows) {
    fmt::print("{:>7} {:<6} {:>8} {:>17} {:>10} {:>8} {:>10} {:>10} {:>7}\n", "bytes", "mode", "Gbit/s", "min .. max",
               "packets/s", "x plain", "per send", "per recv", "lost");
    for (const Row& row : rows) {
        const Spread rate = spread(row, &Outcome::gbit_per_s);
        const bool first = row.mode.name == modes[0].name;
        fmt::print("{:>7} {:<6} {:>8.3f} {:>8.3f} {:>8.3f} {:>10.0f} {:>8.2f} {:>10.1f} {:>10.1f} {:>7.4f}\n",
                   row.packet_bytes, fmt::format("{}{}", first ? "" : "+", row.mode.name), rate.median, rate.min,
                   rate.max, spread(row, &Outcome::packets_per_s).median, times_plain(rows, row),
                   spread(row, &Outcome::packets_per_send_call).median,
                   spread(row, &Outcome::packets_per_receive_call).median, spread(row, &Outcome::lost_share).median);
    }
}

void print_json(const std::vector<Row>& rows) {
    fmt::print("[\n");
    for (const Row& row : rows) {
        const Spread rate = spread(row, &Outcome::gbit_per_s);
        fmt::print(
            R"(  {{"name": "sockets_{}_{}", "packet_bytes": {}, "mode": "{}", "gbit_per_s": {}, "gbit_per_s_min": {}, )"
            R"("gbit_per_s_max": {}, "packets_per_s": {}, "times_plain": {}, "packets_per_send_call": {}, )"
            R"("packets_per_receive_call": {}, "lost_share": {}}}{})"
            "\n",
            row.packet_bytes, row.mode.name, row.packet_bytes, row.mode.name, rate.median, rate.min, rate.max,
            spread(row, &Outcome::packets_per_s).median, times_plain(rows, row),
            spread(row, &Outcome::packets_per_send_call).median, spread(row, &Outcome::packets_per_receive_call).median,
            spread(row, &Outcome::lost_share).median, &row == &rows.back() ? "" : ",");
    }
    fmt::print("]\n");
}

int report_faults(const std::vector<Row>& rows) {
    int status = 0;
    for (const Row& row : rows) {
        if (!std::ranges::all_of(row.outcomes, &Outcome::intact)) {
            fmt::print(stderr, "{} bytes, {}: packets were damaged, or none arrived\n", row.packet_bytes,
                       row.mode.name);
            status = exit_wrong_result;
        }
        if (const std::string& gave_up = row.outcomes.back().gave_up; !gave_up.empty()) {
            fmt::print(stderr, "{} bytes, {}: this kernel lacks {}\n", row.packet_bytes, row.mode.name, gave_up);
        }
    }
    return status;
}

int run(const Options& options) {
    const auto rows = measure(options);
    if (!rows) {
        fmt::print(stderr, "bench_sockets: {}\n", to_string(rows.error()));
        return exit_wrong_result;
    }
    options.json ? print_json(*rows) : print_table(*rows);
    return report_faults(*rows);
}

}  // namespace
}  // namespace atp::bench

int main(int argc, char** argv) {
    using namespace atp::bench;
    CLI::App app{
        "Measure one-way UDP throughput over loopback, with one sending and one receiving thread, for each socket\n"
        "interface of the kernel: one packet per call, then many messages per call, then segmentation on sending,\n"
        "then coalescing on receiving. Each mode includes the modes before it. The sender stays within the receive\n"
        "buffer, and the receiver checks every packet."};
    app.name("bench_sockets");
    Options options;
    add_options(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    if (options.smoke) {
        options.rounds = 1;
        options.round_seconds = 0.02;
    }
    return run(options);
}
