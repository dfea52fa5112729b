// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "store/store.h"

// The store handle of the C interface. It owns the store.
struct atp_store {
    std::unique_ptr<atp::store::Store> store;
};
