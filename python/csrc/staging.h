// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "staging/staged_tensor.h"

namespace atp::python {

// One tensor of the caller, with the copies of it that the network reads and writes.
struct Staged {
    at::Tensor tensor;  // owned by the caller
    at::Tensor memory;  // its elements in logical order, on its device
    at::Tensor host;    // memory that the network reads and writes: `memory` itself, or page-locked memory
    // the device's conversion between the two; the operation owns it; null: none
    staging::StagedTensor* converted = nullptr;
    at::Tensor input{};                // memory that the network reads, if that is another than `host`
    std::vector<at::Tensor> inputs{};  // the caller's tensors whose elements `input` holds
    std::uint32_t divisor = 1;         // deliver() divides integers by this, rounding toward zero
};

// `type` is the element type of `memory`. A tensor of another type is converted into new memory.
[[nodiscard]] std::vector<Staged> stage(const std::vector<at::Tensor>& tensors, at::ScalarType type);
// `tensor` itself, if the network can read its memory; otherwise a copy on the host. Waits for the current stream.
[[nodiscard]] at::Tensor on_host(const at::Tensor& tensor);
// New memory on the host for `bytes` bytes, page-locked if they go to this device.
[[nodiscard]] at::Tensor bytes_on_host(std::size_t bytes, c10::Device device);
// A tensor that the network only writes, at once or through memory on the host.
[[nodiscard]] Staged stage_output(const at::Tensor& tensor);
// A tensor whose elements arrive at `host`, which has `tensor.nbytes()` bytes.
[[nodiscard]] Staged stage_output(const at::Tensor& tensor, const at::Tensor& host);
// Copies the bytes of device tensors to the host. Waits for the current stream.
void bring_to_host(std::vector<Staged>& staged);
// Call after the operation succeeded. Returns when the callers' tensors hold the results. Throws if a device failed.
void deliver(const std::vector<Staged>& staged);
// Waits until no device reads or writes the host's memory. The operation must still exist.
void wait_for_devices(const std::vector<Staged>& staged);

// If a tensor is on a device, makes a pooled stream current, so that a wait for it does not wait for other streams'
// work.
class PooledStream {
  public:
    explicit PooledStream(const std::vector<Staged>& staged);
    void synchronise() const;

  private:
    std::optional<c10::Stream> stream_;
    c10::OptionalStreamGuard guard_;
};

// Of the host.
[[nodiscard]] std::vector<comm::Buffer> buffers_of(const std::vector<Staged>& staged);
[[nodiscard]] std::vector<at::Tensor> tensors_of(const std::vector<Staged>& staged);
// What the operation reads, for profilers: the inputs, or `tensor` of each where it is the input.
[[nodiscard]] std::vector<at::Tensor> inputs_of(const std::vector<Staged>& staged);
// Devices other than the CPU, each once.
[[nodiscard]] std::vector<c10::Device> devices_of(const std::vector<Staged>& staged);

// Begins sums of tensors on the CPU or on a device.
//
// The device converts floats itself, on this object's queues, after the work that the current stream already has. If
// the device cannot convert, and for integers, the bytes are copied to the host at once. An average of integers is a
// sum in the network, which deliver() divides.
// Ownership: shares one queue per device with the tensors in flight.
// Threads: any.
// Failure: the error of the communicator or of the device.
class Stager {
  public:
    // The caller keeps `staged` until the operation and its devices are done.
    [[nodiscard]] Result<comm::Handle> all_reduce(comm::Communicator& communicator, std::vector<Staged>& staged,
                                                  numeric::ElementType type, const comm::Summing& summing,
                                                  Time deadline);

  private:
    using Queue = std::shared_ptr<staging::DeviceQueue>;

    [[nodiscard]] Queue queue_of(c10::Device device);

    std::mutex mutex_;
    std::map<c10::DeviceIndex, Queue> queues_;  // null: the device cannot convert
};

}  // namespace atp::python
