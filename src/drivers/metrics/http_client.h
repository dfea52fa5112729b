// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"

namespace atp::metrics {

struct HttpCall {
    std::string target;  // host:port, or the path of a local socket, with a slash or without a colon
    std::string method;  // GET, POST or DELETE
    std::string path;    // of the request
    std::string key{};   // sent as a bearer's; empty: none
    Duration timeout{};  // for all of it
};

struct HttpReply {
    int status = 0;
    std::string body{};
};

// Asks a server once. Failure: the error of a system call, timed out, or malformed if the answer is no HTTP.
[[nodiscard]] Result<HttpReply> call(const HttpCall& call);

}  // namespace atp::metrics
