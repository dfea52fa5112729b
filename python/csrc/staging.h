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

// A tensor of the caller on its way to the network and back.
struct Staged {
    at::Tensor tensor;                           // the caller's
    at::Tensor memory;                           // its elements in their logical order, on its device
    at::Tensor host;                             // what the network sees: `memory` itself, or page-locked memory
    staging::StagedTensor* converted = nullptr;  // by the device, between the two; the operation's own
    std::uint32_t divisor = 1;                   // of integers: the sum is divided by it, toward zero
};

// `type` is that of the memory: elements are converted where the tensor has another one.
[[nodiscard]] std::vector<Staged> stage(const std::vector<at::Tensor>& tensors, at::ScalarType type);
// For a device's tensors, copies of their bytes: waits for the stream that is current.
void bring_to_host(std::vector<Staged>& staged);
// Once the operation has succeeded: returns when the callers' tensors have what came. Throws where a device failed.
void deliver(const std::vector<Staged>& staged);
// Until no device reads or writes the host's memory any more; the operation is still there.
void wait_for_devices(const std::vector<Staged>& staged);

// Where tensors of a device are among them: makes a stream the current one that nothing else waits for.
class StreamOfItsOwn {
  public:
    explicit StreamOfItsOwn(const std::vector<Staged>& staged);
    void synchronise() const;

  private:
    std::optional<c10::Stream> stream_;
    c10::OptionalStreamGuard guard_;
};

[[nodiscard]] std::vector<at::Tensor> tensors_of(const std::vector<Staged>& staged);
// Those that are not the processor; each once.
[[nodiscard]] std::vector<c10::Device> devices_of(const std::vector<Staged>& staged);

// Begins sums, also of tensors that are on devices.
//
// An average of integers is a sum in the network, which deliver() divides.
// Floats are converted by the device itself, in streams of this object, after what the current stream has been given so
// far; where the device cannot, and for integers, the bytes are copied at once.
// Threads: any. Failure: what the communicator says, or the device.
class Stager {
  public:
    // `staged` stays until the operation and its devices are done.
    [[nodiscard]] Result<comm::Handle> all_reduce(comm::Communicator& communicator, std::vector<Staged>& staged,
                                                  numeric::ElementType type, comm::Reduction reduction, Time deadline);

  private:
    using Queue = std::shared_ptr<staging::DeviceQueue>;

    [[nodiscard]] Queue queue_of(c10::Device device);

    std::mutex mutex_;
    std::map<c10::DeviceIndex, Queue> queues_;  // none where the device cannot
};

}  // namespace atp::python
