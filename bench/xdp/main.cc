// SPDX-License-Identifier: Apache-2.0
// bench_xdp: processor time per packet of the switch inside the kernel, for each kind of packet, as BPF_PROG_TEST_RUN
// measures it. Each packet has its own bytes, and fragments use the aggregators of a table of the usual size in turn.
// The nearest caches therefore hold no more of them than behind a network card. After the kernel, the switch in user
// space handles the same packet, without sockets.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "frames.h"
#include "protocol/switch.h"
#include "wire/packet.h"
#include "xdp/kernel_table.h"

namespace atp::bench {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_usage = 2;
constexpr std::uint32_t job = 7;
constexpr std::uint32_t token = 0x5EED;
constexpr std::uint32_t workers = 8;
constexpr std::uint32_t aggregators = 4096;
constexpr double bar_ns = 700;  // a gradient of 352 lanes: 16 Gbit/s on one core

// A packet of `lanes` lanes.
struct Shape {
    std::uint32_t lanes = 0;
    std::string type = "int32";

    std::uint8_t lanes_byte() const {
        if (type == "int8") return ATP_INT8_LANES;
        return type == "int16" ? std::uint8_t{ATP_INT16_LANES} : std::uint8_t{ATP_INT32_LANES};
    }
    unsigned width() const { return type == "int8" ? 8 : type == "int16" ? 16 : 32; }
    double elements() const { return lanes * 32.0 / width(); }
};

struct Options {
    std::uint32_t fragments = 5'000;
    std::string checksum = "full";
    bool json = false;
    bool fail_above_bar = false;
};

enum Kind { claim, add, complete, ack, other, kinds };
constexpr std::array<const char*, kinds> kind_names = {"claim", "add", "complete", "ack", "other"};

struct Figures {
    std::array<std::vector<double>, kinds> kernel_ns, user_ns;
    bool right = true;
};

double quantile(std::vector<double> values, double share) {
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

// Mean time of the gradients of a fragment: the first claims, the last completes, the others are added.
double gradient_ns(const std::array<std::vector<double>, kinds>& of) {
    return (quantile(of[claim], 0.5) + (workers - 2) * quantile(of[add], 0.5) + quantile(of[complete], 0.5)) / workers;
}

atp_header header_of(Kind kind, std::uint32_t seq, std::uint32_t worker, const Shape& shape) {
    atp_header header{};
    header.type = kind == ack ? ATP_TYPE_ACK : ATP_TYPE_GRADIENT;
    header.lanes = kind == ack ? std::uint8_t{ATP_FLOAT32_LANES} : shape.lanes_byte();
    header.window_log2 = 8;
    header.job = job;
    header.token = token;
    header.worker = static_cast<std::uint16_t>(worker);
    header.seq = seq;
    header.index = seq * 0x9E3779B1U % aggregators;
    header.mask0 = (1U << workers) - 1;
    header.bitmap0 = kind == ack ? header.mask0 : 1U << worker;
    header.bitmap1 = header.mask1 = 1;
    return header;
}

// Element `at` of a lane, counted from the lowest bits. Sums of all workers fit the type.
std::int64_t element_of(std::uint32_t seq, std::uint32_t worker, std::uint32_t lane, unsigned at, unsigned width) {
    const auto spread = static_cast<std::int32_t>((seq * workers + worker + lane + at * 77) * 0x9E3779B1U);
    return (spread >> (32 - width)) / static_cast<std::int32_t>(workers);
}

// The lane that one worker sends, or the sum of several.
std::uint32_t lane_of(std::uint32_t seq, std::uint32_t first, std::uint32_t last, std::uint32_t lane, unsigned width) {
    std::uint64_t packed = 0;
    for (unsigned at = 0; at * width < 32; ++at) {
        std::int64_t sum = 0;
        for (std::uint32_t worker = first; worker <= last; ++worker) sum += element_of(seq, worker, lane, at, width);
        packed |= (static_cast<std::uint64_t>(sum) & ((1ULL << width) - 1)) << (at * width);
    }
    return static_cast<std::uint32_t>(packed);
}

test::Checksum checksum_named(const std::string& name) {
    if (name == "partial") return test::Checksum::partial;
    return name == "none" ? test::Checksum::none : test::Checksum::full;
}

class Comparison {
  public:
    Comparison(xdp::KernelTable& kernel, const Shape& shape, test::Checksum checksum)
        : kernel_(kernel),
          user_({.aggregators = aggregators, .lanes = ATP_XDP_LANES}),
          shape_(shape),
          checksum_(checksum) {
        figures_.right = kernel_.admit(job, token, 0) && user_.admit(job, token, 0);
    }

    Figures measure(std::uint32_t fragments) {
        for (std::uint32_t seq = 1; seq <= fragments; ++seq) {
            for (std::uint32_t worker = 0; worker < workers; ++worker) {
                send(worker == 0 ? claim : worker + 1 == workers ? complete : add, seq, worker);
            }
            send(ack, seq, 0);
            send(other, seq, 0);
        }
        return std::move(figures_);
    }

  private:
    void send(Kind kind, std::uint32_t seq, std::uint32_t worker) {
        test::Bytes packet(ATP_HEADER_BYTES + shape_.lanes * ATP_LANE_BYTES);
        wire::encode_header(header_of(kind, seq, worker, shape_), packet);
        for (std::uint32_t lane = 0; lane < shape_.lanes; ++lane) {
            wire::store_u32(lane_at(packet, lane), lane_of(seq, worker, worker, lane, shape_.width()));
        }
        const std::uint16_t port = kind == other ? 9 : 4790;
        const auto outcome = kernel_.run(test::wrap(packet, {.checksum = checksum_, .destination = port}));
        figures_.right &=
            outcome && (outcome->disposition == xdp::Disposition::dropped) == (kind == claim || kind == add);
        if (!outcome) return;
        figures_.kernel_ns[kind].push_back(outcome->duration_ns);
        if (kind == other) return;
        ask_user_space(kind, packet);
        if (kind == complete) {
            figures_.right &= is_sum(seq, test::unwrap(outcome->frame).payload) && is_sum(seq, packet);
        }
    }

    void ask_user_space(Kind kind, test::Bytes& packet) {
        const auto size = static_cast<std::uint32_t>(packet.size());
        protocol::PacketBuffer packet_buffer{
            .data = packet.data(), .size = size, .capacity = size, .congested = false, .verdict = {}};
        const auto start = std::chrono::steady_clock::now();
        user_.handle_packet(packet_buffer, Time{std::chrono::microseconds(1)});
        figures_.user_ns[kind].push_back(
            std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }

    static std::byte* lane_at(test::Bytes& packet, std::uint32_t lane) {
        return packet.data() + ATP_HEADER_BYTES + lane * ATP_LANE_BYTES;
    }

    bool is_sum(std::uint32_t seq, test::Bytes packet) const {
        for (std::uint32_t lane = 0; lane < shape_.lanes; ++lane) {
            const std::uint32_t sum = lane_of(seq, 0, workers - 1, lane, shape_.width());
            if (wire::load_u32(lane_at(packet, lane)) != sum) return false;
        }
        return true;
    }

    xdp::KernelTable& kernel_;
    protocol::Switch user_;
    Shape shape_;
    test::Checksum checksum_;
    Figures figures_;
};

double gigabits_per_s(std::uint32_t lanes, double ns) { return 8.0 * (ATP_HEADER_BYTES + lanes * ATP_LANE_BYTES) / ns; }

void print(const Figures& figures, const Shape& shape) {
    for (int kind = 0; kind < kinds; ++kind) {
        const auto& kernel = figures.kernel_ns[static_cast<std::size_t>(kind)];
        const auto& user = figures.user_ns[static_cast<std::size_t>(kind)];
        fmt::print("{:<9} {:>5} {:<5} {:>8.0f} {:>8.0f} {:>8.0f}  {}\n", kind_names[static_cast<std::size_t>(kind)],
                   shape.lanes, shape.type, quantile(kernel, 0.1), quantile(kernel, 0.5), quantile(kernel, 0.9),
                   user.empty() ? "" : fmt::format("{:>8.0f}", quantile(user, 0.5)));
    }
    const double mean_ns = gradient_ns(figures.kernel_ns);
    fmt::print("gradients {:>5} {:<5} {:>17.0f}   {:>16.0f}   {:.1f} Gbit/s, {:.0f} million elements/s per core\n",
               shape.lanes, shape.type, mean_ns, gradient_ns(figures.user_ns), gigabits_per_s(shape.lanes, mean_ns),
               1e3 * shape.elements() / mean_ns);
}

void print_json(const Figures& figures, const Shape& shape) {
    const auto line = [&](const char* kind, double ns, const std::string& user_space_ns) {
        fmt::print(R"({{"kind": "{}", "lanes": {}, "type": "{}", "elements": {}, "ns": {}, "user_space_ns": {}}})"
                   "\n",
                   kind, shape.lanes, shape.type, shape.elements(), ns, user_space_ns);
    };
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        const auto& user = figures.user_ns[kind];
        line(kind_names[kind], quantile(figures.kernel_ns[kind], 0.5),
             user.empty() ? "null" : fmt::format("{}", quantile(user, 0.5)));
    }
    line("gradients", gradient_ns(figures.kernel_ns), fmt::format("{}", gradient_ns(figures.user_ns)));
}

// False if a figure cannot be measured or misses its bar.
bool run(const Options& options, const Shape& shape) {
    auto kernel = xdp::KernelTable::load({.aggregators = aggregators});
    if (!kernel) {
        fmt::print(stderr, "bench_xdp: {}\n", to_string(kernel.error()));
        return false;
    }
    const Figures figures = Comparison(**kernel, shape, checksum_named(options.checksum)).measure(options.fragments);
    if (!figures.right) {
        fmt::print(stderr, "bench_xdp: {} lanes of {}: the result is wrong, so its figures are invalid\n", shape.lanes,
                   shape.type);
        return false;
    }
    options.json ? print_json(figures, shape) : print(figures, shape);
    if (!options.fail_above_bar || gradient_ns(figures.kernel_ns) <= bar_ns) return true;
    fmt::print(stderr, "bench_xdp: {} lanes: a gradient takes more than the bar of {} ns\n", shape.lanes, bar_ns);
    return false;
}

}  // namespace
}  // namespace atp::bench

