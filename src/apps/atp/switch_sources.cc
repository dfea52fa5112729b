// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/switch_sources.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "client/switch_client.h"
#include "client/switch_report.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::apps {

Result<Sources> sources_of(const std::vector<std::string>& switches, Duration timeout) {
    Sources all;
    std::vector<std::shared_ptr<client::SwitchClient>> clients;
    for (const std::string& name : switches) {
        const bool twice = std::ranges::any_of(all.sources, [&](const auto& other) { return other.name == name; });
        // errors.md, none: it says what to do
        if (twice) return fail(Operation::parse, Reason::malformed, name, "this switch is named twice: name it once");
        const auto addresses = net::resolve(name);
        if (!addresses) return tl::unexpected(addresses.error());
        auto opened = client::SwitchClient::open(addresses->front());
        if (!opened) return tl::unexpected(opened.error());
        const std::shared_ptr<client::SwitchClient> client = *std::move(opened);
        clients.push_back(client);
        all.sources.push_back({name, [client, timeout]() -> std::optional<client::SwitchReport> {
                                   const auto text = client->report(net::now() + timeout);
                                   return text ? client::read_switch_report(*text) : std::nullopt;
                               }});
    }
    all.close = [clients = std::move(clients)] {
        for (const auto& client : clients) client->close();
    };
    return all;
}

}  // namespace atp::apps
