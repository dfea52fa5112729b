// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace atp::protocol {

// Receives the progress of a tensor that is filled step by step. The driver that sums the tensor implements it.
//
// Ownership: shared by the driver and the code that fills tensors. A waker may outlive its driver, and then does
//   nothing.
// Threads: any. No call waits for the network.
// Failure: none.
class Waker {
  public:
    Waker() = default;
    Waker(const Waker&) = delete;
    Waker& operator=(const Waker&) = delete;
    virtual ~Waker() = default;

    // More elements of a tensor in flight are ready, or one of its fragments has its result.
    virtual void advance() = 0;
    // A tensor in flight can never be ready: the driver ends with this error.
    virtual void fail(const Error& error) = 0;
};

// For drivers that poll their workers continuously and need no wake-up.
class SilentWaker final : public Waker {
  public:
    void advance() override {}
    void fail(const Error& /*error*/) override {}
};

}  // namespace atp::protocol