int main(int argc, char** argv) {
    using namespace atp::bench;
    CLI::App app{"Measure the time of a packet in the switch inside the kernel and in the switch in user space."};
    app.name("bench_xdp");
    Options options;
    app.add_option("--fragments", options.fragments, "number of fragments of each length")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    app.add_option("--checksum", options.checksum, "UDP checksum of the frames; partial: as from the same host")
        ->check(CLI::IsMember({"full", "partial", "none"}))
        ->capture_default_str();
    app.add_flag("--json", options.json,
                 "print one JSON object per line: {kind, lanes, type, elements, ns, user_space_ns}");
    app.add_flag("--fail-above-bar", options.fail_above_bar,
                 fmt::format("exit with status 1 if a gradient takes more than {} ns", bar_ns));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_bad_usage;
    }
    if (!options.json) {
        fmt::print("{:<9} {:>5} {:<5} {:>8} {:>8} {:>8}  {:>8}\n", "ns", "lanes", "type", "10 %", "median", "90 %",
                   "user");
    }
    const Shape shapes[] = {{62}, {ATP_XDP_LANES}, {ATP_XDP_LANES, "int16"}, {ATP_XDP_LANES, "int8"}};
    const bool passed = std::ranges::all_of(shapes, [&](const Shape& shape) { return run(options, shape); });
    return passed ? 0 : exit_failed;
}
