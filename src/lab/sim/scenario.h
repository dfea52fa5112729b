// SPDX-License-Identifier: Apache-2.0
// Everything that one simulated run depends on. Two runs of equal scenarios are equal to the last bit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "switchml/job.h"
#include "wire/format.h"
#include "workload/training.h"

namespace atp::sim {

struct TopologySpec {
    enum class Shape : std::uint8_t {
        star,      // star:N        one switch, N workers, the server behind the same switch
        racks,     // racks:RxN     R racks of N workers, a root switch with the server
        dumbbell,  // dumbbell:AxB  A workers left, B workers and the server right, one link between (ATP §5.3.2)
        fig9,      // fig9          three racks of two; the third rack's switch is the server's (ATP Figure 9)
    };
    Shape shape = Shape::star;
    unsigned first = 4;   // N, R, A
    unsigned second = 1;  // N, B

    friend bool operator==(const TopologySpec&, const TopologySpec&) = default;
};

[[nodiscard]] std::optional<TopologySpec> parse_topology(std::string_view text);
[[nodiscard]] std::string to_string(const TopologySpec& spec);
inline constexpr std::string_view topology_forms = "star:N, racks:RxN, dumbbell[:AxB] or fig9, with 1 to 32 for each";

enum class ServerPlace : std::uint8_t {
    on_switch,  // on the box of the last switch: no link between them
    dedicated,  // on a host of its own
    shared,     // on one host for the servers of all jobs
    colocated,  // on the host of one of the job's workers, sharing its link
};

enum class Aggregation : std::uint8_t {
    everywhere,
    racks,    // every switch for its own rack only: what ATP is compared with in Figure 9
    nowhere,  // switches only forward
};

enum class Placement : std::uint8_t {
    shared,    // each host runs one worker of every job
    separate,  // each job has hosts of its own
};

// What a host spends on a packet that it sends or receives. Its parts work side by side, as threads and cards do, so a
// link from or to a host serves a packet in the longest of three times: on the wire, for the packet, for copying it. A
// slow host looks like a slow link: packets queue, are marked and dropped at the switch, which in truth would happen in
// the host's ring.
struct HostCost {
    Duration per_packet{};
    std::int64_t bits_per_s = 0;  // copying, of what a packet takes on the wire; 0: takes no time

