// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/exporter.h"
#include "metrics/http_server.h"

namespace atp::apps {

struct MetricsOptions {
    std::string http{};      // address; empty: nothing is served
    std::string key_file{};  // of the operator's key; empty: none is asked for
};

// What `atp metrics` and `atp switch --http` serve.
//
// Ownership: owns the server and its sources. Calling order: start(); the destructor ends serving.
// Threads: one. Failure: start() returns why the address or the key cannot be used.
class MetricsPart {
  public:
    [[nodiscard]] static Result<std::unique_ptr<MetricsPart>> start(const MetricsOptions& options,
                                                                    std::vector<metrics::Source> sources);

    [[nodiscard]] const wire::Address& address() const { return server_->address(); }

  private:
    explicit MetricsPart(metrics::Exporter exporter) : exporter_(std::move(exporter)) {}

    metrics::Exporter exporter_;
    std::unique_ptr<metrics::HttpServer> server_;
};

}  // namespace atp::apps
