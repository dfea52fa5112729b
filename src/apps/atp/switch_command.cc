// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/atp/kernel_flags.h"
#include "apps/atp/kernel_part.h"
#include "apps/atp/metrics_part.h"
#include "apps/atp/switch_log.h"
#include "apps/atp/switch_text.h"
#include "apps/atp/tenants_part.h"
#include "apps/common/flags.h"
#include "apps/common/output.h"
#include "apps/common/service_notice.h"
#include "apps/common/signals.h"
#include "base/units.h"
#include "control/address_range.h"
#include "control/path_mtu_search.h"
#include "keys/key_file.h"
#include "net/affinity.h"
#include "net/interface_mtu.h"
#include "net/resolve.h"
#include "protocol/switch.h"
#include "switchd/node.h"
#include "switchd/state_file.h"
#include "wire/control.h"

namespace atp::apps {
namespace {

struct SwitchOptions {
    std::string listen = "0.0.0.0:4790";
    std::string parent;
    std::uint32_t lanes = 0;  // 0: as many as fill a packet of the interface
    bool pin = false;
    bool hosts_servers = true;
    bool quiet = false;
    bool json = false;
    std::uint32_t busy_poll_us = 0;
    KernelPartConfig kernel;
    std::optional<observe::Severity> log_level;  // nullopt: info; with `quiet`: error
    observe::LogFormat log_format = observe::LogFormat::text;
    std::string trace;
    std::string state;
    std::string tenants;
    std::string parent_key;
    MetricsOptions metrics;
    switchd::SwitchNodeConfig config;
    Given given;
    SwitchAdditions additions;
};

int misused(const std::string& why) {
    fmt::print(stderr, "atp switch: {}\n", why);
    return exit_misused;
}

int misused(const Error& error) { return misused(to_string(error)); }

Result<void> read_parent_key(SwitchOptions& options) {
    if (options.parent_key.empty()) return {};
    if (options.tenants.empty()) {
        return fail(Operation::open, Reason::malformed, options.parent_key,
                    "--parent-key is for a switch with --tenants: without them, it cannot say for whom it joins");
    }
    auto key = keys::read_key_file(options.parent_key);
    if (!key) return tl::unexpected(key.error());
    options.config.parent_key = std::make_shared<const crypto::TenantKey>(*std::move(key));
    return {};
}

Result<void> complete(SwitchOptions& options) {
    switchd::SwitchNodeConfig& config = options.config;
    const auto listen = net::resolve(options.listen);
    if (!listen) return tl::unexpected(listen.error());
    config.udp.local = listen->front();
    config.udp.busy_poll_us = options.busy_poll_us;
    if (!options.hosts_servers) config.server_bytes = 0;
    if (!options.parent.empty()) {
        const auto parent = net::resolve(options.parent, config.udp.local.family());
        if (!parent) return tl::unexpected(parent.error());
        config.parent = parent->front();
    }
    if (options.lanes != 0) {
        config.lanes = static_cast<std::uint16_t>(options.lanes);
    } else {
        const auto mtu = net::interface_mtu(config.udp.local);
        if (!mtu) return tl::unexpected(mtu.error());
        const std::uint32_t payload = control::payload_of_mtu(*mtu, config.udp.local.family());
        config.lanes = static_cast<std::uint16_t>(control::usual_lanes(control::lanes_of_payload(payload)));
    }
    if (!options.state.empty()) {
        const auto key = switchd::ticket_key_in(options.state);
        if (!key) return tl::unexpected(key.error());
        config.ticket_key = *key;
    }
    if (options.pin) {
        const auto cores = net::allowed_cores();
        if (!cores) return tl::unexpected(cores.error());
        for (std::uint32_t i = 0; i < config.shards; ++i) config.cores.push_back((*cores)[i % cores->size()]);
    }
    return {};
}

// 0 bytes are a switch that only hosts servers. A switch in the path has its table elsewhere.
std::optional<std::string> problem_of_memory(const SwitchOptions& options) {
    const switchd::SwitchNodeConfig& config = options.config;
    const bool has_table = config.memory_bytes != 0 && !options.kernel.in_path();
    if (!has_table || switchd::aggregators_of_shard(config) != 0) return std::nullopt;
    return fmt::format(
        // errors.md, starts
        "--memory: {} bytes have no room for an aggregator of {} lanes on each thread; use at least {} bytes, or 0 to "
        "only host parameter servers",
        config.memory_bytes, config.lanes, config.shards * protocol::aggregator_bytes(config.lanes));
}

// The switch in the path gets the memory, since packets that reach user space are aggregated already, or are for its
// servers. Workers that address this switch get the size of its table, because their packets index that table.
Result<std::unique_ptr<KernelPart>> start_kernel_part(SwitchOptions& options) {
    if (!options.kernel.in_path()) return nullptr;
    auto part = options.kernel.pipeline.empty() ? start_kernel_part(options.kernel, options.config)
                                                : start_pipeline_part(options.kernel, options.config);
    if (!part) return part;
    const client::ShardReport table = (*part)->snapshot();
    options.config.memory_bytes = 0;
    options.config.kernel_aggregators = table.aggregators;
    options.config.lanes = std::min(options.config.lanes, static_cast<std::uint16_t>(table.kernel->lanes));
    return part;
}

// A switch in the path marks by itself.
Result<std::unique_ptr<MarksPart>> start_marks(const SwitchOptions& options) {
    if (options.kernel.in_path() || options.kernel.rates.empty()) return nullptr;
    return start_marks_part(options.kernel);
}

// nullptr: nothing is to be served.
Result<std::unique_ptr<MetricsPart>> start_metrics(const MetricsOptions& options, const switchd::SwitchNode& node) {
    if (options.http.empty()) return nullptr;
    return MetricsPart::start(options,
                              {{to_string(node.address()), [&node] { return std::optional(node.snapshot()); }}});
}

void print_start(const switchd::SwitchNode& node, const SwitchOptions& options, const MarksPart* marks,
                 const MetricsPart* serving) {
    if (options.json) {
        fmt::print("{}\n", client::to_json(node.snapshot()));
    } else if (!options.quiet) {
        const auto& describe = options.additions.describe;
        fmt::print("{}", start_text(node, {options.kernel, marks, serving, describe ? describe(node.config()) : ""}));
    }
}

observe::LogConfig log_config(const SwitchOptions& options) {
    const auto usual = options.quiet ? observe::Severity::error : observe::Severity::info;
    return {.level = options.log_level.value_or(usual), .format = options.log_format};
}

std::string status_of(const switchd::SwitchNode& node) { return "serving at " + to_string(node.address()); }

// Counts of suppressed lines appear within a second after their period.
void wait_for_stop(const StopSignals& signals, TenantsPart& tenants, switchd::SwitchNode& node, KernelPart* in_path,
                   observe::Log& log, const ServiceNotice& manager) {
    constexpr Duration usual = std::chrono::seconds(1);
    const Duration between_polls = std::min(usual, manager.watchdog_interval().value_or(usual));
    while (true) {
        const auto signal = signals.wait_for(between_polls);
        if (signal && *signal != SIGHUP) return;
        if (signal) {
            manager.reloading();
            tenants.reload(node, in_path, log);
            manager.ready(status_of(node));
        }
        log.poll();
        if (manager.watchdog_interval() && node.turns()) manager.alive();
    }
}

Result<void> open_trace(SwitchOptions& options) {
    if (options.trace.empty()) return {};
    auto trace = observe::TraceFile::open({.path = options.trace}, options.config.log);
    if (!trace) return tl::unexpected(trace.error());
    options.config.trace = *std::move(trace);
    return {};
}

int run_switch(SwitchOptions options) {
    if (auto completed = complete(options); !completed) return misused(completed.error());
    if (const auto misuse = find_misuse(options.kernel, options.config, options.given)) return misused(*misuse);
    if (options.additions.complete) {
        const bool in_kernel = options.kernel.in_path() || !options.kernel.rates.empty();
        if (const auto misuse = options.additions.complete(options.config, in_kernel, options.given)) {
            return misused(*misuse);
        }
    }
    if (options.additions.run) {
        if (const auto status = options.additions.run(options.config, options.quiet, options.json)) return *status;
    }
    if (const auto problem = problem_of_memory(options)) return misused(*problem);
    auto tenants = TenantsPart::open(options.tenants);
    if (!tenants) return misused(tenants.error());
    options.config.tenants = tenants->tenants();
    if (auto read = read_parent_key(options); !read) return misused(read.error());
    const StopSignals signals({SIGHUP});
    options.config.log = std::make_shared<observe::Log>(log_config(options));
    observe::Log& log = *options.config.log;
    if (auto opened = open_trace(options); !opened) return misused(opened.error());
    const auto kernel = start_kernel_part(options);
    if (!kernel) return misused(kernel.error());
    const auto marks = start_marks(options);
    if (!marks) return misused(marks.error());
    switchd::SwitchNode::KernelReporter report_kernel;
    if (*kernel != nullptr) report_kernel = [&] { return (*kernel)->snapshot(); };
    auto node = switchd::SwitchNode::start(
        options.config, [] { StopSignals::notify(); }, report_kernel);
    if (!node) return misused(node.error());
    auto serving = start_metrics(options.metrics, **node);
    if (!serving) return misused(serving.error());
    print_start(**node, options, marks->get(), serving->get());
    if (!show_output()) return exit_failed;
    if (*kernel != nullptr) (*kernel)->commit();
    log_start(log, **node, log_config(options), options.trace);
    const ServiceNotice manager;
    manager.ready(status_of(**node));
    wait_for_stop(signals, *tenants, **node, kernel->get(), log, manager);
    manager.stopping();
    serving->reset();
    std::vector<Error> failures;
    if (const auto failure = (*node)->failure()) failures.push_back(*failure);
    (*node)->stop();
    if (options.config.trace) {
        if (auto failure = options.config.trace->close().failure) failures.push_back(*std::move(failure));
    }
    log_stop(log, **node, failures);
    if (*kernel != nullptr) {
        const std::vector<Error> attached = (*kernel)->stop();
        log_kernel_stop(log, options.kernel.interfaces, attached);
        std::ranges::copy(attached, std::back_inserter(failures));
    }
    for (const Error& failure : failures) fmt::print(stderr, "atp switch: {}\n", to_string(failure));
    if (!failures.empty()) return exit_failed;
    if (!options.quiet && !options.json) fmt::print("{}", stop_text(marks->get()));
    return exit_passed;
}

// Members take no other time.
std::optional<std::chrono::nanoseconds> parse_hold(std::string_view text) {
    const auto hold = parse_wait(text);
    const bool fits = hold && *hold >= std::chrono::milliseconds(wire::least_hold_ms) &&
                      *hold <= std::chrono::milliseconds(wire::most_hold_ms);
    return fits ? hold : std::nullopt;
}

// Where the switch is, and how much it holds.
void add_place_flags(Command& command, SwitchOptions& options) {
    Flags flags(command, "Switch");
    switchd::SwitchNodeConfig& config = options.config;
    flags.text("--listen", options.listen, "ADDRESS", address_forms,
               "Local address; --xdp uses the same port [0.0.0.0:4790]");
    flags.text("--parent", options.parent, "ADDRESS", address_forms, "Address of the switch above this one [none]");
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
    flags.text("--http", options.metrics.http, "ADDRESS", address_forms,
               "Serve metrics and a live page at this local address, in a thread of its own [none]");
    flags.text("--http-key", options.metrics.key_file, "FILE", "a path",
               "File with the operator's key, which scrapers and browsers must send; needed with --tenants [none]");
    flags.flag("--quiet", options.quiet, "Print errors only");
    flags.flag("--json", options.json, "Print the first report as JSON, with the address in use");
}

}  // namespace

std::function<int()> add_switch(CLI::App& program, SwitchAdditions additions) {
    auto options = std::make_shared<SwitchOptions>();
    options->additions = std::move(additions);
    Command& command = Command::add(program, "switch", "Aggregate the packets of any number of jobs");
    add_place_flags(command, *options);
    add_limit_flags(command, *options);
    add_path_flags(command, options->kernel);
    add_time_flags(command, *options);
    add_output_flags(command, *options);
    if (options->additions.add_flags) options->additions.add_flags(command);
    const std::string typed = program.get_name() + " switch";
    command.add_example(typed + " --listen 10.0.0.1:4790 --memory 256MB",
                        "Serve all jobs whose workers name 10.0.0.1:4790.");
    command.add_example(typed + " --listen 10.0.1.1:4790 --parent 10.0.0.1:4790", "Serve a rack below that switch.");
    command.set_exit({{exit_passed, "stopped by SIGTERM or SIGINT"},
                      {exit_failed, "a socket, the output, the trace or the end of --xdp failed"},
                      {exit_misused, "bad arguments or no start"}});
    options->given = [&command](const std::string& flag) {
        const CLI::Option* const option = command.get_option_no_throw(flag);
        return option != nullptr && option->count() != 0;
    };
    return [options] { return run_switch(*options); };
}

std::function<int()> register_switch(CLI::App& program) { return add_switch(program); }

}  // namespace atp::apps
