// SPDX-License-Identifier: Apache-2.0
#include "staging/staged_tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/older_symbols.h"
#include "numeric/element_type.h"
#include "staging/element.h"

namespace atp::staging {
namespace {

// A quiet NaN in wire format.
constexpr std::uint32_t nan_lane = numeric::lane::swap_bytes(float_infinity | float_quiet);

}  // namespace

StagedTensor::StagedTensor(std::shared_ptr<DeviceQueue> device, const Stage& stage,
                           std::shared_ptr<protocol::Waker> feed, std::size_t elements_of_chunk)
    : device_(std::move(device)),
      stage_(stage),
      feed_(std::move(feed)),
      elements_of_chunk_(elements_of_chunk),
      chunks_((stage.elements.count + elements_of_chunk - 1) / elements_of_chunk) {
    assert(elements_of_chunk <= elements_of_step);
    assert(stage.lanes.size() == stage.elements.count * ATP_LANE_BYTES);
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) chunks_[chunk].missing = elements_of(chunk).count;
}

StagedTensor::~StagedTensor() { wait_for_device(); }

void StagedTensor::begin() {
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
        const Elements elements = elements_of(chunk);
        const std::uint64_t first = std::uint64_t{chunk} * elements_of_chunk_;
        const std::uint64_t end = first + elements.count;
        begin_step();
        device_->load_integers(elements, stage_.scale, lanes_from(first), [this, end](const Result<void>& done) {
            if (done) {
                loaded_.store(end, std::memory_order_release);
                feed_->advance();
            }
            finish_step(done);
        });
    }
}

Elements StagedTensor::elements_of(std::size_t chunk) const {
    const std::size_t first = chunk * elements_of_chunk_;
    auto* const data = static_cast<std::byte*>(stage_.elements.data) + first * numeric::bytes_of(stage_.elements.type);
    return {.type = stage_.elements.type,
            .data = data,
            .count = std::min(elements_of_chunk_, stage_.elements.count - first)};
}

template <class Call>
void StagedTensor::visit(std::uint64_t first, std::uint64_t count, Call call) const {
    while (count != 0) {
        const std::uint64_t offset = first % elements_of_chunk_;
        const std::uint64_t part = std::min<std::uint64_t>(elements_of_chunk_ - offset, count);
        call(static_cast<std::size_t>(first / elements_of_chunk_), offset, part);
        first += part;
        count -= part;
    }
}

bool StagedTensor::load_integers(std::uint64_t first, std::span<std::byte> lanes) const {
    const std::byte* from = lanes_from(first);
    bool fit = true;
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        std::uint32_t lane;
        std::memcpy(&lane, from + at, sizeof lane);
        std::memcpy(lanes.data() + at, &lane, sizeof lane);
        fit &= lane != refused_lane;
    }
    return fit;
}

void StagedTensor::load_floats(std::uint64_t first, std::span<std::byte> lanes) const {
    std::byte* to = lanes.data();
    visit(first, lanes.size() / ATP_LANE_BYTES, [&](std::size_t chunk, std::uint64_t offset, std::uint64_t count) {
        std::call_once(chunks_[chunk].fetched, [&] { fetch(chunk); });
        const std::size_t bytes = count * ATP_LANE_BYTES;
        std::memcpy(to, &chunks_[chunk].floats[offset * ATP_LANE_BYTES], bytes);
        to += bytes;
    });
}

// The elements are still valid. The device overwrites them only when all sums of the chunk have arrived, and then no
// fragment of the chunk is loaded again.
void StagedTensor::fetch(std::size_t chunk) const {
    const Elements elements = elements_of(chunk);
    std::vector<std::byte>& floats = chunks_[chunk].floats;
    floats.resize(elements.count * ATP_LANE_BYTES);
    const auto fetched = device_->fetch_floats(elements, floats.data());
    if (fetched) return;
    for (std::size_t at = 0; at < floats.size(); at += ATP_LANE_BYTES) {
        std::memcpy(&floats[at], &nan_lane, sizeof nan_lane);
    }
    fail(fetched.error());
}

void StagedTensor::store(std::uint64_t first, std::span<const std::byte> lanes) {
    std::memcpy(lanes_from(first), lanes.data(), lanes.size());
    visit(first, lanes.size() / ATP_LANE_BYTES, [this](std::size_t chunk, std::uint64_t, std::uint64_t count) {
        const std::size_t before = chunks_[chunk].missing.fetch_sub(count, std::memory_order_acq_rel);
        if (before == count) store_chunk(chunk);
    });
}

void StagedTensor::store_chunk(std::size_t chunk) {
    begin_step();
    device_->store(lanes_from(std::uint64_t{chunk} * elements_of_chunk_), stage_.factor, elements_of(chunk),
                   [this](const Result<void>& done) { finish_step(done); });
}

void StagedTensor::begin_step() const {
    const std::scoped_lock lock(mutex_);
    ++steps_;
}

// After the last step, a thread in wait_for_device() may destroy this object: nothing is accessed after the lock.
void StagedTensor::finish_step(const Result<void>& done) const {
    if (!done) fail(done.error());
    const std::scoped_lock lock(mutex_);
    --steps_;
    changed_.notify_all();
}

void StagedTensor::fail(const Error& error) const {
    {
        const std::scoped_lock lock(mutex_);
        if (error_) return;
        error_ = error;
    }
    feed_->fail(error);
}

void StagedTensor::wait_for_device() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return steps_ == 0; });
}

std::optional<Error> StagedTensor::error() const {
    const std::scoped_lock lock(mutex_);
    return error_;
}

}  // namespace atp::staging
