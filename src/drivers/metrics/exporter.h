// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/switch_report.h"
#include "metrics/exposition.h"
#include "metrics/http_server.h"

namespace atp::metrics {

// A switch that an exporter asks.
struct SwitchSource {
    std::string name;                                          // by which the operator knows it
    std::function<std::optional<client::SwitchReport>()> ask;  // nullopt: no answer
};

using Reports = std::vector<std::optional<client::SwitchReport>>;
// Of all sources at once, in their order: each is asked in a thread of its own.
[[nodiscard]] Reports ask(const std::vector<SwitchSource>& sources);

// Answers what a scraper, a browser and a supervisor ask about switches: /metrics, /, /reports and /healthz.
//
// Ownership: owns the sources. Threads: one calls answer(), which waits for the slowest source. Requests within `fresh`
//   share the reports.
class Exporter {
  public:
    static constexpr Duration fresh = std::chrono::milliseconds(50);

    // `key`: that a request must bring, as a bearer's or as the password of any user. Empty: none, but then nothing is
    // shown of a switch with tenants.
    explicit Exporter(std::vector<SwitchSource> sources, std::string key = {});

    [[nodiscard]] HttpAnswer answer(const HttpRequest& request);
    // The metrics of all switches, for somebody who may see them.
    [[nodiscard]] std::string metrics(TextFormat format);
    // nullopt: the request may change something. It needs the key as a bearer's, which a browser never sends by itself,
    // so no other page can make it do so.
    [[nodiscard]] std::optional<HttpAnswer> refusal_to_change(const HttpRequest& request) const;

  private:
    const Reports& reports();
    // nullopt: the request may see all.
    [[nodiscard]] std::optional<HttpAnswer> refusal(const HttpRequest& request);
    HttpAnswer health();
    HttpAnswer listed();

    std::vector<SwitchSource> sources_;
    std::string key_;
    Reports reports_;
    std::optional<Time> asked_;  // when the reports were complete
};

}  // namespace atp::metrics
