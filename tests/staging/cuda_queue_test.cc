// SPDX-License-Identifier: Apache-2.0
// Compares results of a CUDA device with those of the processor, bit by bit. Without a device, the tests are skipped.
#include "staging/cuda_queue.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <vector>

#include "host_queue.h"

namespace atp::staging {
namespace {

using Bytes = std::vector<std::byte>;
using numeric::ElementType;

// Counts the steps that have not completed. one() adds a step and returns its completion function; wait() waits for
// all.
class Steps {
  public:
    [[nodiscard]] DeviceQueue::Done one() {
        const std::scoped_lock lock(mutex_);
        ++left_;
        return [this](const Result<void>& done) {
            EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
            const std::scoped_lock counted(mutex_);
            --left_;
            changed_.notify_all();
        };
    }
    void wait() {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return left_ == 0; }));
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int left_ = 0;
};

// Device memory for the elements, and host memory for lanes that the device can access.
struct Memory {
    explicit Memory(const Bytes& elements, std::size_t count) : bytes(elements.size()), lane_bytes(count * 4) {
        EXPECT_EQ(cudaMalloc(&device, bytes), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(device, elements.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
        EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&lanes), lane_bytes), cudaSuccess);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        EXPECT_EQ(cudaFreeHost(lanes), cudaSuccess);
        EXPECT_EQ(cudaFree(device), cudaSuccess);
    }
    [[nodiscard]] Bytes elements() const {
        Bytes copy(bytes);
        EXPECT_EQ(cudaMemcpy(copy.data(), device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
        return copy;
    }

    std::size_t bytes;
    std::size_t lane_bytes;
    void* device = nullptr;
    std::byte* lanes = nullptr;
};

class CudaQueue : public ::testing::TestWithParam<ElementType> {
  protected:
    void SetUp() override {
        auto opened = open_cuda_queue(0);
        if (!opened) GTEST_SKIP() << to_string(opened.error());
        device_ = *opened;
    }

    // Number of elements: three steps, of which the last is not full.
    static constexpr std::size_t count = 3 * elements_of_step - 1000;

    [[nodiscard]] static Bytes any_bits(std::size_t bytes) {
        Bytes bits(bytes);
        std::mt19937_64 random(1);
        for (std::byte& each : bits) each = static_cast<std::byte>(random());
        return bits;
    }

    // Calls `call` for each step with two arguments: the offset of its lanes in bytes, and its elements.
    template <class Call>
    void each_step(void* data, const Call& call) const {
        for (std::size_t first = 0; first < count; first += elements_of_step) {
            auto* from = static_cast<std::byte*>(data) + first * numeric::bytes_of(GetParam());
            call(first * 4, Elements{GetParam(), from, std::min(elements_of_step, count - first)});
        }
    }

    std::shared_ptr<DeviceQueue> device_;
    atp::testing::HostQueue host_;
};

TEST_P(CudaQueue, LanesFloatsAndSumsEqualThoseOfTheHost) {
    Bytes elements = any_bits(count * numeric::bytes_of(GetParam()));
    const Memory memory(elements, count);
    Bytes lanes(count * 4);
    Steps steps;
    for (const float scale : {1e8F, 0x1p-100F}) {
        each_step(memory.device, [&](std::size_t at, const Elements& from) {
            device_->load_integers(from, scale, memory.lanes + at, steps.one());
        });
        each_step(elements.data(), [&](std::size_t at, const Elements& from) {
            host_.load_integers(from, scale, &lanes[at], steps.one());
        });
        steps.wait();
        EXPECT_EQ(std::memcmp(memory.lanes, lanes.data(), lanes.size()), 0) << "times " << scale;
    }
    each_step(memory.device, [&](std::size_t at, const Elements& from) {
        EXPECT_TRUE(device_->fetch_floats(from, memory.lanes + at));
    });
    each_step(elements.data(),
              [&](std::size_t at, const Elements& from) { EXPECT_TRUE(host_.fetch_floats(from, &lanes[at])); });
    EXPECT_EQ(std::memcmp(memory.lanes, lanes.data(), lanes.size()), 0) << "as floats";
    const Bytes sums = any_bits(lanes.size());
    std::memcpy(memory.lanes, sums.data(), sums.size());
    for (const double factor : {1.0, 1.0 / 3}) {
        each_step(memory.device, [&](std::size_t at, const Elements& to) {
            device_->store(memory.lanes + at, factor, to, steps.one());
        });
        each_step(elements.data(),
                  [&](std::size_t at, const Elements& to) { host_.store(&sums[at], factor, to, steps.one()); });
        steps.wait();
        EXPECT_EQ(memory.elements(), elements) << "sums times " << factor;
    }
}

TEST_P(CudaQueue, LoadsWaitForTheirEvent) {
    const Memory memory(Bytes(count * numeric::bytes_of(GetParam())), count);
    Bytes elements = any_bits(memory.bytes);
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    const auto late = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
    ASSERT_EQ(cudaLaunchHostFunc(stream, late, nullptr), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(memory.device, elements.data(), memory.bytes, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    ASSERT_TRUE(device_->load_after(event));
    Bytes lanes(count * 4);
    Steps steps;
    each_step(memory.device, [&](std::size_t at, const Elements& from) {
        device_->load_integers(from, 1, memory.lanes + at, steps.one());
    });
    each_step(elements.data(),
              [&](std::size_t at, const Elements& from) { host_.load_integers(from, 1, &lanes[at], steps.one()); });
    steps.wait();
    EXPECT_EQ(std::memcmp(memory.lanes, lanes.data(), lanes.size()), 0);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(Staging, CudaQueue,
                         ::testing::Values(ElementType::float32, ElementType::float64, ElementType::float16,
                                           ElementType::bfloat16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

}  // namespace
}  // namespace atp::staging
