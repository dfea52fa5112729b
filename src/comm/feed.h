// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "net/result.h"

namespace atp::comm {

class Communicator;

// What those who fill tensors little by little tell the communicator that sums them.
//
// Made by a communicator; shared with whoever fills tensors, and may outlive it. One without a communicator tells
// nobody.
// Threads: any. None of the calls waits for the network.
class Feed {
  public:
    Feed() = default;
    explicit Feed(Communicator& communicator) : communicator_(&communicator) {}

    // Elements of some tensor under way have become ready.
    void advance();
    // Some tensor under way will never be ready: ends the communicator with this error.
    void fail(const net::Error& error);

  private:
    friend class Communicator;
    void close();

    std::mutex mutex_;
    Communicator* communicator_ = nullptr;
};

}  // namespace atp::comm
