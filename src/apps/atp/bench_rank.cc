// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "apps/common/cpu_time.h"
#include "apps/common/interruption.h"
#include "comm/communicator.h"
#include "net/clock.h"
#include "net/resolve.h"
#include "net/udp_report.h"
#include "protocol/counter_fields.h"
#include "store/rendezvous.h"
#include "store/tcp_store.h"
#include "store/tcp_store_server.h"

namespace atp::apps {
namespace {

using numeric::ElementType;

// Values repeat after a prime number of elements. They are cheap to make and to check, and packets begin at different
// positions of the period.
constexpr std::size_t period = 4093;

// Within this bound, sums fit 32 bits at the job's scale. With dynamic scaling, they keep all their bits.
std::int32_t largest_contribution(const BenchRank& bench) {
    const bool scaled = !numeric::is_integer(bench.type);
    const auto world = static_cast<std::int32_t>(bench.world);
    if (scaled && bench.options.lane_type == tensor::LaneType::int8) return std::max((1 << 4) / world, 1);
    if (scaled && bench.options.lane_type == tensor::LaneType::int16) return (1 << 11) / world;
    if (scaled && bench.options.scaling == tensor::Scaling::dynamic) return (1 << 24) / world;
    return 10'000'000;
}

// Value of `rank` at `element`, as the integer value * scale.
std::int32_t contribution(const BenchRank& bench, std::uint32_t rank, std::size_t element) {
    const auto mixed = static_cast<std::uint32_t>(element * 2654435761U + rank * 40503U + 12345U);
    const std::int32_t largest = largest_contribution(bench);
    return static_cast<std::int32_t>(mixed % (2U * static_cast<std::uint32_t>(largest) + 1U)) - largest;
}

// One period of a rank's tensor, and of the sum, as bytes of the element type.
class Pattern {
  public:
    Pattern(const BenchRank& bench) : type_(bench.type), width_(numeric::bytes_of(bench.type)) {
        for (std::size_t i = 0; i < period; ++i) {
            const std::int32_t own = contribution(bench, bench.rank, i);
            append(own_, static_cast<float>(own / bench.options.scale), own);
            std::int64_t sum = 0;
            for (std::uint32_t rank = 0; rank < bench.world; ++rank) sum += quantised(bench, rank, i);
            append(sum_, static_cast<float>(static_cast<double>(sum) * (1.0 / bench.options.scale)), sum);
        }
    }
    void fill(std::vector<std::byte>& tensor) const {
        for (std::size_t at = 0; at < tensor.size(); at += own_.size()) {
            std::memcpy(tensor.data() + at, own_.data(), std::min(own_.size(), tensor.size() - at));
        }
    }
    // The first element that differs from the sum.
    [[nodiscard]] std::optional<std::size_t> wrong_in(const std::vector<std::byte>& tensor) const {
        for (std::size_t at = 0; at < tensor.size(); at += sum_.size()) {
            const std::size_t count = std::min(sum_.size(), tensor.size() - at);
            if (std::memcmp(tensor.data() + at, sum_.data(), count) == 0) continue;
            std::size_t byte = 0;
            while (tensor[at + byte] == sum_[byte]) ++byte;
            return (at + byte) / width_;
        }
        return std::nullopt;
    }

  private:
    // Value of the rank's element on the wire.
    std::int64_t quantised(const BenchRank& bench, std::uint32_t rank, std::size_t element) const {
        if (numeric::is_integer(type_)) return contribution(bench, rank, element);
        const float value = static_cast<float>(contribution(bench, rank, element) / bench.options.scale);
        return static_cast<std::int64_t>(std::nearbyint(value * static_cast<float>(bench.options.scale)));
    }
    void append(std::vector<std::byte>& bytes, float number, std::int64_t integer) {
        const auto put = [&bytes](const auto& value) {
            const auto* raw = reinterpret_cast<const std::byte*>(&value);
            bytes.insert(bytes.end(), raw, raw + sizeof value);
        };
        switch (type_) {
            case ElementType::float32: put(number); break;
            case ElementType::float64: put(static_cast<double>(number)); break;
            case ElementType::int32: put(static_cast<std::int32_t>(integer)); break;
            default: put(integer); break;
        }
    }

    ElementType type_;
    std::size_t width_;
    std::vector<std::byte> own_;
    std::vector<std::byte> sum_;
};

// Time for which rank 0 keeps the store for ranks that still use it.
constexpr Duration farewell = std::chrono::seconds(5);

Result<std::vector<double>> of_all_ranks(store::Rendezvous& rendezvous, const std::string& name, double seconds) {
    const auto all = rendezvous.all_gather(name, fmt::format("{:.9f}", seconds), net::now() + std::chrono::minutes(1));
    if (!all) return tl::unexpected(all.error());
    std::vector<double> values;
    for (const std::string& text : *all) values.push_back(std::stod(text));
    return values;
}

Result<void> finish(const Result<comm::Handle>& work) {
    if (!work) return tl::unexpected(work.error());
    return (*work)->wait();
}

class Measurement {
  public:
    Measurement(const BenchRank& bench, comm::Communicator& communicator, store::Rendezvous& rendezvous)
        : bench_(bench), communicator_(communicator), rendezvous_(rendezvous), pattern_(bench) {}

