// SPDX-License-Identifier: Apache-2.0
// The report of a switch: a switch fills it, and `atp stats` and `atp doctor` read it. In transit it is one JSON
// object, whose keys docs/reference/counters.md lists.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "control/join_tree.h"
#include "control/table_slices.h"
#include "net/udp_report.h"
#include "protocol/server.h"
#include "protocol/switch.h"

namespace atp::client {

// A key of a report that the structs below do not have: from an experiment, or from another version.
struct ReportPart {
    std::string name;
    std::string json;  // its value
};

// Which child the others wait for. The rank is that of a worker, if the switch knows it.
struct SlowestChild {
    std::optional<std::uint16_t> rank{};
    std::uint8_t unit = 0;
    std::uint8_t share_percent = 0;
    std::uint8_t last_percent = 0;
    std::uint16_t waited_permille = 0;
};

struct ChannelReport {
    std::uint32_t job = 0;
    std::uint16_t channel = 0;
    std::string protocol = "atp";
    std::uint8_t level = 0;
    bool ready = false;
    std::uint32_t present = 0;              // children that joined
    std::uint32_t expected = 0;             // children of the complete tree
    bool hosts = false;                     // the server of the channel runs here
    bool by_group = false;                  // results go to the group, not to each child
    std::optional<SlowestChild> slowest{};  // nullopt: too few fragments, or none waited, in the last interval
    protocol::ServerCounters server{};      // all 0 unless `hosts`
    std::string job_name{};                 // what people call the job; empty: it has no name
    std::string tenant{};                   // whose job it is; empty: the switch was open when it joined
    std::uint64_t server_bytes = 0;         // reserved for the server; 0 unless `hosts`
};

// A tenant and its limits. nullopt: that of the switch.
struct TenantReport {
    std::string name{};
    std::optional<std::uint32_t> jobs{};
    std::optional<std::uint32_t> channels{};
    std::optional<std::uint64_t> server_bytes{};
};

// What a tenant with jobs has of a table.
struct SliceReport {
    std::string tenant{};           // empty: it is not in the tenants file any more
    std::uint32_t aggregators = 0;  // of its slice
    // by its fragments, also where its slice was before a change; nullopt: a switch in the path does not count them
    std::optional<std::uint32_t> held{};
};

// Of each tenant with jobs in this table. `held_by`: aggregators of a job; null: not known.
[[nodiscard]] std::vector<SliceReport> slices_in(
    const control::TableSlices& slices, const std::function<std::uint32_t(const control::JobKey&)>& held_by = {});

struct JobReport {
    std::uint32_t job = 0;
    protocol::SwitchCounters counters{};
};

// tools/write_events writes the counters of a thread from src/events.toml.
// Of a thread of a switch.
struct ShardCounters {
    std::uint64_t unrouted = 0;       // packets without a channel here or a receiver, or that the send queue refused
    std::uint64_t grouped = 0;        // results sent once, to a group
    std::uint64_t gathered_acks = 0;  // ACKs without lanes that were sent in lists; copies do not count
    // packets that carried them. `gathered_acks` divided by this is the average list (up to 16)
    std::uint64_t ack_lists = 0;
    std::uint64_t control_refused = 0;  // control messages that do not decode
    // control messages dropped because too many waited, or because too many addresses without a cookie asked; they are
    // repeated
    std::uint64_t control_lost = 0;
    std::uint64_t control_retries = 0;    // JOINs without a valid cookie, which their sender repeats with one
    std::uint64_t control_strangers = 0;  // control messages of hosts outside `--clients`
};

inline constexpr std::array shard_fields{
    counter<&ShardCounters::unrouted>("unrouted"),
    counter<&ShardCounters::grouped>("multicast_results"),
    counter<&ShardCounters::gathered_acks>("gathered_acks"),
    counter<&ShardCounters::ack_lists>("ack_lists"),
    counter<&ShardCounters::control_refused>("control_refused"),
    counter<&ShardCounters::control_lost>("control_lost"),
    counter<&ShardCounters::control_retries>("control_retries"),
    counter<&ShardCounters::control_strangers>("control_strangers"),
};
// End of the written part.

// A port that marks packets.
struct MarkReport {
    std::string interface {};
    std::uint64_t link_rate = 0;  // bit/s
    std::uint64_t marked = 0;     // frames that left with CE because the port was congested
};

// State of a kernel switch, in addition to what every shard has.
struct KernelReport {
    std::uint32_t lanes = 0;                                           // per aggregator
    std::uint8_t level = 0;                                            // level at which it aggregates
    std::vector<std::pair<std::string, std::string>> interfaces = {};  // name; native, generic or gone
    std::vector<std::uint32_t> passing_jobs = {};   // forwarded unaggregated: only a part of their packets passes here
    std::vector<std::string> without_release = {};  // interfaces without the program at tc egress, and why
    std::vector<std::string> without_copies = {};   // interfaces without the program at tc ingress, and why
    std::vector<MarkReport> marks = {};             // interfaces whose packets get congestion marks
    std::uint64_t oversized = 0;
    std::uint64_t damaged = 0;
    std::uint64_t not_admitted = 0;
    std::uint64_t copied_bytes = 0;
    std::uint64_t results_not_copied = 0;
};

// tools/write_events writes the counters of a kernel from src/events.toml.
// Of a kernel switch.
inline constexpr std::array kernel_fields{
    counter<&KernelReport::oversized>("oversized"),
    counter<&KernelReport::damaged>("damaged"),
    counter<&KernelReport::not_admitted>("not_admitted"),
    counter<&KernelReport::copied_bytes>("copied_bytes"),
    counter<&KernelReport::results_not_copied>("results_not_copied"),
};
// End of the written part.

// One thread of a switch, or the kernel switch.
struct ShardReport {
    std::string address = {};
    std::uint32_t aggregators = 0;
    protocol::SwitchCounters packets{};
    ShardCounters shard{};
    control::TreeCounters tree{};
    net::UdpCounters udp{};
    net::UdpReport features{};  // a report read from JSON has the texts only
    std::vector<JobReport> jobs = {};
    std::vector<ChannelReport> channels = {};
    std::vector<SliceReport> slices = {};  // without tenants: none
    std::optional<KernelReport> kernel = {};
    std::vector<ReportPart> parts = {};
};

struct SwitchReport {
    std::uint64_t id = 0;  // drawn at each start
    std::string software = {};
    std::string address = {};
    std::string parent = {};  // address; empty: this switch is the root
    bool parent_answers = false;
    double uptime_s = 0;
    std::uint64_t hellos = 0;  // received since the start
    std::uint16_t lanes = 0;
    std::uint64_t memory_bytes = 0;  // of all aggregators
    bool draining = false;           // it takes no new job, and ends after the last one
    bool is_open = false;            // it has no tenants: any host may start jobs
    std::vector<TenantReport> tenants = {};
    std::vector<ShardReport> shards = {};
    std::vector<ReportPart> parts = {};
};

// One JSON object. It contains no tokens, because tokens are capabilities.
[[nodiscard]] std::string to_json(const SwitchReport& report);
// The same JSON, also of other versions, but without control characters. nullopt: it is none.
[[nodiscard]] std::optional<std::string> printable_report(std::string_view text);
// nullopt: the text is no report of a switch. A missing key leaves the default, except `shards`.
[[nodiscard]] std::optional<SwitchReport> read_switch_report(std::string_view text);

// Appends each key of the JSON object `object` to `parts`; an empty text has no keys.
void add_parts(std::string_view object, std::vector<ReportPart>& parts);

// The kernel switch; nullptr: there is none.
[[nodiscard]] const ShardReport* kernel_of(const SwitchReport& report);
// Bytes of the aggregators of a kernel switch; 0 for any other shard.
[[nodiscard]] std::uint64_t memory_of_kernel(const ShardReport& shard);
// Probability with which the switch drops packets for an experiment, in each direction; nullopt: the ports are not
// emulated.
[[nodiscard]] std::optional<double> emulated_loss(const SwitchReport& report);

}  // namespace atp::client
