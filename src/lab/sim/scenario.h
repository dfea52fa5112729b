// SPDX-License-Identifier: Apache-2.0
// All inputs of one simulated run. Two runs of equal scenarios give equal reports, bit for bit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "random/random.h"
#include "switchml/job.h"
#include "tensor/number_form.h"
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

enum class ServerPlacement : std::uint8_t {
    on_switch,  // on the host of the last switch: no link between them
    dedicated,  // on a host of its own
    shared,     // on one host for the servers of all jobs
    colocated,  // on the host of one of the job's workers; they share its link
};

enum class Aggregation : std::uint8_t {
    everywhere,
    racks,    // only the switches of racks aggregate: the baseline of ATP Figure 9
    nowhere,  // switches only forward
};

enum class Placement : std::uint8_t {
    shared,    // each host runs one worker of every job
    separate,  // each job has hosts of its own
};

// Time that a host spends on each packet that it sends or receives. Wire, packet processing and copying run in
// parallel. A link from or to a host therefore serves a packet in the longest of the three times. The simulator models
// a slow host as a slow link: the switch queues, marks and drops packets that a real host would drop in its receive
// ring.
struct HostCost {
    Duration per_packet{};
    std::int64_t bits_per_s = 0;  // rate of copying, counted in bytes on the wire; 0: copying takes no time

    friend bool operator==(const HostCost&, const HostCost&) = default;
};