    Result<BenchSize> measure(std::uint64_t bytes) {
        std::vector<std::byte> in(bytes);
        std::vector<std::byte> out(bytes);
        pattern_.fill(in);
        BenchSize result;
        result.bytes = bytes;
        std::vector<double> own;
        CpuTime cpu;
        const comm::Buffer buffer{in.data(), out.data(), bytes / numeric::bytes_of(bench_.type)};
        for (std::uint32_t round = 0; round < bench_.warmup + bench_.rounds; ++round) {
            if (round == bench_.warmup) cpu.start();
            cpu.aside([&] { std::memset(out.data(), 0xEE, out.size()); });
            if (auto met = finish(communicator_.barrier()); !met) return tl::unexpected(met.error());
            const Time begin = net::now();
            const auto done = finish(communicator_.all_reduce(buffer, bench_.type, comm::Reduction::sum));
            const double seconds = std::chrono::duration<double>(net::now() - begin).count();
            if (!done) return tl::unexpected(done.error());
            if (const auto wrong = cpu.aside([&] { return pattern_.wrong_in(out); })) return wrong_sum(bytes, *wrong);
            if (round >= bench_.warmup) own.push_back(seconds);
        }
        cpu.stop();
        for (std::size_t round = 0; round < own.size(); ++round) {
            const auto all = of_all_ranks(rendezvous_, fmt::format("time-{}-{}", size_number_, round), own[round]);
            if (!all) return tl::unexpected(all.error());
            result.seconds.push_back(std::ranges::max(*all));
        }
        const auto cpu_seconds = of_all_ranks(rendezvous_, fmt::format("cpu-{}", size_number_), cpu.seconds());
        if (!cpu_seconds) return tl::unexpected(cpu_seconds.error());
        result.cpu_seconds = std::accumulate(cpu_seconds->begin(), cpu_seconds->end(), 0.0);
        ++size_number_;
        const BenchCounters counted = count();
        result.counters = growth(bench_fields, counted, std::exchange(counted_, counted));
        result.results_by_group = communicator_.results_by_group();
        result.without = communicator_.without();
        result.host_ranks = communicator_.formation().host_ranks;
        result.layout = communicator_.formation().layout;
        result.lanes = communicator_.formation().lanes;
        result.window = communicator_.formation().window;
        return result;
    }

  private:
    [[nodiscard]] BenchCounters count() const {
        // Channels publish their counters every 50 ms.
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        protocol::WorkerCounters workers;
        net::UdpCounters udp;
        std::uint64_t group_results = 0;
        for (const comm::ChannelCounters& channel : communicator_.counters()) {
            add_counters(protocol::worker_fields, channel.worker, workers);
            add_counters(net::udp_fields, channel.udp, udp);
            add_counters(net::udp_fields, channel.group_udp, udp);
            group_results += channel.group_results;
        }
        return {.packets = workers.sent + workers.resent,
                .resent = workers.resent,
                .resent_newer = workers.resent_newer,
                .probes = workers.probes,
                .stale_acks = workers.stale_acks,
                .halvings = workers.halvings,
                .float_fragments = workers.float_fragments,
                .dropped_by_kernel = udp.dropped_packets,
                .group_results = group_results};
    }
    [[nodiscard]] Failure wrong_sum(std::uint64_t bytes, std::size_t element) const {
        return fail(
            Operation::all_reduce, Reason::failed, fmt::format("rank {}", bench_.rank),
            fmt::format("WRONG SUM: element {} of a tensor of {} bytes differs from the expected sum", element, bytes));
    }

    const BenchRank& bench_;
    comm::Communicator& communicator_;
    store::Rendezvous& rendezvous_;
    Pattern pattern_;
    std::size_t size_number_ = 0;
    BenchCounters counted_;  // at the end of the previous size
};

Result<void> take_part(const BenchRank& bench, const wire::Address& store_address, Interruption& interruption,
                       const std::function<void(const BenchSize&)>& measured) {
    store::TcpStoreConfig patient;  // the store may be as busy as the ranks: an answer may take until --timeout
    patient.answer_timeout = std::max(patient.answer_timeout, bench.options.join_timeout);
    auto store = store::TcpStore::connect(store_address, net::after(net::now(), bench.options.join_timeout), patient);
    if (!store) return tl::unexpected(store.error());
    const auto closes_store = interruption.ends([&] { (*store)->close(); });
    auto communicator = comm::Communicator::form(**store, bench.rank, bench.world, bench.options);
    if (!communicator) return tl::unexpected(communicator.error());
    const auto leaves_job = interruption.ends([&] { (*communicator)->abort(); });
    store::Rendezvous rendezvous(**store,
                                 {.prefix = bench.options.name + "-bench", .rank = bench.rank, .world = bench.world});
    Measurement measurement(bench, **communicator, rendezvous);
    for (const std::uint64_t bytes : bench.sizes) {
        const auto result = measurement.measure(bytes);
        if (!result) return tl::unexpected(result.error());
        if (bench.rank == 0) measured(*result);
    }
    return rendezvous.barrier("end", net::now() + std::chrono::minutes(1));
}

}  // namespace

Result<void> run_bench_rank(const BenchRank& bench, const std::function<void(const BenchSize&)>& measured) {
    const auto addresses = net::resolve(bench.rendezvous);
    if (!addresses) return tl::unexpected(addresses.error());
    Interruption interruption;
    std::unique_ptr<store::TcpStoreServer> server;
    if (bench.rank == 0 && bench.serves_store) {
        auto started = store::TcpStoreServer::start(addresses->front());
        if (!started) return tl::unexpected(started.error());
        server = *std::move(started);
    }
    auto done = take_part(bench, addresses->front(), interruption, measured);
    if (interruption.came()) return fail(Operation::wait, Reason::closed, {}, "stopped by a signal");
    // Even if this rank failed, the other ranks must be able to read the reason in the store.
    if (server != nullptr) static_cast<void>(server->wait_deserted(net::now() + farewell));
    return done;
}

}  // namespace atp::apps
