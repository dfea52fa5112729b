// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "store/store.h"

// What the C interface calls a store.
struct atp_store {
    std::unique_ptr<atp::store::Store> store;
};
