// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_sources.h"

#include <memory>
#include <optional>
#include <utility>

#include "client/switch_client.h"
#include "client/switch_report.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::apps {

Result<std::vector<metrics::SwitchSource>> sources_of(const std::vector<std::string>& switches, Duration timeout) {
    std::vector<metrics::SwitchSource> sources;
    for (const std::string& name : switches) {
        const auto addresses = net::resolve(name);
        if (!addresses) return tl::unexpected(addresses.error());
        auto opened = client::SwitchClient::open(addresses->front());
        if (!opened) return tl::unexpected(opened.error());
        const std::shared_ptr<client::SwitchClient> client = *std::move(opened);
        sources.push_back({name, [client, timeout]() -> std::optional<client::SwitchReport> {
                               const auto text = client->report(net::now() + timeout);
                               return text ? client::read_switch_report(*text) : std::nullopt;
                           }});
    }
    return sources;
}

}  // namespace atp::apps
