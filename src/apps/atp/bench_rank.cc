// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "apps/atp/bench_values.h"
#include "apps/common/cpu_time.h"
#include "apps/common/interruption.h"
#include "comm/communicator.h"
#include "net/clock.h"
#include "net/resolve.h"
#include "net/udp_report.h"
#include "protocol/worker.h"
#include "store/rendezvous.h"
#include "store/tcp_store.h"
#include "store/tcp_store_server.h"

namespace atp::apps {
namespace {

// Time for which rank 0 keeps the store for ranks that still use it.
constexpr Duration farewell = std::chrono::seconds(5);

Result<std::vector<double>> of_all_ranks(store::Rendezvous& rendezvous, const std::string& name, double seconds) {
    const auto all = rendezvous.all_gather(name, fmt::format("{:.9f}", seconds), net::now() + std::chrono::minutes(1));
    if (!all) return tl::unexpected(all.error());
    std::vector<double> values;
    for (const std::string& text : *all) values.push_back(std::stod(text));
    return values;
}

class Measurement {
  public:
    Measurement(const BenchRank& bench, comm::Communicator& communicator, store::Rendezvous& rendezvous)
        : bench_(bench),
          communicator_(communicator),
          rendezvous_(rendezvous),
          values_(bench.options, bench.type, bench.magnitude, bench.rank, bench.world) {}

    Result<BenchSize> measure(std::uint64_t bytes) {
        auto measured = bench_.measure ? bench_.measure(bench_, communicator_, rendezvous_) : measure_collective(bytes);
        if (!measured) return measured;
        BenchSize& result = *measured;
        const BenchCounters counted = count();
        result.counters = growth(bench_fields, counted, std::exchange(counted_, counted));
        result.results_by_group = communicator_.results_by_group();
        result.without = communicator_.missing_features();
        result.host_ranks = communicator_.formation().host_ranks;
        result.layout = communicator_.formation().layout;
        result.lanes = communicator_.formation().lanes;
        result.window = communicator_.formation().window;
        return measured;
    }

  private:
    Result<BenchSize> measure_collective(std::uint64_t bytes) {
        const std::unique_ptr<CollectiveWork> work = make_work(bench_.collective, values_, bytes);
        return measure_rounds(bench_, rendezvous_, size_number_++, bytes,
                              {.barrier = [this] { return meet(); },
                               .clear = [&] { work->clear(); },
                               .run = [&] { return work->run(communicator_); },
                               .wrong = [&] { return work->wrong(); }});
    }
    [[nodiscard]] Result<void> meet() {
        const Result<comm::Handle> barrier = communicator_.barrier();
        if (!barrier) return tl::unexpected(barrier.error());
        return (*barrier)->wait();
    }
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

    const BenchRank& bench_;
    comm::Communicator& communicator_;
    store::Rendezvous& rendezvous_;
    BenchValues values_;
    std::size_t size_number_ = 0;
    BenchCounters counted_;  // at the end of the previous size
};

// Until all ranks have measured all sizes.
Result<void> measure_sizes(const BenchRank& bench, comm::Communicator& communicator, store::Store& store,
                           double formation_seconds, const BenchMeasured& measured) {
    store::Rendezvous rendezvous(store,
                                 {.prefix = bench.options.name + "-bench", .rank = bench.rank, .world = bench.world});
    Measurement measurement(bench, communicator, rendezvous);
    for (const std::uint64_t bytes : bench.sizes) {
        auto result = measurement.measure(bytes);
        if (!result) return tl::unexpected(result.error());
        result->formation_seconds = formation_seconds;
        if (bench.rank == 0) measured(*result);
    }
    return rendezvous.barrier("end", net::now() + std::chrono::minutes(1));
}

Result<void> take_part(const BenchRank& bench, const wire::Address& store_address, Interruption& interruption,
                       const BenchMeasured& measured) {
    store::TcpStoreConfig patient;  // the store may be as busy as the ranks: an answer may take until --timeout
    patient.answer_timeout = std::max(patient.answer_timeout, bench.options.join_timeout);
    auto store = store::TcpStore::connect(store_address, net::after(net::now(), bench.options.join_timeout), patient);
    if (!store) return tl::unexpected(store.error());
    const auto closes_store = interruption.ends([&] { (*store)->close(); });
    if (bench.take_part) return bench.take_part(bench, **store, interruption, measured);
    const Time begin = net::now();
    auto communicator = comm::Communicator::form(**store, bench.rank, bench.world, bench.options);
    if (!communicator) return tl::unexpected(communicator.error());
    const double formation_seconds = std::chrono::duration<double>(net::now() - begin).count();
    Result<void> done;
    {
        const auto leaves_job = interruption.ends([&] { (*communicator)->abort(); });
        done = measure_sizes(bench, **communicator, **store, formation_seconds, measured);
    }
    const std::shared_ptr<observe::TraceFile> trace = (*communicator)->trace();
    communicator->reset();
    if (!done || trace == nullptr) return done;
    const auto failure = trace->close().failure;
    return failure ? Failure(*failure) : done;
}

}  // namespace

Failure wrong_result(const BenchRank& bench, std::uint64_t bytes, std::size_t element) {
    return fail(Operation::wait, Reason::failed, fmt::format("rank {}", bench.rank),
                fmt::format("WRONG RESULT: {}: element {} of a tensor of {} bytes differs from the right one",
                            to_string(bench.collective), element, bytes));
}

Result<BenchSize> gather_rounds(store::Rendezvous& rendezvous, std::size_t number, std::uint64_t bytes,
                                const std::vector<double>& own_seconds, double own_cpu_seconds) {
    BenchSize result;
    result.bytes = bytes;
    for (std::size_t round = 0; round < own_seconds.size(); ++round) {
        const auto all = of_all_ranks(rendezvous, fmt::format("time-{}-{}", number, round), own_seconds[round]);
        if (!all) return tl::unexpected(all.error());
        result.seconds.push_back(std::ranges::max(*all));
    }
    const auto cpu_seconds = of_all_ranks(rendezvous, fmt::format("cpu-{}", number), own_cpu_seconds);
    if (!cpu_seconds) return tl::unexpected(cpu_seconds.error());
    result.cpu_seconds = std::accumulate(cpu_seconds->begin(), cpu_seconds->end(), 0.0);
    return result;
}

Result<BenchSize> measure_rounds(const BenchRank& bench, store::Rendezvous& rendezvous, std::size_t number,
                                 std::uint64_t bytes, const BenchOperation& operation) {
    std::vector<double> own;
    CpuTime cpu;
    for (std::uint32_t round = 0; round < bench.warmup + bench.rounds; ++round) {
        if (round == bench.warmup) cpu.start();
        cpu.aside(operation.clear);
        if (auto met = operation.barrier(); !met) return tl::unexpected(met.error());
        const Time begin = net::now();
        const auto done = operation.run();
        const double seconds = std::chrono::duration<double>(net::now() - begin).count();
        if (!done) return tl::unexpected(done.error());
        if (const auto wrong = cpu.aside(operation.wrong)) return wrong_result(bench, bytes, *wrong);
        if (round >= bench.warmup) own.push_back(seconds);
    }
    cpu.stop();
    return gather_rounds(rendezvous, number, bytes, own, cpu.seconds());
}

Result<void> run_bench_rank(const BenchRank& bench, Interruption& interruption, const BenchMeasured& measured) {
    const auto addresses = net::resolve(bench.rendezvous);
    if (!addresses) return tl::unexpected(addresses.error());
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