// The costs are derived only from numbers that the ATP paper states.
//
// Appendix D.1: hosts with TSO and multi-packet queue pairs carry 60 Gbit/s in packets of 306 bytes; memory copies are
// the limit. In packets of 180 bytes, the rate is 1.3 times lower; the limit is the work per packet, 31 ns. Preamble,
// checksum and gap add 24 bytes to 306, so 60 Gbit/s are 64.7 Gbit/s on the wire.
inline constexpr HostCost cost_of_papers{.per_packet = Duration(31), .bits_per_s = 64'700'000'000};
// Copying also keeps RDMA below line rate in the same measurement (section 7.2.1 of the submission before the paper).
// With RDMA, the network card does the work per packet. A server adds as fast as it copies (60 Gbit/s in section 5.5,
// too), so addition costs no time beyond that of copying.
inline constexpr HostCost rdma_cost_of_papers{.bits_per_s = cost_of_papers.bits_per_s};
// Section 5.2.1: ATP is up to 8.7 times as fast as one server over TCP. Without computation, ATP moves a tensor at 60
// Gbit/s * 248 / 306. The server moves the tensors of eight workers in 8.7 times this time, which is 45 Gbit/s of
// kernel TCP.
inline constexpr HostCost tcp_cost_of_papers{.bits_per_s = 45'000'000'000};

// How systems other than ATP carry bytes between hosts. sim/flow.h describes both models.
enum class Transport : std::uint8_t { rdma, tcp };

// Distribution of the largest magnitude among the elements of a fragment, for a scale of 1e8.
//
// Table 1: an epoch of ResNet50 has 8.3e9 packets (25.6 M parameters in 62 lanes, 1.28 M images in batches of 64). With
// eight workers, 37,002 packets hold an element beyond 2^31 / 8; with 64 workers, 14,602,998 packets hold an element
// beyond 2^31 / 64. Both points lie on this curve; the points for 16 and 32 workers lie within a factor of 2.2.
inline constexpr LogNormal gradients_of_papers{.median = 0.0082, .spread = 1.36};

// The system that sums the gradients of a job.
struct System {
    enum class Kind : std::uint8_t {
        atp,
        ps,    // one parameter server
        ps_n,  // one server on each worker's host
        ring,  // ring all-reduce
        switchml,
    };
    Kind kind = Kind::atp;
    Transport transport = Transport::rdma;

    friend bool operator==(const System&, const System&) = default;
};

[[nodiscard]] std::optional<System> parse_system(std::string_view text);
[[nodiscard]] std::string to_string(const System& system);
inline constexpr std::string_view system_forms = "atp, switchml, or ps, ps-n or ring, each with :rdma or :tcp";

// Settings shared by all SwitchML jobs. The number of jobs and the rate of the links determine the rest.
struct SwitchmlSpec {
    // Slots of the switch, divided equally among the jobs. 0: each job has the number of slots that the paper measured.
    std::uint32_t pool = 0;
    std::uint16_t lanes = switchml::paper_lanes;
    bool halves = false;  // lanes are sent as float16
    switchml::Mode mode = switchml::Mode::compares_offsets;
    Duration timeout = std::chrono::milliseconds(1);

    friend bool operator==(const SwitchmlSpec&, const SwitchmlSpec&) = default;
};

// Section 3.6: the paper measured 128 slots at 10 Gbit/s and 512 at 100 Gbit/s.
[[nodiscard]] constexpr std::uint32_t switchml_slots_of_paper(std::int64_t rate_bits_per_s) {
    return rate_bits_per_s <= 10'000'000'000 ? 128 : 512;
}

// A flow of another application between a worker's host and a separate host behind the last switch.
struct BackgroundSpec {
    unsigned rank = 0;     // worker of the first job
    bool inbound = false;  // true: towards the worker
    Transport transport = Transport::tcp;
    Time start{};
    std::optional<Duration> lasts;  // empty: until all jobs are done

    friend bool operator==(const BackgroundSpec&, const BackgroundSpec&) = default;
};

[[nodiscard]] std::string to_string(const BackgroundSpec& spec);

// Size of part number `part` if `whole` is divided into `parts` parts as evenly as integers allow.
[[nodiscard]] constexpr std::uint64_t share_of(std::uint64_t whole, std::uint64_t part, std::uint64_t parts) {
    return whole * (part + 1) / parts - whole * part / parts;
}

// A temporary failure of a node, or of its link. A process that ended starts again without its state. The incarnation
// of a job that was in it, or needed it, ends. A worker that ended starts again with the next incarnation.
struct Outage {
    enum class Kind : std::uint8_t {
        crash,    // switch: the node passes nothing meanwhile; worker or server: its process ends, and its host says so
        pause,    // the node does nothing, and receives all its packets when it resumes
        kill,     // switch: only its process ends, and packets for others still pass
        silence,  // worker: its host passes nothing meanwhile, and its processes end
        leave,    // worker: it leaves in order, while the others go on. The job then ends
        cut,      // no packet passes on the link of the node, or
        cut_up,   // none from the node, or
        cut_down,  // none to the node; a switch has a link to the last one
    };
    enum class Node : std::uint8_t { fabric_switch, worker, server };
    Kind kind = Kind::crash;
    Node node = Node::fabric_switch;
    unsigned job = 0;    // the job of the worker or server
    unsigned index = 0;  // number of the switch, or rank of the worker
    Time at{};
    Duration lasts = std::chrono::milliseconds(1);
};

// A packet on one link, as Faults::interfere receives it. The test returns a Disposition; random faults are added to
// it.
struct Passage {
    std::string_view from;
    std::string_view to;
    const atp_header& header;
    Time now;
};
struct Disposition {
    bool lose = false;
    bool duplicate = false;
    Duration delay{};  // added to the delay of the link; later packets may overtake
};

struct Faults {
    double loss = 0;  // probability per packet and link
    std::optional<unsigned>
        lossy_worker;      // only links of this rank's host lose packets, in every job; empty: all links
    double duplicate = 0;  // probability that a second copy follows
    double reorder = 0;    // probability that the packet is delayed by up to reorder_delay
    Duration reorder_delay = std::chrono::microseconds(20);
    // Probability that a copy is kept and delivered again at the next incarnation (H27, docs/spec/hazards.md#h27).
    double replay = 0;
    Time from{};         // links are perfect before this time
    Time until = never;  // and from this time on
    std::vector<Outage> outages;
    bool limits_reports = false;                           // a node reports closed ports at most once a second
    std::function<Disposition(const Passage&)> interfere;  // tests only
};

struct Scenario {
    std::uint64_t seed = 1;
    TopologySpec topology;
    ServerPlacement server = ServerPlacement::on_switch;
    Aggregation aggregation = Aggregation::everywhere;
    // Switches have no address, and ranks join the switch or the host of the server. Switches add packets that pass.
    bool in_path = false;
    bool groups = false;  // results go to a multicast group of each channel
    bool keys = false;    // each job is a tenant with a key, and switches ask for it
    Placement placement = Placement::shared;

    // Links. Switches have bounded queues. The queue of a host has no bound of its own, but the window of each sender
    // limits it.
    std::int64_t rate_bits_per_s = 100'000'000'000;
    std::optional<std::int64_t> uplink_bits_per_s;  // of links between switches; empty: as rate_bits_per_s
    std::uint64_t burst_bytes = 0;                  // that an idle link saves up to send at once, as a token bucket
    Duration delay = std::chrono::microseconds(1);
    std::uint64_t queue_bytes = 2'000'000;
    std::uint64_t ecn_bytes = 200'000;
    unsigned paths = 1;                                 // between two switches; each packet takes a random one
    Duration path_skew = std::chrono::microseconds(5);  // path i has i times this additional delay
    // Headers around a datagram on Ethernet: 14 Ethernet + 20 IPv4 + 8 UDP, and 8 preamble + 4 FCS + 12 gap.
    std::uint32_t overhead_bytes = 14 + 20 + 8 + 8 + 4 + 12;

    HostCost host_cost;  // for packets that bypass the kernel
    HostCost tcp_cost;
    HostCost rdma_cost;

    unsigned jobs = 1;
    // Number of workers of each job, which run on the first hosts of the topology. Job k uses entry k, in turn. Empty:
    // all.
    std::vector<unsigned> job_workers;
    unsigned channels = 1;            // per job
    std::uint64_t bytes = 1'000'000;  // float32 values that each worker contributes per iteration, in bytes
    unsigned tensors = 1;             // number of tensors that `bytes` is divided into
    unsigned iterations = 1;
    Duration pause{};             // computation between two iterations: the off phase
    Duration start_spread{};      // the processes of a job start within this time
    Duration stagger{};           // job k starts k times this duration later than job 0
    Duration mean_gap{};          // mean of the exponential gaps between the starts of jobs (random arrivals); 0: none
    std::vector<System> systems;  // job k uses entry k, in turn; empty: ATP
    std::vector<BackgroundSpec> background;

    // Names of neural networks, assigned to jobs like systems. The model determines tensors, bytes and computation, in
    // buckets of `bucket_bytes`. All of these are divided by `scale`.
    std::vector<std::string> models;
    std::optional<unsigned> batch;  // samples of a worker per iteration; empty: the model's default
    double scale = 1;
    double slowness = 1;  // factor of the model's times only
    std::uint64_t bucket_bytes = 4'000'000;
    bool priority = false;  // gradients that the next forward pass needs first are sent before other waiting gradients

    std::uint32_t first_job = 1;  // number of the first job; later jobs have consecutive numbers

    std::uint16_t lanes = 62;
    std::uint8_t window_log2 = 8;
    bool audit = true;
    std::uint32_t first_seq = 0;
    std::uint32_t aggregators = 4096;
    bool linear = false;     // consecutive aggregators instead of hashed ones
    bool partition = false;  // each job has an equal part of the aggregators to itself
    // Switches add fragments whose sum could leave 32 bits, and overflows are recovered, as in the paper. The product
    // sends such fragments past the switches.
    bool reactive = false;
    double forward_share =
        0;  // share of fragments, 0 to 1, that switches forward to the server, the same for every worker
    Duration ageing = std::chrono::milliseconds(500);
    std::uint32_t initial_packets = 0;  // of a congestion window; 0: as in the product
    std::uint32_t most_packets = 0;     // of a congestion window; 0: as many as a channel has slots
    std::uint32_t train = 1;            // packets that a worker sends together, at most a quarter of its window
    bool congestion_control = true;
    bool blind_resend = false;  // a worker's timer resends fragments instead of sending a PROBE
    Duration min_timeout = std::chrono::milliseconds(1);
    Duration max_timeout = std::chrono::milliseconds(200);

    SwitchmlSpec switchml;

    double float_share = 0;              // share of fragments in which some worker has NaN, Inf or values beyond int32
    double overflow_share = 0;           // share of fragments whose sums reach the limits of int32
    double plain_share = 0;              // share of tensors whose sums are unscaled integers
    double owned_share = 0;              // share of tensors that are reduce-scatters and all-gathers, half of each
    bool ack_lists = true;               // switches hold ACKs without lanes back, to gather them
    std::optional<LogNormal> gradients;  // of the largest magnitude in a fragment; empty: all elements are small

    // Unless both are the defaults, ranks sum numbers in memory instead of synthetic gradients.
    tensor::Scaling scaling = tensor::Scaling::fixed;
    tensor::LaneType lane_type = tensor::LaneType::int32;
    unsigned ranks_of_host = 1;  // that sum in the memory of their host first: a worker stands for them
    // A switch in the path here adds only int32, and makes ranks send narrow integers as such.
    std::optional<unsigned> int32_switch;

    std::optional<unsigned> straggler;  // rank whose uplink is slower, in every job; empty: none
    double straggler_factor = 100;      // divisor of the rate of this uplink
    Faults faults;
    std::optional<Duration> deadline;  // of each operation; empty: 1 s if a worker or server crashes, otherwise none
    std::optional<Duration> sample;    // interval of the time series in the report; empty: no series
    Time time_limit = Time(std::chrono::seconds(1000));

    [[nodiscard]] bool ends_incarnations() const;  // a worker or server crashes
    [[nodiscard]] std::optional<Duration> effective_deadline() const;
    [[nodiscard]] std::uint16_t payload_lanes() const { return static_cast<std::uint16_t>(lanes - (audit ? 1 : 0)); }
    [[nodiscard]] bool has_numbers() const {
        return scaling != tensor::Scaling::fixed || lane_type != tensor::LaneType::int32;
    }
    // The sums of a host have no owner, and floats have the integers of their tensor.
    [[nodiscard]] bool may_share_memory() const { return owned_share == 0 && overflow_share == 0; }
    // That a packet of integers has.
    [[nodiscard]] std::uint64_t elements_of_packet() const;
    [[nodiscard]] unsigned workers() const;  // of the topology: the maximum for each job
    [[nodiscard]] unsigned workers_of(unsigned job) const;
    [[nodiscard]] System system_of(unsigned job) const;
    // SwitchML jobs among the first `count` jobs.
    [[nodiscard]] unsigned switchml_jobs(unsigned count) const;
    // The parameters on which a SwitchML job and its switch agree.
    [[nodiscard]] switchml::JobConfig switchml_config(unsigned job) const;
    [[nodiscard]] std::string model_of(unsigned job) const;  // empty: no model
    [[nodiscard]] unsigned batch_of(unsigned job) const;     // 0: no model
    [[nodiscard]] HostCost cost_of(Transport transport) const {
        return transport == Transport::tcp ? tcp_cost : rdma_cost;
    }
    [[nodiscard]] Time start_of(unsigned job) const;
    [[nodiscard]] workload::Workload workload(unsigned job) const;
};

// Describes the first invalid setting for the user; empty if the scenario can run.
[[nodiscard]] std::optional<std::string> problem_of(const Scenario& scenario);

}  // namespace atp::sim