    friend bool operator==(const HostCost&, const HostCost&) = default;
};

// From single numbers of the ATP paper, and from nothing else.
//
// Appendix D.1: hosts with TSO and multi-packet queue pairs carry 60 Gbit/s in packets of 306 bytes, where copying
// memory holds them back, and 1.3 times less in packets of 180 bytes, where it does not: 31 ns a packet. With 24 bytes
// of preamble, checksum and gap the 60 Gbit/s are 64.7 on the wire.
inline constexpr HostCost cost_of_papers{.per_packet = Duration(31), .bits_per_s = 64'700'000'000};
// Copying is also why RDMA does not reach the rate of the line in the same measurement (7.2.1 of the submission before
// the paper); network cards see to single packets. A server that adds is no slower than one that copies (60 Gbit/s in
// Section 5.5, too), so adding takes the place of copying and costs nothing more.
inline constexpr HostCost rdma_cost_of_papers{.bits_per_s = cost_of_papers.bits_per_s};
// Section 5.2.1: ATP is up to 8.7 times as fast as one server over TCP. Where neither computes, ATP moves a tensor at
// 60 Gbit/s * 248 / 306 and the server eight of them at 8.7 times less each: 45 Gbit/s of kernel TCP.
inline constexpr HostCost tcp_cost_of_papers{.bits_per_s = 45'000'000'000};

// How systems other than ATP carry bytes from host to host: sim/flow.h says what each stands for.
enum class Transport : std::uint8_t { rdma, tcp };

// The largest magnitude among a fragment's elements, where the scale is 1e8.
//
// Table 1: of the 8.3e9 packets of an epoch of ResNet50 (25.6 M parameters in 62 lanes, 1.28 M images in batches of 64)
// 37,002 hold an element beyond 2^31 / 8 with eight workers, 14,602,998 one beyond 2^31 / 64 with 64. Both lie on this
// curve; what the table has for 16 and 32 lies within a factor of 2.2.
inline constexpr LogNormal gradients_of_papers{.median = 0.0082, .spread = 1.36};

// What sums a job's gradients.
struct System {
    enum class Kind : std::uint8_t {
        atp,
        ps,    // one parameter server
        ps_n,  // one on each worker's host
        ring,  // all-reduce
        switchml,
    };
    Kind kind = Kind::atp;
    Transport transport = Transport::rdma;

    friend bool operator==(const System&, const System&) = default;
};

[[nodiscard]] std::optional<System> parse_system(std::string_view text);
[[nodiscard]] std::string to_string(const System& system);
inline constexpr std::string_view system_forms = "atp, switchml, or ps, ps-n or ring, each with :rdma or :tcp";

// What all jobs of SwitchML have alike, beside what their number and the rate of the links decide.
struct SwitchmlSpec {
    std::uint32_t pool = 0;  // slots of the switch, an equal part for each job; 0: as many for each as the paper took
    std::uint16_t lanes = switchml::paper_lanes;
    bool halves = false;  // lanes travel as float16
    switchml::Mode mode = switchml::Mode::compares_offsets;
    Duration timeout = std::chrono::milliseconds(1);

    friend bool operator==(const SwitchmlSpec&, const SwitchmlSpec&) = default;
};

// Section 3.6: 128 slots at 10 Gbit/s, 512 at 100, from the paper's measurements.
[[nodiscard]] constexpr std::uint32_t switchml_slots_of_paper(std::int64_t rate_bits_per_s) {
    return rate_bits_per_s <= 10'000'000'000 ? 128 : 512;
}

// A flow of somebody else between a worker's host and one of its own behind the last switch.
struct BackgroundSpec {
    unsigned rank = 0;     // of the first job
    bool inbound = false;  // towards the worker
    Transport transport = Transport::tcp;
    Time start{};
    std::optional<Duration> lasts;  // until all jobs are done

    friend bool operator==(const BackgroundSpec&, const BackgroundSpec&) = default;
};

[[nodiscard]] std::string to_string(const BackgroundSpec& spec);

// The part of a whole that is divided as evenly as whole numbers allow.
[[nodiscard]] constexpr std::uint64_t share_of(std::uint64_t whole, std::uint64_t part, std::uint64_t parts) {
    return whole * (part + 1) / parts - whole * part / parts;
}

// A node that stops for a while. A crashed switch forgets its aggregators; a crashed worker or server ends the job's
// incarnation. A paused node receives everything when it goes on.
struct Outage {
    enum class Kind : std::uint8_t { crash, pause };
    enum class Node : std::uint8_t { fabric_switch, worker, server };
    Kind kind = Kind::crash;
    Node node = Node::fabric_switch;
    unsigned job = 0;    // of a worker or server
    unsigned index = 0;  // of the switch, or the worker's rank
    Time at{};
    Duration lasts = std::chrono::milliseconds(1);
};

// What a test does to one packet on one link, besides what chance does.
struct Passage {
    std::string_view from;
    std::string_view to;
    const atp_header& header;
    Time now;
};
struct Fate {
    bool lose = false;
    bool duplicate = false;
    Duration delay{};  // beyond the link's own; the packets behind it may overtake
};

struct Faults {
    double loss = 0;                       // probability for each packet on each link
    std::optional<unsigned> lossy_worker;  // the rank, in every job: only its host's links lose packets
    double duplicate = 0;                  // that a second copy follows
    double reorder = 0;                    // that it is held back for up to reorder_delay
    Duration reorder_delay = std::chrono::microseconds(20);
    double replay = 0;   // that a copy is kept and delivered once more when a job forms anew (hazard 27)
    Time until = never;  // from here on links are perfect
    std::vector<Outage> outages;
    std::function<Fate(const Passage&)> interfere;  // tests only
};

struct Scenario {
    std::uint64_t seed = 1;
    TopologySpec topology;
    ServerPlace server = ServerPlace::on_switch;
    Aggregation aggregation = Aggregation::everywhere;
    Placement placement = Placement::shared;

    // Links. Queues belong to switches; a host holds back what its link cannot take, which its window bounds.
    std::int64_t rate_bits_per_s = 100'000'000'000;
    Duration delay = std::chrono::microseconds(1);
    std::uint64_t queue_bytes = 2'000'000;
    std::uint64_t ecn_bytes = 200'000;
    unsigned paths = 1;                                 // between two switches; packets take them at random
    Duration path_skew = std::chrono::microseconds(5);  // path i is i times this longer
    // A datagram's company on an Ethernet: 14 Ethernet + 20 IPv4 + 8 UDP, and 8 preamble + 4 FCS + 12 gap.
    std::uint32_t overhead_bytes = 14 + 20 + 8 + 8 + 4 + 12;

    HostCost host_cost;  // of packets that bypass the kernel
    HostCost tcp_cost;
    HostCost rdma_cost;

    unsigned jobs = 1;
    // Of each job, dealt out like models: the topology's first ranks. Without any, all of them.
    std::vector<unsigned> job_workers;
    unsigned channels = 1;            // of each job
    std::uint64_t bytes = 1'000'000;  // float32 each worker contributes in one iteration
    unsigned tensors = 1;             // they are divided into
    unsigned iterations = 1;
    Duration pause{};             // of computation between two iterations: the off phase
    Duration stagger{};           // job k starts k times this later
    Duration mean_gap{};          // and after as many exponential gaps of this mean: random arrivals
    std::vector<System> systems;  // job k has the k-th of them, in turn; ATP without any
    std::vector<BackgroundSpec> background;

    // Names of neural networks, dealt out to jobs like systems. With them tensors, their bytes and the computation are
    // the model's, in buckets of `bucket_bytes`; all of it is divided by `scale`.
    std::vector<std::string> models;
    std::optional<unsigned> batch;  // samples of a worker in an iteration; by default the model's
    double scale = 1;
    std::uint64_t bucket_bytes = 4'000'000;
    bool priority = false;  // what the next forward pass needs first overtakes what waits to be sent

    std::uint32_t first_job = 1;  // its number; the others follow

    std::uint16_t lanes = 62;
    std::uint8_t window_log2 = 8;
    bool audit = true;
    std::uint32_t first_seq = 0;
    std::uint32_t aggregators = 4096;
    bool linear = false;       // aggregators in sequence instead of hashed
    bool partition = false;    // an equal part of them for each job, to itself
    bool proactive = false;    // what could overflow bypasses the switches
    double forward_share = 0;  // of the fragments: switches forward them to the server, every worker's packet alike
    Duration ageing = std::chrono::milliseconds(500);
    std::uint32_t initial_packets = 200;
    bool congestion_control = true;
    bool blind_resend = false;  // a worker's timer sends fragments again instead of asking for them
    Duration min_timeout = std::chrono::milliseconds(1);
    Duration max_timeout = std::chrono::milliseconds(200);

    SwitchmlSpec switchml;

    double float_share = 0;              // of the fragments: some worker has NaN, Inf or values beyond int32
    double overflow_share = 0;           // of the fragments: values whose sums meet the ends of int32
    double plain_share = 0;              // of the tensors: sums that are wanted as integers
    std::optional<LogNormal> gradients;  // the largest magnitude in a fragment; by default all are small

    std::optional<unsigned> straggler;  // the rank, in every job, whose uplink is slower
    double straggler_factor = 100;
    Faults faults;
    std::optional<Duration> deadline;  // of each operation; by default only where a worker or server crashes
    std::optional<Duration> sample;    // the report has a series of this interval
    Time time_limit = Time(std::chrono::seconds(1000));

    [[nodiscard]] bool ends_incarnations() const;
    [[nodiscard]] std::optional<Duration> effective_deadline() const;
    [[nodiscard]] std::uint16_t payload_lanes() const { return static_cast<std::uint16_t>(lanes - (audit ? 1 : 0)); }
    [[nodiscard]] unsigned workers() const;  // for which the topology has room, of each job
    [[nodiscard]] unsigned workers_of(unsigned job) const;
    [[nodiscard]] System system_of(unsigned job) const;
    // Jobs of SwitchML among the first `count`.
    [[nodiscard]] unsigned switchml_jobs(unsigned count) const;
    // What such a job agrees on with its switch.
    [[nodiscard]] switchml::JobConfig switchml_config(unsigned job) const;
    [[nodiscard]] std::string model_of(unsigned job) const;  // empty without one
    [[nodiscard]] unsigned batch_of(unsigned job) const;     // 0 without a model
    [[nodiscard]] HostCost cost_of(Transport transport) const {
        return transport == Transport::tcp ? tcp_cost : rdma_cost;
    }
    [[nodiscard]] Time start_of(unsigned job) const;
    [[nodiscard]] workload::Workload workload(unsigned job) const;
};

// What is wrong with it, in words for whoever chose the values; nothing when it can be run.
[[nodiscard]] std::optional<std::string> problem_of(const Scenario& scenario);

}  // namespace atp::sim
