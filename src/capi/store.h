// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/store.h"

// What the C interface calls a store.
struct atp_store {
    std::unique_ptr<atp::comm::Store> store;
};
