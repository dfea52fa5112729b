// SPDX-License-Identifier: Apache-2.0
// Shared by tests of stores: servers on loopback, their clients, and long and short deadlines.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/clock.h"
#include "store/tcp_store.h"
#include "store/tcp_store_server.h"

namespace atp::test {

// Deadline of calls that must succeed.
inline Time longest_wait() { return net::now() + std::chrono::seconds(60); }
// Deadline of calls that must time out.
inline Time shortly() { return net::now() + std::chrono::milliseconds(30); }

inline std::unique_ptr<store::TcpStoreServer> serve(const wire::Address& listen,
                                                    const store::TcpStoreServerConfig& config = {}) {
    auto server = store::TcpStoreServer::start(listen, config);
    if (!server) {
        ADD_FAILURE() << to_string(server.error());
        return nullptr;
    }
    return std::move(*server);
}

inline std::unique_ptr<store::TcpStoreServer> serve(const store::TcpStoreServerConfig& config = {}) {
    return serve(wire::Address::loopback(wire::Family::ipv4, 0), config);
}

inline std::unique_ptr<store::TcpStore> connect(const wire::Address& server) {
    auto store = store::TcpStore::connect(server, longest_wait());
    if (!store) {
        ADD_FAILURE() << to_string(store.error());
        return nullptr;
    }
    return std::move(*store);
}

template <class Value>
std::string error_of(const Result<Value>& result) {
    return result ? "no error" : to_string(result.error());
}

template <class Value>
bool failed_with(const Result<Value>& result, Reason reason) {
    return !result && result.error().reason == reason;
}

inline bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace atp::test
