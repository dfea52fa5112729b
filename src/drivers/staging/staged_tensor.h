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

// What is summed, and where it passes through the host.
struct Stage {
    Elements elements;           // summed in place
    float scale = 1;             // the job's
    double factor = 1;           // of the sums: 1, or 1/N for an average
    std::span<std::byte> lanes;  // page-locked, ATP_LANE_BYTES for each element
};

// Floats in a device's memory, as the network sees them: lanes that the device has written into the host's memory.
//
// The device works in chunks. Once a chunk is loaded its fragments are ready, so the network carries the first chunk
// while the device still loads the second; and once the sums of a chunk are all there, the device stores them while the
// network carries those that follow. Each sum takes the place of its lane. An element that is no integer at this scale
// is known by its lane; of its chunk the floats are then fetched, once.
//
// Calling order: the constructor; begin(), when the elements are about to be ready; the protocol's calls; the
// destructor, which waits until the device has done what it was asked for. Shares: the device and the feed. The memory
// is the caller's. Threads: any.
// Failure: error() says what the device could not do, and the feed is told, which ends the operation. A fragment whose
// floats could not be fetched travels as NaN.
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

    // Until the device has done everything that it was asked for so far.
    void wait_for_device() const;
    [[nodiscard]] std::optional<Error> error() const;

  private:
    struct Chunk {
        std::atomic<std::size_t> missing{0};  // sums
        std::once_flag fetched;
        std::vector<std::byte> floats;
    };

    [[nodiscard]] Elements elements_of(std::size_t chunk) const;
    [[nodiscard]] std::byte* lanes_from(std::uint64_t element) const { return &stage_.lanes[element * ATP_LANE_BYTES]; }
    // Calls for each chunk's share of the elements.
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
    std::atomic<std::uint64_t> loaded_{0};  // elements, from the first

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    mutable std::size_t steps_ = 0;  // that the device has not done yet
    mutable std::optional<Error> error_;
};

}  // namespace atp::staging
