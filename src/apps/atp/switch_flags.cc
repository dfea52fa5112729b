// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_flags.h"

#include <chrono>
#include <string_view>

#include "apps/atp/kernel_flags.h"
#include "apps/common/flags.h"
#include "base/units.h"
#include "control/address_range.h"
#include "wire/control.h"

namespace atp::apps {
namespace {

// Members take no other time.
std::optional<std::chrono::nanoseconds> parse_hold(std::string_view text) {
    const auto hold = parse_wait(text);
    const bool fits = hold && *hold >= std::chrono::milliseconds(wire::least_hold_ms) &&
                      *hold <= std::chrono::milliseconds(wire::most_hold_ms);
    return fits ? hold : std::nullopt;
}

void add_file_flags(Command& command, SwitchOptions& options) {
    Flags flags(command, "Settings");
    flags.text(
        "--config", options.config_file, "FILE", "a path",
        "TOML file with any of these flags, such as `memory = \"256MB\"`; flags that are typed win. SIGHUP reads "
        "it again [none]");
    flags.flag("--check-config", options.check, "Check the settings and the files that they name, and end");
    flags.text(
        "--control", options.control, "PATH", "a path",
        "Local socket for `atp drain`, which only the user of the switch may use [`control` in the folder that a "
        "service manager gave, or none]");
    flags.parsed("--confine", options.confinement, "MODE", confinement_of, confinement_forms,
                 "What happens to system calls that a running switch does not need: they fail, they end the switch, or "
                 "they work [refuse]");
}

// Where the switch is, and how much it holds.
void add_place_flags(Command& command, SwitchOptions& options) {
    Flags flags(command, "Switch");
    switchd::SwitchNodeConfig& config = options.config;
    flags.address("--listen", options.listen, "Local address; --xdp uses the same port [0.0.0.0:4790]");
    flags.address("--parent", options.parent, "Address of the switch above this one [none]");
    flags.parsed("--memory", config.memory_bytes, "SIZE", parse_size, size_forms,
                 "Memory of all aggregators; 0: only host parameter servers [64MB]");
    flags.number("--lanes", options.lanes, 8, ATP_MAX_LANES,
                 "Lanes of an aggregator, the most that an aggregated packet may have [as many as fill a packet of the "
                 "interface]");
    flags.number("--threads", config.shards, 1, 256,
                 "Threads, which divide both memories among them; 1 with --xdp and --p4, and at the server behind such "
                 "a switch [1]");
    flags.flag("--pin", options.pin, "Pin each thread to its own core");
    flags.number("--jobs", config.jobs, 1, 65'536, "Most jobs at a time, on all threads together [64]");
    flags.number("--channels", config.channels, 1, 1'048'576,
                 "Most channels at a time, of all jobs on all threads [256]");
    flags.parsed("--server-memory", config.server_bytes, "SIZE", parse_size, size_forms,
                 "Most memory of all parameter servers on this switch [4GiB, or a quarter of the host's memory]");
    flags.text("--state", options.state, "FILE", "a path",
               "File with what outlives a restart: with it, running jobs keep their places before new ones [none]");
    flags.flag("--server,!--no-server", options.hosts_servers,
               "Host the parameter servers of jobs that request them on their last switch [yes]");
}

void add_limit_flags(Command& command, SwitchOptions& options) {
    switchd::SwitchNodeConfig& config = options.config;
    using control::address_ranges_forms;
    Flags flags(command, "Hosts");
    flags.text("--tenants", options.tenants, "FILE", "a path",
               "File with the teams that may use this switch, their keys and limits; SIGHUP reads it again [none: open "
               "to all]");
    flags.text("--parent-key", options.parent_key, "FILE", "a path",
               "Key file of this switch at a parent with tenants, of a tenant that the parent's file marks as fabric "
               "[none: the parent is open]");
    flags.parsed("--clients", config.clients, "NETWORKS", control::parse_ranges, address_ranges_forms,
                 "Hosts that may join and ask this switch; others get no answer [all]");
    flags.parsed("--servers", config.servers, "NETWORKS", control::parse_ranges, address_ranges_forms,
                 "Hosts that jobs may name as server or root [all but this switch, broadcast and multicast]");
    flags.parsed("--groups", config.groups, "NETWORKS", control::parse_ranges, address_ranges_forms,
                 "Multicast groups to which jobs may have results sent, such as 239.192.0.0/16 [none]");
}

void add_path_flags(Command& command, KernelPartConfig& kernel) {
    Flags flags(command, "Switch in the path of packets (kernel or P4)");
    flags.parsed("--xdp", kernel.interfaces, "INTERFACES", parse_interfaces, "interface names separated by commas",
                 "Aggregate in the kernel on these interfaces; needs root. List every port to a worker and the port to "
                 "the server [none]");
    flags.text("--xdp-pins", kernel.pins, "FOLDER", "a path",
               "Folder on a bpffs, which keeps the state of the kernel switch over a restart [/sys/fs/bpf/atp]");
    flags.flag("--marks", kernel.marks,
               "Mark packets of every sender that leave these interfaces (ECN) above 0.98 of the link's rate");
    flags.parsed(
        "--link-rate", kernel.rates, "RATES", parse_link_rates, link_rate_forms,
        "Rate for --marks, which it implies: of links or their shapers, with Ethernet headers. Without --xdp: also "
        "mark packets that leave the named interfaces [as the driver of a card reports; nothing is marked where none "
        "does]");
    flags.number("--level", kernel.level, 0, ATP_LEVELS - 1,
                 "Position of an --xdp or --p4 switch: 0 in a rack, 1 above the racks [0]");
    flags.text("--p4", kernel.pipeline, "ADDRESS", address_forms,
               "Control a BMv2 `simple_switch` at this Thrift address, running a program from p4/ [none]");
    flags.text("--p4-control", kernel.pipeline_control, "INTERFACE", "the name of an interface",
               "Interface at which the pipeline delivers control messages, the other end of its port 64 [none]");
}

void add_time_flags(Command& command, SwitchOptions& options) {
    Flags flags(command, "Times");
    switchd::SwitchNodeConfig& config = options.config;
    flags.parsed("--ageing", config.ageing, "TIME", parse_duration, duration_forms,
                 "Idle time after which another fragment may claim an aggregator [500ms]");
    flags.parsed("--hold", config.hold, "TIME", parse_hold, "a time from 100ms to 60s",
                 "Declare a silent worker dead after this time [3s]");
    flags.parsed("--spin", config.spin, "TIME", parse_duration, duration_forms,
                 "Time for which a thread polls before it sleeps; lowers latency, keeps a core busy [0]");
    flags.number("--busy-poll", options.busy_poll_us, 0, 1'000'000,
                 "Microseconds for which the kernel polls the network device (SO_BUSY_POLL) [0]");
}

void add_output_flags(Command& command, SwitchOptions& options) {
    Flags flags(command, "Output");
    flags.parsed("--log-level", options.log_level, "LEVEL", observe::severity_of, observe::severity_forms,
                 "Least severity of the lines on standard error [info; with --quiet: error]");
    flags.parsed("--log-format", options.log_format, "FORMAT", observe::log_format_of, "text or json",
                 "Format of these lines; json: one object per line [text]");
    flags.text("--trace", options.trace, "FILE", "a path",
               "Write a line for each packet sent and received to this file, which only its owner can read [none]");
    flags.address("--http", options.metrics.http,
                  "Serve metrics and a live page at this local address, in a thread of its own [none]");
    flags.text("--http-key", options.metrics.key_file, "FILE", "a path",
               "File with the operator's key, which scrapers and browsers must send; needed with --tenants [none]");
    flags.flag("--quiet", options.quiet, "Print errors only");
    flags.flag("--json", options.json, "Print the first report as JSON, with the address in use");
}

}  // namespace

observe::LogConfig log_config(const SwitchOptions& options) {
    const auto usual = options.quiet ? observe::Severity::error : observe::Severity::info;
    return {.level = options.log_level.value_or(usual),
            .format = options.log_format,
            .enter_thread = options.config.enter_thread};
}

void add_switch_flags(Command& command, SwitchOptions& options) {
    add_file_flags(command, options);
    add_place_flags(command, options);
    add_limit_flags(command, options);
    add_path_flags(command, options.kernel);
    add_time_flags(command, options);
    add_output_flags(command, options);
}

}  // namespace atp::apps
