// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace atp::protocol {

// What a tensor that is filled little by little reports to the driver that sums it.
//
// Ownership: shared by the driver and the code that fills tensors; a waker may outlive its driver, and then does
//   nothing.
// Threads: any. No call waits for the network. Failure: none.
class Waker {
  public:
    Waker() = default;
    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;
    virtual ~Waker() = default;

    // More elements of a tensor in flight are ready, or a fragment of it has its result.
    virtual void advance() = 0;
    // A tensor in flight will never be ready: the driver ends with this error.
    virtual void fail(const Error& error) = 0;
};

// For drivers that poll their workers anyway.
class SilentWaker final : public Waker {
  public:
    void advance() override {}
    void fail(const Error& /*error*/) override {}
};

}  // namespace atp::protocol
