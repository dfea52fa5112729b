// SPDX-License-Identifier: Apache-2.0
// Uses devices only through c10's virtual guards, so that one source serves builds with and without CUDA.
#include "staging.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "capi/raised_errors.h"
#include "staging/cuda_queue.h"
#include "tensor/tensors.h"

namespace atp::python {
namespace {

using c10::impl::VirtualGuardImpl;

Staged stage_one(const at::Tensor& tensor, at::ScalarType type) {
    if (tensor.scalar_type() == type && tensor.is_contiguous() && !tensor.is_neg() && !tensor.is_conj()) {
        return {.tensor = tensor, .memory = tensor, .host = tensor};
    }
    TORCH_CHECK(at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
                "atp: elements of this tensor share memory, as after expand(): pass tensor.clone()");
    const at::NoGradGuard no_grad;
    const at::Tensor memory = at::empty(tensor.sizes(), tensor.options().requires_grad(false).dtype(type));
    memory.copy_(tensor);
    return {.tensor = tensor, .memory = memory, .host = memory};
}

// Orders everything that the queue loads from now on after the work that the current stream already has.
Result<void> load_after_current_stream(staging::DeviceQueue& queue, c10::Device device) {
    const VirtualGuardImpl guard(device.type());
    void* event = nullptr;
    guard.record(&event, guard.getStream(device), device.index(), c10::EventFlag::PYTORCH_DEFAULT);
    auto done = queue.load_after(event);
    guard.destroyEvent(event, device.index());
    return done;
}

std::unique_ptr<staging::StagedTensor> convert(Staged& staged, const std::shared_ptr<staging::DeviceQueue>& queue,
                                               const comm::Communicator& communicator, numeric::ElementType type,
                                               const comm::Summing& summing) {
    const auto elements = static_cast<std::size_t>(staged.memory.numel());
    staged.host = at::empty({staged.memory.numel()}, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
    const staging::Stage stage{
        .elements = {.type = type, .data = staged.memory.data_ptr(), .count = elements},
        .scale = communicator.scale(),
        .factor = communicator.factor(summing),
        .lanes = {static_cast<std::byte*>(staged.host.data_ptr()), elements * ATP_LANE_BYTES},
    };
    auto tensor = std::make_unique<staging::StagedTensor>(queue, stage, communicator.feed());
    staged.converted = tensor.get();
    return tensor;
}

// All tensors must be on one device.
Result<comm::Handle> all_reduce_converted(comm::Communicator& communicator, std::vector<Staged>& staged,
                                          const std::shared_ptr<staging::DeviceQueue>& queue, numeric::ElementType type,
                                          const comm::Summing& summing, Time deadline) {
    const c10::Device device = staged.front().memory.device();
    const c10::DeviceGuard guard(device);  // the queue changes the current device and does not restore it
    if (auto ordered = load_after_current_stream(*queue, device); !ordered) return tl::unexpected(ordered.error());
    std::vector<std::unique_ptr<protocol::Tensor>> tensors;
    std::uint64_t elements = 0;
    for (Staged& each : staged) {
        if (each.memory.numel() == 0) continue;
        auto tensor = convert(each, queue, communicator, type, summing);
        tensor->begin();
        elements += tensor->size();
        tensors.push_back(std::move(tensor));
    }
    return communicator.all_reduce(std::move(tensors), elements, type, summing, deadline);
}

Result<comm::Handle> average_integers(comm::Communicator& communicator, std::vector<Staged>& staged,
                                      numeric::ElementType type, Time deadline) {
    std::vector<std::unique_ptr<protocol::Tensor>> tensors;
    std::uint64_t elements = 0;
    for (Staged& each : staged) {
        each.divisor = communicator.world();
        const auto count = static_cast<std::size_t>(each.host.numel());
        if (count == 0) continue;
        void* memory = each.host.data_ptr();
        tensors.push_back(tensor::make_sum_tensor(type, memory, memory, count, communicator.scale(), 1.0));
        elements += count;
    }
    return communicator.all_reduce(std::move(tensors), elements, type, comm::Reduction::average, deadline);
}

void copy_back(const Staged& staged) {
    if (staged.divisor != 1) staged.host.div_(static_cast<std::int64_t>(staged.divisor), "trunc");
    const bool copied = !staged.host.is_same(staged.memory) && staged.converted == nullptr;
    if (copied) staged.memory.copy_(staged.host, true);
    if (!staged.memory.is_same(staged.tensor)) staged.tensor.copy_(staged.memory);
}

}  // namespace

std::vector<Staged> stage(const std::vector<at::Tensor>& tensors, at::ScalarType type) {
    std::vector<Staged> staged;
    staged.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) staged.push_back(stage_one(tensor, type));
    return staged;
}

at::Tensor on_host(const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    at::Tensor plain = tensor.detach().resolve_neg().resolve_conj().contiguous();
    if (plain.is_cpu()) return plain;
    const at::Tensor host = at::empty(plain.sizes(), plain.options().device(at::kCPU).pinned_memory(true));
    host.copy_(plain);
    return host;
}

at::Tensor bytes_on_host(std::size_t bytes, c10::Device device) {
    const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(!device.is_cpu());
    return at::empty({static_cast<std::int64_t>(bytes)}, options);
}

Staged stage_output(const at::Tensor& tensor) {
    const bool direct = tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_neg() && !tensor.is_conj();
    if (direct) return {.tensor = tensor, .memory = tensor, .host = tensor};
    return stage_output(tensor, bytes_on_host(tensor.nbytes(), tensor.device()));
}

Staged stage_output(const at::Tensor& tensor, const at::Tensor& host) {
    const at::NoGradGuard no_grad;
    const at::Tensor memory = host.view(tensor.scalar_type()).view(tensor.sizes());
    return {.tensor = tensor, .memory = memory, .host = memory};
}

void bring_to_host(std::vector<Staged>& staged) {
    const at::NoGradGuard no_grad;
    for (Staged& each : staged) {
        if (each.memory.is_cpu()) continue;
        const auto options = each.memory.options().requires_grad(false).device(at::kCPU).pinned_memory(true);
        each.host = at::empty(each.memory.sizes(), options);
        each.host.copy_(each.memory);
    }
}

void deliver(const std::vector<Staged>& staged) {
    wait_for_devices(staged);
    for (const Staged& each : staged) {
        const auto error = each.converted == nullptr ? std::nullopt : each.converted->error();
        if (error) C10_THROW_ERROR(DistBackendError, capi::message_of(*error));
    }
    const c10::InferenceMode mode;  // no gradients, and tensors made by inference_mode() are writable
    const PooledStream stream(staged);
    for (const Staged& each : staged) copy_back(each);
    stream.synchronise();
}

PooledStream::PooledStream(const std::vector<Staged>& staged) {
    const auto devices = devices_of(staged);
    if (devices.empty()) return;
    stream_ = VirtualGuardImpl(devices.front().type()).getStreamFromGlobalPool(devices.front());
    guard_.reset_stream(*stream_);
}

void PooledStream::synchronise() const {
    if (stream_) VirtualGuardImpl(stream_->device_type()).synchronizeStream(*stream_);
}

void wait_for_devices(const std::vector<Staged>& staged) {
    for (const Staged& each : staged) {
        if (each.converted != nullptr) each.converted->wait_for_device();
    }
}

std::vector<comm::Buffer> buffers_of(const std::vector<Staged>& staged) {
    std::vector<comm::Buffer> buffers;
    buffers.reserve(staged.size());
    for (const Staged& each : staged) {
        void* memory = each.host.data_ptr();
        buffers.push_back({.in = memory, .out = memory, .elements = static_cast<std::size_t>(each.host.numel())});
    }
    return buffers;
}

std::vector<at::Tensor> tensors_of(const std::vector<Staged>& staged) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(staged.size());
    for (const Staged& each : staged) tensors.push_back(each.tensor);
    return tensors;
}

