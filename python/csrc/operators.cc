// SPDX-License-Identifier: Apache-2.0
// The operators torch.ops.atp, through which python/atp uses the backend. Python passes a group as `group.boxed()`.
#include <torch/csrc/distributed/c10d/Backend.hpp>

// TORCH_DISTRIBUTED_DEBUG=DETAIL puts a ProcessGroupWrapper around a backend. Its header declares it only if
// USE_C10D_GLOO is set, and then includes ProcessGroupGloo.hpp, which needs Gloo's own headers. A wheel of torch does
// not have these. So ProcessGroupGloo.hpp comes first, without the macro: it is empty then, and is not read again.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupWrapper.hpp>

#include <ATen/ATen.h>
#include <torch/library.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "capi/communicator.h"
#include "capi/raised_errors.h"
#include "capi/store.h"
#include "process_group.h"
#include "work.h"

namespace atp::python {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using Work = c10::intrusive_ptr<c10d::Work>;
using Counts = c10::Dict<std::string, std::int64_t>;

// nullptr: the group has no such backend for the device.
ProcessGroupAtp* backend_for(const Group& group, c10::DeviceType device) {
    c10::intrusive_ptr<c10d::Backend> backend;
    try {
        backend = group->getBackend(device);
    } catch (const std::exception&) {  // of none for the device
        return nullptr;
    }
    if (auto* wrapper = dynamic_cast<c10d::ProcessGroupWrapper*>(backend.get())) backend = wrapper->getWrappedPg();
    return dynamic_cast<ProcessGroupAtp*>(backend.get());
}

ProcessGroupAtp& backend_of(const Group& group) {
    auto* backend = backend_for(group, c10::DeviceType::CPU);
    if (backend == nullptr) backend = backend_for(group, c10::DeviceType::CUDA);
    // Not std::invalid_argument, which an operator of torch 2.15 raises as RuntimeError.
    TORCH_CHECK_VALUE(backend != nullptr, "the process group does not use the backend 'atp'");
    return *backend;
}

// Handles and functions of C come from Python as numbers.
template <class Pointer>
Pointer pointer_of(std::int64_t number) {
    return reinterpret_cast<Pointer>(number);  // NOLINT(performance-no-int-to-ptr)
}

// Gives the group a backend, whose fallback is the backend of `fallback`. `communicator` and `store`: handles of the C
// interface; the store must live until the group is inactive. `delegated`: a DelegationReceiver, or 0.
void attach(const Group& group, const Group& fallback, std::int64_t communicator, std::int64_t store,
            std::int64_t delegated, bool hosts_switch, std::string name, const std::vector<std::int64_t>& ranks) {
    static std::atomic<std::size_t> groups{0};
    const auto& formed = pointer_of<atp_communicator*>(communicator)->communicator;
    auto flight = std::make_shared<FlightGroup>();
    flight->number = groups++;
    flight->name = std::move(name);
    flight->description = "atp";
    flight->ranks.assign(ranks.begin(), ranks.end());
    flight->own_rank = flight->ranks.at(formed->rank());
    note_flight_group(*flight);
    GroupOptions options{.group = std::move(flight),
                         .store = pointer_of<atp_store*>(store)->store.get(),
                         .hosts_switch = hosts_switch,
                         .delegated = pointer_of<DelegationReceiver*>(delegated)};
    auto backend =
        c10::make_intrusive<ProcessGroupAtp>(formed, fallback->getBackend(c10::DeviceType::CPU), std::move(options));
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM, std::move(backend));
}

Counts counters_of(const Group& group) {
    const comm::RankCounters counted = backend_of(group).counters();
    Counts counters;
    for (const auto& field : comm::rank_fields) {
        counters.insert(std::string(field.name), static_cast<std::int64_t>(field.value_of(counted)));
    }
    return counters;
}

Counts delegations_of(const Group& group) {
    Counts calls;
    for (const auto& [operation, count] : backend_of(group).delegations()) {
        calls.insert(operation, static_cast<std::int64_t>(count));
    }
    return calls;
}

// The text whose parts atp_bridge_failure_of() knows; empty: nothing failed.
std::string failure_of(const Group& group) {
    const auto error = backend_of(group).failure();
    return error ? capi::message_of(*error) : std::string();
}

bool is_active(const Group& group) { return backend_of(group).active(); }
void shut_down(const Group& group) { backend_of(group).shutdown(); }
void abort(const Group& group) { backend_of(group).abort(); }

void push(const Group& group, std::int64_t key, const at::Tensor& tensor) {
    backend_of(group).push(static_cast<std::uint64_t>(key), tensor);
}
void pull(const Group& group, std::int64_t key, const at::Tensor& tensor) {
    backend_of(group).pull(static_cast<std::uint64_t>(key), tensor);
}

// None: the elements were not sent at scales of their own.
std::optional<at::Tensor> scales_of(const Work& work) {
    const auto* own = dynamic_cast<const NetworkWork*>(work.get());
    return own == nullptr ? std::nullopt : own->scales();
}

// Elements with one scale. None: the elements were not sent at scales of their own.
std::optional<std::int64_t> cell_of(const Work& work) {
    const auto* own = dynamic_cast<const NetworkWork*>(work.get());
    const auto cell = own == nullptr ? std::nullopt : own->cell();
    return cell ? std::optional(static_cast<std::int64_t>(*cell)) : std::nullopt;
}

// The bytes, because a text of an operator must be UTF-8.
at::Tensor dump_flight(bool stacks, bool only_active) {
    const std::string records = dump_flight_records(stacks, only_active);
    at::Tensor bytes = at::empty({static_cast<std::int64_t>(records.size())}, at::kByte);
    std::copy(records.begin(), records.end(), bytes.mutable_data_ptr<std::uint8_t>());
    return bytes;
}

}  // namespace

#define GROUP "(__torch__.torch.classes.c10d.ProcessGroup group"
#define WORK "(__torch__.torch.classes.c10d.Work work) -> "

TORCH_LIBRARY(atp, library) {
    library.def("attach" GROUP
                ", __torch__.torch.classes.c10d.ProcessGroup fallback, int communicator, int store, int delegated, "
                "bool hosts_switch, str name, int[] ranks) -> ()",
                &attach);
    library.def("is_active" GROUP ") -> bool", &is_active);
    library.def("shutdown" GROUP ") -> ()", &shut_down);
    library.def("abort" GROUP ") -> ()", &abort);
    library.def("counters" GROUP ") -> Dict(str, int)", &counters_of);
    library.def("delegations" GROUP ") -> Dict(str, int)", &delegations_of);
    library.def("failure" GROUP ") -> str", &failure_of);
    library.def("push" GROUP ", int key, Tensor tensor) -> ()", &push);
    library.def("pull" GROUP ", int key, Tensor(a!) tensor) -> ()", &pull);
    library.def("scales_of" WORK "Tensor?", &scales_of);
    library.def("cell_of" WORK "int?", &cell_of);
    library.def("has_flight_recorder() -> bool", &has_flight_recorder);
    library.def("dump_flight_records(bool stacks, bool only_active) -> Tensor", &dump_flight);
}

}  // namespace atp::python
