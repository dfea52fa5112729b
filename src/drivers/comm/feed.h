// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "protocol/waker.h"

namespace atp::comm {

class Communicator;

// The waker of a communicator. It is made by the communicator and may outlive it.
class Feed final : public protocol::Waker {
  public:
    explicit Feed(Communicator& communicator) : communicator_(&communicator) {}

    void advance() override;
    void fail(const Error& error) override;

  private:
    friend class Communicator;
    void close();

    std::mutex mutex_;
    Communicator* communicator_;
};

}  // namespace atp::comm
