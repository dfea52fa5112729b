// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "protocol/waker.h"

namespace atp::comm {

class Communicator;

// Waker of a communicator, for its tensors. The communicator creates the waker, which may outlive the communicator.
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
