// SPDX-License-Identifier: Apache-2.0
// Python bindings of the backend. python/atp/ reads the configuration and calls these functions.
#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "comm/option_table.h"
#include "log_lines.h"
#include "net/clock.h"
#include "net/local_route.h"
#include "net/resolve.h"
#include "process_group.h"
#include "push_pull.h"
#include "raised_errors.h"
#include "switchd/node.h"
#include "tensor/span_scales.h"
#include "work.h"

namespace atp::python {
namespace {

namespace py = pybind11;

template <class Value>
Value value_or_throw(Result<Value> result) {
    if (!result) throw std::runtime_error(message_of(result.error()));
    if constexpr (!std::is_void_v<Value>) return *std::move(result);
}

Duration duration_of(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Local address from which this host reaches `address`, without a port.
std::string address_towards(const std::string& address) {
    const wire::Address peer = value_or_throw(net::resolve(address)).front();
    const std::string local = to_string(value_or_throw(net::local_address_towards(peer)));
    return std::string(value_or_throw(wire::split_host_port(local)).host);
}

std::unique_ptr<switchd::SwitchNode> start_switch(const std::string& listen) {
    switchd::SwitchNodeConfig config;
    config.udp.local = value_or_throw(net::resolve(listen)).front();
    return value_or_throw(switchd::SwitchNode::start(config));
}

// Called if the ranks need the network, with the switch that rank 0 names. Returns the switch of this rank, the address
// at which it may serve sums, and whether its process runs that switch.
using FindNetwork = std::function<std::tuple<std::string, std::string, bool>(const std::string& offered)>;

// An exception of Python is thrown again when the other ranks know of it.
class NetworkFinder {
  public:
    explicit NetworkFinder(FindNetwork find) : find_(std::move(find)) {}

    [[nodiscard]] Result<void> use(comm::Options& own, const std::string& offered) {
        const py::gil_scoped_acquire lock;
        try {
            std::tie(own.switch_address, own.listen, own.hosts_switch) = find_(offered);
            return {};
        } catch (py::error_already_set& error) {
            const std::string text = py::str(error.value());
            raised_ = std::make_exception_ptr(error);
            return fail(Operation::rendezvous, Reason::failed, {}, text);
        }
    }
    void rethrow() const {
        if (raised_) std::rethrow_exception(raised_);
    }

  private:
    FindNetwork find_;
    std::exception_ptr raised_;
};

// `texts`: options by the names of docs/reference/options.md.
comm::Options options_of(const std::map<std::string, std::string>& texts, double timeout_s) {
    comm::Options options;
    for (const auto& [name, text] : texts) {
        if (!text.empty()) value_or_throw(comm::set_option(options, name, text));
    }
    options.timeout = duration_of(timeout_s);
    options.join_timeout = duration_of(timeout_s);
    options.log_receiver = [](observe::Severity severity, std::string_view line) { log_lines().push(severity, line); };
    return options;
}

// Waits for all ranks of the group.
std::shared_ptr<comm::Communicator> form(const c10::intrusive_ptr<c10d::Store>& store, std::uint32_t rank,
                                         std::uint32_t size, const std::map<std::string, std::string>& texts,
                                         bool starts_switch, FindNetwork find_network, double timeout_s) {
    comm::Options options = options_of(texts, timeout_s);
    options.starts_switch = starts_switch;
    NetworkFinder finder(std::move(find_network));
    options.use_network = [&finder](comm::Options& own, const std::string& offered) {
        return finder.use(own, offered);
    };
    StoreAdapter adapter(store);
    auto formed = [&] {
        const py::gil_scoped_release no_lock;
        return comm::Communicator::form(adapter, rank, size, options);
    }();
    adapter.rethrow_interruption();
    finder.rethrow();
    return value_or_throw(std::move(formed));
}

// Returns a pointer to the base class: PyTorch registered the Python type of c10d::Backend, with intrusive pointers.
c10::intrusive_ptr<c10d::Backend> create_backend(const std::shared_ptr<comm::Communicator>& communicator,
                                                 const c10::intrusive_ptr<c10d::Store>& store,
                                                 const c10::intrusive_ptr<c10d::Backend>& fallback, bool hosts_switch,
                                                 std::function<void(const std::string&, const std::string&)> delegated,
                                                 std::string name, std::vector<std::uint64_t> ranks) {
    static std::atomic<std::size_t> groups{0};
    auto group = std::make_shared<FlightGroup>();
    group->number = groups++;
    group->name = std::move(name);
    group->description = "atp";
    group->own_rank = ranks.at(communicator->rank());
    group->ranks = std::move(ranks);
    note_flight_group(*group);
    GroupOptions options{.group = std::move(group), .hosts_switch = hosts_switch, .delegated = std::move(delegated)};
    const py::gil_scoped_release no_lock;
    return c10::make_intrusive<ProcessGroupAtp>(communicator, store, fallback, std::move(options));
}

// Stacks are read under Python's lock, which the recorder takes by itself.
std::string dump_without_lock(bool stacks, bool only_active) {
    const py::gil_scoped_release no_lock;
    return dump_flight_records(stacks, only_active);
}

bool is_active(const c10::intrusive_ptr<c10d::Backend>& backend) { return group_of(backend).active(); }
void shut_down(const c10::intrusive_ptr<c10d::Backend>& backend) { group_of(backend).shutdown(); }
void abort(const c10::intrusive_ptr<c10d::Backend>& backend) { group_of(backend).abort(); }

// Counters by name, and calls of Gloo by operation.
using GroupCounters = std::pair<std::map<std::string, std::uint64_t>, std::map<std::string, std::uint64_t>>;

GroupCounters counters_of(const c10::intrusive_ptr<c10d::Backend>& backend) {
    const ProcessGroupAtp& group = group_of(backend);
    const comm::RankCounters counted = group.counters();
    GroupCounters counters{{}, group.delegations()};
    for (const auto& field : comm::rank_fields) counters.first.emplace(field.name, field.value_of(counted));
    return counters;
}

// Reason, ranks, address and operation; an empty address: none is at fault.
using Failed = std::tuple<std::string, std::vector<std::uint32_t>, std::string, std::string>;

std::optional<Failed> parts_of(const std::optional<Error>& error) {
    if (!error) return std::nullopt;
    return Failed(to_string(error->reason), error->ranks, error->place(), to_string(error->operation));
}

std::optional<Failed> failure_of_group(const c10::intrusive_ptr<c10d::Backend>& backend) {
    return parts_of(group_of(backend).failure());
}

std::optional<Failed> failure_of_text(const std::string& text) { return parts_of(raised_errors().find(text)); }

// None: the elements were not sent at scales of their own.
std::optional<at::Tensor> scales_of(const c10::intrusive_ptr<c10d::Work>& work) {
    const auto* own = dynamic_cast<const NetworkWork*>(work.get());
    return own == nullptr ? std::nullopt : own->scales();
}

// Elements with one scale. None: the elements were not sent at scales of their own.
std::optional<std::uint64_t> cell_of(const c10::intrusive_ptr<c10d::Work>& work) {
    const auto* own = dynamic_cast<const NetworkWork*>(work.get());
    return own == nullptr ? std::nullopt : own->cell();
}

PYBIND11_MODULE(_C, module) {
    module.doc() = "The native half of the package `atp`.";
    py::module_::import("torch.distributed");  // registers the argument and return types of the functions below

    py::class_<switchd::SwitchNode>(module, "SwitchNode", "A software switch inside this process.")
        .def_static("start", &start_switch, py::arg("listen"), py::call_guard<py::gil_scoped_release>())
        .def("stop", &switchd::SwitchNode::stop, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("address", [](const switchd::SwitchNode& node) { return to_string(node.address()); });

    // NOLINTNEXTLINE(bugprone-unused-raii): the constructor registers the type
    py::class_<comm::Communicator, std::shared_ptr<comm::Communicator>>(
        module, "Communicator", "Ranks that have found each other and their switches.");

    module.def("form", &form, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"),
               py::arg("starts_switch"), py::arg("find_network"), py::arg("timeout_s"));
    module.def("create_backend", &create_backend, py::arg("communicator"), py::arg("store"), py::arg("fallback"),
               py::arg("hosts_switch"), py::arg("delegated"), py::arg("name"), py::arg("ranks"));
    module.def("has_flight_recorder", &has_flight_recorder);
    module.def(
        "dump_flight_records",
        [](bool stacks, bool only_active) { return py::bytes(dump_without_lock(stacks, only_active)); },
        py::arg("stacks"), py::arg("only_active"));
    const py::call_guard<py::gil_scoped_release> no_lock;
    module.def("is_active", &is_active, py::arg("backend"), no_lock);
    module.def("shutdown", &shut_down, py::arg("backend"), no_lock);
    module.def("abort", &abort, py::arg("backend"), no_lock);
    module.def(
        "take_log_lines", [] { return log_lines().take(); }, no_lock);
    module.def(
        "close_log_lines", [] { log_lines().close(); }, no_lock);
    module.def("address_towards", &address_towards, py::arg("address"), no_lock);
    module.def("counters", &counters_of, py::arg("backend"), no_lock);
    module.def("failure_of_group", &failure_of_group, py::arg("backend"), no_lock);
    module.def("failure_of_text", &failure_of_text, py::arg("text"), no_lock);
    module.def("scales_of", &scales_of, py::arg("work"), no_lock);
    module.def("cell_of", &cell_of, py::arg("work"), no_lock);
    module.attr("ELEMENTS_OF_CELL") = tensor::cell_elements(ATP_DTYPE_INT8);
    register_push_pull(module);
}

}  // namespace
}  // namespace atp::python
