// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_command.h"

#include <fmt/format.h>

#include <linux/capability.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/atp/drain_part.h"
#include "apps/atp/kernel_flags.h"
#include "apps/atp/kernel_part.h"
#include "apps/atp/metrics_part.h"
#include "apps/atp/switch_flags.h"
#include "apps/atp/switch_log.h"
#include "apps/atp/switch_reload.h"
#include "apps/atp/switch_text.h"
#include "apps/atp/tenants_part.h"
#include "apps/common/command_text.h"
#include "apps/common/confinement.h"
#include "apps/common/output.h"
#include "apps/common/service_notice.h"
#include "apps/common/signals.h"
#include "control/path_mtu_search.h"
#include "keys/key_file.h"
#include "metrics/http_server.h"
#include "net/affinity.h"
#include "net/interface_mtu.h"
#include "net/resolve.h"
#include "net/udp_options.h"
#include "observe/trace_file.h"
#include "protocol/switch.h"
#include "switchd/node.h"
#include "switchd/state_file.h"

namespace atp::apps {
namespace {

int misused(const std::string& why) {
    fmt::print(stderr, "atp switch: {}\n", why);
    return exit_misused;
}

int misused(const Error& error) { return misused(to_string(error)); }

// What may pass by itself, such as a name that nobody resolves yet, is no misuse: a service manager tries again.
int not_started(const Error& error) {
    constexpr std::array passing{Reason::in_use, Reason::unreachable, Reason::unknown_name, Reason::timed_out};
    const int status = misused(error);
    return std::ranges::find(passing, error.reason) == passing.end() ? status : exit_failed;
}

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

// `listens_at`: the flag of the address was given.
Result<void> use_socket_of_manager(const SwitchOptions& options, bool listens_at, net::UdpConfig& udp) {
    const auto inherited = socket_of_manager();
    if (!inherited) return tl::unexpected(inherited.error());
    if (!*inherited) return {};
    const auto bound = net::local_address(**inherited);
    if (!bound) return tl::unexpected(bound.error());
    if (listens_at && *bound != udp.local) {
        return fail(Operation::bind, Reason::malformed, options.listen,
                    // errors.md, starts, malformed: name one address in the unit's socket and in the settings
                    fmt::format("the socket of the service manager is at {}: leave out --listen, or name its address",
                                to_string(*bound)));
    }
    udp.local = *bound;
    udp.inherited = **inherited;
    return {};
}

Result<void> complete(SwitchOptions& options, const Given& given) {
    switchd::SwitchNodeConfig& config = options.config;
    const auto listen = net::resolve(options.listen);
    if (!listen) return tl::unexpected(listen.error());
    config.udp.local = listen->front();
    if (auto used = use_socket_of_manager(options, given("--listen"), config.udp); !used) return used;
    config.udp.busy_poll_us = options.busy_poll_us;
    if (!options.hosts_servers) config.server_bytes = 0;
    if (!options.parent.empty()) {
        const auto parent = net::resolve(options.parent, config.udp.local.family());
        if (!parent) return tl::unexpected(parent.error());
        config.parent = parent->front();
        if (config.parent == config.udp.local) {
            return fail(Operation::parse, Reason::malformed, options.parent,
                        // errors.md, starts, malformed
                        "a switch is not its own parent: name the switch above it, or leave out --parent");
        }
    }
    if (options.lanes != 0) {
        config.lanes = static_cast<std::uint16_t>(options.lanes);
    } else {
        const auto mtu = net::interface_mtu(config.udp.local);
        if (!mtu) return tl::unexpected(mtu.error());
        const std::uint32_t payload = control::payload_of_mtu(*mtu, config.udp.local.family());
        config.lanes = static_cast<std::uint16_t>(control::usual_lanes(control::lanes_of_payload(payload)));
    }
    // The call writes a missing file, which a check must not.
    if (!options.state.empty() && (!options.check || access(options.state.c_str(), F_OK) == 0)) {
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
Result<std::unique_ptr<MetricsPart>> start_metrics(const MetricsOptions& options, const switchd::SwitchNode& node,
                                                   DrainPart& drain) {
    if (options.http.empty()) return nullptr;
    return MetricsPart::start(
        options, {{name_of_switch(node.address()), [&node] { return std::optional(node.snapshot()); }}}, &drain);
}

// What a command line asks for.
struct Launch {
    SwitchOptions options;
    SwitchAdditions additions;
    Given given;
    std::vector<std::string> typed;
};

void print_start(const switchd::SwitchNode& node, const Launch& launch, const MarksPart* marks,
                 const MetricsPart* serving) {
    const SwitchOptions& options = launch.options;
    if (options.json) {
        fmt::print("{}\n", client::to_json(node.snapshot()));
    } else if (!options.quiet) {
        const auto& describe = launch.additions.describe;
        fmt::print("{}", start_text(node, {options.kernel, marks, serving, describe ? describe(node.config()) : ""}));
    }
}

std::string status_of(const switchd::SwitchNode& node) {
    return (node.drains() ? "draining at " : "serving at ") + to_string(node.address());
}

// Until a signal, or until nothing is left to drain. Counts of suppressed lines appear within a second after their
// period.
void wait_for_stop(const StopSignals& signals, SwitchReload& reload, switchd::SwitchNode& node, KernelPart* in_path,
                   const DrainPart& drain, observe::Log& log, const ServiceNotice& manager) {
    constexpr Duration usual = std::chrono::seconds(1);
    const Duration between_polls = std::min(usual, manager.watchdog_interval().value_or(usual));
    while (!drain.is_done()) {
        const auto signal = signals.wait_for(between_polls);
        if (signal && *signal != SIGHUP) return;
        if (signal) {
            manager.reloading();
            reload.reload(node, in_path, log);
            manager.ready(status_of(node));
        }
        log.poll();
        if (manager.watchdog_interval() && node.turns()) manager.alive();
    }
    log.write(observe::LogEvent::drain_ended, {{"reason", "no job is left"}});
}

Result<void> open_trace(SwitchOptions& options) {
    if (options.trace.empty()) return {};
    auto trace = observe::TraceFile::open({.path = options.trace, .enter_thread = options.config.enter_thread},
                                          options.config.log);
    if (!trace) return tl::unexpected(trace.error());
    options.config.trace = *std::move(trace);
    return {};
}

// Why the start could not make this file, if it does not exist.
std::optional<Error> problem_of_new_file(const std::string& path) {
    if (path.empty() || access(path.c_str(), F_OK) == 0) return std::nullopt;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return std::nullopt;
    return fail_with_errno(Operation::open, errno, path).value();
}

// What can be said without starting anything: the flags and the files that they name. The status to end with, or the
// file of the tenants.
tl::expected<TenantsPart, int> prepare(Launch& launch) {
    SwitchOptions& options = launch.options;
    if (auto completed = complete(options, launch.given); !completed) {
        return tl::unexpected(not_started(completed.error()));
    }
    if (const auto misuse = find_misuse(options.kernel, options.config, launch.given)) {
        return tl::unexpected(misused(*misuse));
    }
    if (launch.additions.complete) {
        const bool in_kernel = options.kernel.in_path() || !options.kernel.rates.empty();
        if (const auto misuse = launch.additions.complete(options.config, in_kernel, launch.given)) {
            return tl::unexpected(misused(*misuse));
        }
    }
    if (launch.additions.run && !options.check) {
        const auto status = launch.additions.run(options.config, options.quiet, options.json);
        if (status) return tl::unexpected(*status);
    }
    if (const auto problem = problem_of_memory(options)) return tl::unexpected(misused(*problem));
    if (auto good = check_metrics(options.metrics); !good) return tl::unexpected(not_started(good.error()));
    if (!options.metrics.http.empty() && !options.tenants.empty() && options.metrics.key_file.empty()) {
        // errors.md, starts
        return tl::unexpected(misused("--http: the page shows all --tenants, so it needs --http-key"));
    }
    auto tenants = TenantsPart::open(options.tenants);
    if (!tenants) return tl::unexpected(misused(tenants.error()));
    options.config.tenants = tenants->tenants();
    if (auto read = read_parent_key(options); !read) return tl::unexpected(misused(read.error()));
    if (options.check) {
        for (const std::string& path : {options.trace, options.state, options.control}) {
            if (const auto problem = problem_of_new_file(path)) return tl::unexpected(misused(*problem));
        }
        if (auto good = metrics::HttpServer::check(options.control); !good)
            return tl::unexpected(misused(good.error()));
        if (auto good = observe::TraceFile::check(options.trace); !good) return tl::unexpected(misused(good.error()));
    }
    return *std::move(tenants);
}

// Everything is open, and all threads run. At its end, this thread takes its programs from the interfaces.
Result<void> confine(const SwitchOptions& options, bool marks) {
    const bool in_kernel = !options.kernel.interfaces.empty() || marks;
    in_kernel ? keep_capabilities({CAP_BPF, CAP_NET_ADMIN}) : keep_capabilities({});
    return confine_system_calls(options.confinement);
}

// What runs beside the node and stops after it. Failures to print.
std::vector<Error> stop(switchd::SwitchNode& node, KernelPart* kernel, const SwitchOptions& options,
                        observe::Log& log) {
    std::vector<Error> failures;
    if (const auto failure = node.failure()) failures.push_back(*failure);
    node.stop();
    if (options.config.trace) {
        if (auto failure = options.config.trace->close().failure) failures.push_back(*std::move(failure));
    }
    log_stop(log, node, failures);
    if (kernel != nullptr) {
        const std::vector<Error> attached = kernel->stop();
        log_kernel_stop(log, options.kernel.interfaces, attached);
        std::ranges::copy(attached, std::back_inserter(failures));
    }
    return failures;
}

int run_switch(Launch launch) {
    auto tenants = prepare(launch);
    if (!tenants) return tenants.error();
    SwitchOptions& options = launch.options;
    if (options.check) {
        if (!options.quiet) fmt::print("atp switch: the settings are good\n");
        return show_output() ? exit_passed : exit_failed;
    }
    SwitchReload reload(*std::move(tenants), launch.typed, launch.additions.add_flags);
    const StopSignals signals({SIGHUP});
    options.config.enter_thread = keep_use_of_maps;  // reports read the maps of a switch in the kernel
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
    if (!node) return not_started(node.error());
    DrainPart drain(**node, *kernel != nullptr, log);
    auto control = serve_control(options.control, drain);
    if (!control) return not_started(control.error());
    auto serving = start_metrics(options.metrics, **node, drain);
    if (!serving) return not_started(serving.error());
    print_start(**node, launch, marks->get(), serving->get());
    if (!show_output()) return exit_failed;
    if (*kernel != nullptr) (*kernel)->commit();
    if (auto confined = confine(options, *marks != nullptr); !confined) {
        if (options.confinement == Confinement::kill) return misused(confined.error());
        log.write(observe::LogEvent::feature_missing,
                  {{"address", (*node)->address()}, {"name", "seccomp"}, {"reason", to_string(confined.error())}});
    }
    log_start(log, **node, log_config(options), options.trace);
    const ServiceNotice manager;
    manager.ready(status_of(**node));
    wait_for_stop(signals, reload, **node, kernel->get(), drain, log, manager);
    manager.stopping();
    serving->reset();
    control->reset();
    const std::vector<Error> failures = stop(**node, kernel->get(), options, log);
    for (const Error& failure : failures) fmt::print(stderr, "atp switch: {}\n", to_string(failure));
    if (!failures.empty()) return exit_failed;
    if (!options.quiet && !options.json) fmt::print("{}", stop_text(marks->get()));
    return exit_passed;
}

}  // namespace

std::function<int()> add_switch(CLI::App& program, SwitchAdditions additions) {
    auto launch = std::make_shared<Launch>();
    launch->additions = std::move(additions);
    Command& command = Command::add(program, "switch", "Aggregate the packets of any number of jobs");
    add_switch_flags(command, launch->options);
    if (launch->additions.add_flags) launch->additions.add_flags(command);
    const std::string typed = program.get_name() + " switch";
    command.add_example(typed + " --listen 10.0.0.1:4790 --memory 256MB",
                        "Serve all jobs whose workers name 10.0.0.1:4790.");
    command.add_example(typed + " --listen 10.0.1.1:4790 --parent 10.0.0.1:4790", "Serve a rack below that switch.");
    command.set_exit({{exit_passed, "stopped by SIGTERM or SIGINT, drained, or --check-config found nothing"},
                      {exit_failed,
                       "an address or a name cannot be used now, or a socket, the output, the trace or the end of "
                       "--xdp failed"},
                      {exit_misused, "bad arguments or no start"}});
    launch->given = [&command](const std::string& flag) {
        const CLI::Option* const option = command.get_option_no_throw(flag);
        return option != nullptr && option->count() != 0;
    };
    return [launch, &command] {
        launch->typed = command.typed();
        return run_switch(std::move(*launch));
    };
}

std::function<int()> register_switch(CLI::App& program) { return add_switch(program); }

}  // namespace atp::apps
