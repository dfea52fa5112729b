// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "protocol/tensor.h"
#include "protocol/waker.h"
#include "staging/device_queue.h"

namespace atp::staging {

// The elements to sum, and the host memory for their lanes.
struct Stage {
    Elements elements;           // replaced by the sums
    float scale = 1;             // of the job
    double factor = 1;           // applied to the sums: 1, or 1/N for an average
    std::span<std::byte> lanes;  // page-locked, ATP_LANE_BYTES for each element
};

// A tensor of floats in a device's memory. The device writes their lanes into the host's memory, where the protocol
// reads them.
//
// The device works in chunks. Fragments of a loaded chunk are ready, so the network carries the first chunk while the
// device loads the second. When all sums of a chunk have arrived, the device stores them while the network carries
// later chunks. Each sum replaces its lane in the host's memory. If an element does not fit an integer, its lane is
// `refused_lane`; the floats of its chunk are then fetched once.
//
// Ownership: shares the device and the feed. The caller owns the memory, which must outlive the tensor.
// Calling order: the constructor, begin() after DeviceQueue::load_after() if the elements are not ready yet, the calls
//   of protocol::Tensor, the destructor. The destructor waits until the device has finished all steps.
// Threads: any.
// Failure: error() returns the device's first error. The feed gets that error too, which ends the operation. If floats
//   cannot be fetched, their fragment is sent as NaN.
class StagedTensor final : public protocol::Tensor {
  public:
    StagedTensor(std::shared_ptr<DeviceQueue> device, const Stage& stage, std::shared_ptr<protocol::Waker> feed,
                 std::size_t elements_of_chunk = elements_of_step);
    ~StagedTensor() override;

    void begin();

    [[nodiscard]] std::uint64_t size() const override { return stage_.elements.count; }
    [[nodiscard]] bool ready(std::uint64_t first, std::uint64_t count) const override {
        return first + count <= loaded_.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t first, std::span<std::byte> lanes) const override;
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;

    // Waits until the device has finished all steps so far.
    void wait_for_device() const;
    [[nodiscard]] std::optional<Error> error() const;

  private:
    struct Chunk {
        std::atomic<std::size_t> missing{0};  // sums that have not arrived
        std::once_flag fetched;
        std::vector<std::byte> floats;  // lanes as float32; empty until fetched
    };

    [[nodiscard]] Elements elements_of(std::size_t chunk) const;
    [[nodiscard]] std::byte* lanes_from(std::uint64_t element) const { return &stage_.lanes[element * ATP_LANE_BYTES]; }
    // Calls `call(chunk, offset, count)` for each chunk's part of the range.
    template <class Call>
    void visit(std::uint64_t first, std::uint64_t count, Call call) const;
    void store_chunk(std::size_t chunk);
    void fetch(std::size_t chunk) const;
    void begin_step() const;
    void finish_step(const Result<void>& done) const;
    void fail(const Error& error) const;

    std::shared_ptr<DeviceQueue> device_;
    Stage stage_;
    std::shared_ptr<protocol::Waker> feed_;
    std::size_t elements_of_chunk_;
    mutable std::vector<Chunk> chunks_;
    std::atomic<std::uint64_t> loaded_{0};  // number of leading elements that are loaded

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    mutable std::size_t steps_ = 0;       // steps that the device has not finished
    mutable std::optional<Error> error_;  // the first error; nullopt: none
};

}  // namespace atp::staging
