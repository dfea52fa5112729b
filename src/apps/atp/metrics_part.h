// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/atp/drain_part.h"
#include "base/result.h"
#include "metrics/exporter.h"
#include "metrics/http_server.h"

namespace atp::apps {

struct MetricsOptions {
    std::string http{};      // address; empty: nothing is served
    std::string key_file{};  // of the operator's key; empty: none is asked for
};

// The first line of the file; empty if `path` is. Failure: others may read it, or the key is too short.
[[nodiscard]] Result<std::string> operators_key_in(const std::string& path);

// What start() would refuse, without opening a socket.
[[nodiscard]] Result<void> check_metrics(const MetricsOptions& options);

// By which its own metrics name a switch. One that listens at every address has the name of its host, since the metrics
// of several switches meet in one place.
[[nodiscard]] std::string name_of_switch(const wire::Address& address);

// What `atp metrics` and `atp switch --http` serve.
//
// Ownership: owns the server and its sources, borrows `drain`, which whoever has the operator's key may use; nullptr:
//   nobody. Calling order: start(); the destructor ends serving.
// Threads: one. Failure: start() returns why the address or the key cannot be used.
class MetricsPart {
  public:
    [[nodiscard]] static Result<std::unique_ptr<MetricsPart>> start(const MetricsOptions& options,
                                                                    std::vector<metrics::SwitchSource> sources,
                                                                    DrainPart* drain = nullptr);

    [[nodiscard]] const wire::Address& address() const { return server_->address(); }

  private:
    MetricsPart(metrics::Exporter exporter, DrainPart* drain) : exporter_(std::move(exporter)), drain_(drain) {}

    [[nodiscard]] metrics::HttpAnswer answer(const metrics::HttpRequest& request);

    metrics::Exporter exporter_;
    DrainPart* drain_;
    std::unique_ptr<metrics::HttpServer> server_;
};

}  // namespace atp::apps