std::vector<at::Tensor> inputs_of(const std::vector<Staged>& staged) {
    if (staged.empty() || staged.front().inputs.empty()) return tensors_of(staged);
    return staged.front().inputs;
}

std::vector<c10::Device> devices_of(const std::vector<Staged>& staged) {
    std::vector<c10::Device> devices;
    for (const Staged& each : staged) {
        const c10::Device device = each.tensor.device();
        if (!device.is_cpu() && std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
    }
    return devices;
}

Result<comm::Handle> Stager::all_reduce(comm::Communicator& communicator, std::vector<Staged>& staged,
                                        numeric::ElementType type, const comm::Summing& summing, Time deadline) {
    const c10::Device device = staged.front().memory.device();
    if (!device.is_cpu() && !numeric::is_integer(type) && !communicator.fits_numbers()) {
        if (const Queue queue = queue_of(device)) {
            return all_reduce_converted(communicator, staged, queue, type, summing, deadline);
        }
    }
    bring_to_host(staged);
    if (numeric::is_integer(type) && summing.reduction == comm::Reduction::average) {
        return average_integers(communicator, staged, type, deadline);
    }
    return communicator.all_reduce(buffers_of(staged), type, summing, deadline);
}

Stager::Queue Stager::queue_of(c10::Device device) {
    const std::scoped_lock lock(mutex_);
    const auto known = queues_.find(device.index());
    if (known != queues_.end()) return known->second;
    auto opened = staging::open_cuda_queue(device.index());
    if (!opened) {
        TORCH_WARN_ONCE("atp: tensors of ", device,
                        " are converted by the CPU, which is slower: ", capi::message_of(opened.error()));
    }
    return queues_[device.index()] = opened.value_or(nullptr);
}

}  // namespace atp::python
