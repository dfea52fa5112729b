// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/communicator.h"

// The communicator's handle in the C interface. A library for PyTorch shares the communicator.
struct atp_communicator {
    std::shared_ptr<atp::comm::Communicator> communicator;
};

// The handle of an operation.
struct atp_work {
    atp::comm::Handle handle;
};
