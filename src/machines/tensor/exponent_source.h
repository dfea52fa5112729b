// SPDX-License-Identifier: Apache-2.0
// The largest exponent of the numbers that this rank adds, found in a pass of its own or while they are sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/tensor.h"
#include "protocol/waker.h"

namespace atp::tensor {

class ExponentSource {
  public:
    virtual ~ExponentSource() = default;
    // True: exponent() is known, or can be found.
    [[nodiscard]] virtual bool ready() = 0;
    // Of the largest finite number, as the 8 bits of a float32; nullopt: all finite numbers are 0.
    [[nodiscard]] virtual std::optional<unsigned> exponent() = 0;
};

// Reads a whole tensor before any element of it is sent.
//
// Ownership: shares the tensor. Calling order: ready() until it returns true, then exponent(). Threads: one.
// Failure: none.
class ScannedExponent final : public ExponentSource {
  public:
    explicit ScannedExponent(std::shared_ptr<const protocol::Tensor> whole) : whole_(std::move(whole)) {}

    [[nodiscard]] bool ready() override { return whole_->ready(0, whole_->size()); }
    [[nodiscard]] std::optional<unsigned> exponent() override;

  private:
    std::shared_ptr<const protocol::Tensor> whole_;
    bool scanned_ = false;
    std::optional<unsigned> exponent_{};  // valid if `scanned_`
};

// Takes the numbers of each fragment from the cache when the fragment is first read to be sent.
//
// Later reads do not count: sums may have replaced the numbers by then (H56, docs/protocol.md#h56).
//
// Ownership: shares the tensor and `feed`.
// Calling order: see() for all fragments of the tensor, then exponent(). After ready() returned false, advance() of the
// feed is called when it would return true.
// Threads: any; one at a time sees a fragment. Failure: none.
class SeenExponent final : public ExponentSource {
  public:
    SeenExponent(std::shared_ptr<const protocol::Tensor> whole, std::shared_ptr<protocol::Waker> feed);

    // These elements are about to be sent: whole fragments, which Tensor::spans() tells.
    void see(std::uint64_t first, std::uint64_t count);

    [[nodiscard]] bool ready() override;
    [[nodiscard]] std::optional<unsigned> exponent() override;

  private:
    std::shared_ptr<const protocol::Tensor> whole_;
    std::shared_ptr<protocol::Waker> feed_;
    std::uint64_t fragment_;                 // elements
    std::vector<std::atomic<bool>> seen_;    // by fragment
    std::atomic<std::uint64_t> missing_;     // fragments
    std::atomic<std::uint32_t> largest_{0};  // magnitude_bits() of a finite number
    std::atomic<bool> waited_for_{false};    // ready() returned false
};

}  // namespace atp::tensor
