// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "metrics/http_server.h"
#include "observe/log.h"
#include "switchd/node.h"

namespace atp::apps {

inline constexpr std::string_view drain_path = "/drain";

// What `atp drain` asks a switch: POST lets it drain, DELETE ends that, and each answer says who is left.
//
// Ownership: borrows the node and the log. Threads: any. Failure: none.
class DrainPart {
  public:
    // `in_path`: a switch in the path of packets adds, for jobs that the node does not know.
    DrainPart(switchd::SwitchNode& node, bool in_path, observe::Log& log) : node_(node), in_path_(in_path), log_(log) {}

    [[nodiscard]] metrics::HttpAnswer answer(const metrics::HttpRequest& request);
    // It drains, and no job is left.
    [[nodiscard]] bool is_done() const { return node_.drains() && node_.jobs() == 0; }

  private:
    switchd::SwitchNode& node_;
    bool in_path_;
    observe::Log& log_;
};

// Serves the part at a local socket. nullptr: `path` is empty, and no service manager gave a folder for it.
[[nodiscard]] Result<std::unique_ptr<metrics::HttpServer>> serve_control(const std::string& path, DrainPart& part);

}  // namespace atp::apps
