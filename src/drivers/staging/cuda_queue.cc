// SPDX-License-Identifier: Apache-2.0
#include "staging/cuda_queue.h"

#include <cuda_runtime_api.h>

#include <cassert>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "protocol/tensor.h"
#include "staging/cuda_kernels.h"

namespace atp::staging {
namespace {

constexpr std::size_t scratch_bytes = elements_of_step * ATP_LANE_BYTES;

Result<void> result_of(cudaError_t status) {
    if (status == cudaSuccess) return {};
    return fail(Operation::wait, Reason::failed, "CUDA",
                std::string(cudaGetErrorName(status)) + ", " + cudaGetErrorString(status));
}

// Makes calls in order until one fails, and keeps its error.
class Calls {
  public:
    template <class Call>
    Calls& then(const Call& call) {
        if (status_ == cudaSuccess) status_ = call();
        return *this;
    }
    [[nodiscard]] cudaError_t status() const { return status_; }

  private:
    cudaError_t status_ = cudaSuccess;
};

// A stream, and device memory for the lanes of one step. Steps of a stream run one after the other, so one step's
// memory is enough.
//
// Ownership: owns the stream and the memory. Calling order: open(), then steps under mutex(). Threads: any.
// Failure: open() returns the error.
class Line {
  public:
    Line() = default;
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    // Errors of a failed device are ignored: nothing can be done about them here.
    ~Line() {
        if (scratch_ != nullptr) static_cast<void>(cudaFree(scratch_));
        if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
    }

    // Uses the greatest priority on the device, since the network waits for these steps.
    [[nodiscard]] cudaError_t open() {
        int least = 0;
        int greatest = 0;
        return Calls()
            .then([&] { return cudaDeviceGetStreamPriorityRange(&least, &greatest); })
            .then([&] { return cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest); })
            .then([&] { return cudaMalloc(reinterpret_cast<void**>(&scratch_), scratch_bytes); })
            .status();
    }

    [[nodiscard]] cudaStream_t stream() const { return stream_; }
    [[nodiscard]] std::uint32_t* scratch() const { return scratch_; }
    [[nodiscard]] std::mutex& mutex() { return mutex_; }  // held while the calls of one step are made

  private:
    cudaStream_t stream_ = nullptr;
    std::uint32_t* scratch_ = nullptr;
    std::mutex mutex_;
};

// cudaStreamAddCallback() also calls back after errors, so every step is reported as done.
void CUDART_CB finish_step(cudaStream_t /*stream*/, cudaError_t status, void* done) {
    const std::unique_ptr<DeviceQueue::Done> owned(static_cast<DeviceQueue::Done*>(done));
    (*owned)(result_of(status));
}

// Calls `done` when the stream reaches this point. On success, takes ownership of `done`.
cudaError_t call_back(cudaStream_t stream, std::unique_ptr<DeviceQueue::Done>& done) {
    const cudaError_t status = cudaStreamAddCallback(stream, &finish_step, done.get(), 0);
    if (status == cudaSuccess) static_cast<void>(done.release());
    return status;
}

class CudaQueue final : public DeviceQueue {
  public:
    explicit CudaQueue(int device) : device_(device) {}
    ~CudaQueue() override {
        if (cudaSetDevice(device_) != cudaSuccess) return;
        for (Line* line : {&load_, &store_, &fetch_}) static_cast<void>(cudaStreamSynchronize(line->stream()));
    }

    [[nodiscard]] cudaError_t open() {
        return Calls()
            .then([&] { return cudaSetDevice(device_); })
            .then([&] { return load_.open(); })
            .then([&] { return store_.open(); })
            .then([&] { return fetch_.open(); })
            .status();
    }

    Result<void> load_after(void* event) override {
        return result_of(
            Calls()
                .then([&] { return cudaSetDevice(device_); })
                .then([&] { return cudaStreamWaitEvent(load_.stream(), static_cast<cudaEvent_t>(event), 0); })
                .status());
    }

    void load_integers(const Elements& from, float scale, std::byte* lanes, Done done) override {
        step(load_, std::move(done), from.count, [&](std::uint32_t* scratch, cudaStream_t stream) {
            return Calls()
                .then([&] { return cuda::load_integers(from, scale, scratch, stream); })
                .then([&] { return copy(lanes, scratch, from.count, stream); })
                .status();
        });
    }

    void store(const std::byte* lanes, double factor, const Elements& to, Done done) override {
        step(store_, std::move(done), to.count, [&](std::uint32_t* scratch, cudaStream_t stream) {
            return Calls()
                .then([&] { return copy(scratch, lanes, to.count, stream); })
                .then([&] { return cuda::store(scratch, factor, to, stream); })
                .status();
        });
    }

    Result<void> fetch_floats(const Elements& from, std::byte* lanes) override {
        assert(from.count <= elements_of_step);
        const std::scoped_lock lock(fetch_.mutex());
        return result_of(Calls()
                             .then([&] { return cudaSetDevice(device_); })
                             .then([&] { return cuda::load_floats(from, fetch_.scratch(), fetch_.stream()); })
                             .then([&] { return copy(lanes, fetch_.scratch(), from.count, fetch_.stream()); })
                             .then([&] { return cudaStreamSynchronize(fetch_.stream()); })
                             .status());
    }

  private:
    static cudaError_t copy(void* to, const void* from, std::size_t lanes, cudaStream_t stream) {
        return cudaMemcpyAsync(to, from, lanes * ATP_LANE_BYTES, cudaMemcpyDefault, stream);
    }

    template <class Work>
    void step(Line& line, Done done, [[maybe_unused]] std::size_t count, const Work& work) const {
        assert(count <= elements_of_step);
        auto pending = std::make_unique<Done>(std::move(done));
        cudaError_t status = cudaSuccess;
        {
            const std::scoped_lock lock(line.mutex());
            status = Calls()
                         .then([&] { return cudaSetDevice(device_); })
                         .then([&] { return work(line.scratch(), line.stream()); })
                         .then([&] { return call_back(line.stream(), pending); })
                         .status();
        }
        if (pending) (*pending)(result_of(status));
    }

    int device_;
    Line load_;
    Line store_;
    Line fetch_;
};

}  // namespace

Result<std::shared_ptr<DeviceQueue>> open_cuda_queue(int device) {
    auto queue = std::make_shared<CudaQueue>(device);
    if (auto opened = result_of(queue->open()); !opened) return tl::unexpected(opened.error());
    return queue;
}

}  // namespace atp::staging
