// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/metrics_part.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

#include "apps/common/confinement.h"
#include "keys/secret_file.h"
#include "net/resolve.h"

namespace atp::apps {
namespace {

constexpr std::size_t most_key_bytes = 256;
constexpr std::size_t least_key_bytes = 16;

}  // namespace

Result<std::string> operators_key_in(const std::string& path) {
    if (path.empty()) return std::string();
    const auto secret = keys::read_secret_file(path, most_key_bytes, "key file of the operator",
                                               ", and write a new key if one may have");
    if (!secret) return tl::unexpected(secret.error());
    const std::string_view text = (*secret)->text();
    std::string key(text.substr(0, text.find_first_of("\r\n")));
    if (key.size() >= least_key_bytes) return key;
    return fail(Operation::open, Reason::malformed, path,
                // errors.md, starts, malformed: write a longer key into the file
                fmt::format("an operator's key has at least {} characters", least_key_bytes));
}

Result<void> check_metrics(const MetricsOptions& options) {
    if (!options.http.empty()) {
        if (const auto local = net::resolve(options.http); !local) return tl::unexpected(local.error());
    }
    if (const auto key = operators_key_in(options.key_file); !key) return tl::unexpected(key.error());
    return {};
}

std::string name_of_switch(const wire::Address& address) {
    std::array<char, HOST_NAME_MAX + 1> host{};
    if (!address.is_any() || gethostname(host.data(), host.size() - 1) != 0) return to_string(address);
    return fmt::format("{}:{}", host.data(), address.port());
}

Result<std::unique_ptr<MetricsPart>> MetricsPart::start(const MetricsOptions& options,
                                                        std::vector<metrics::SwitchSource> sources, DrainPart* drain) {
    const auto local = net::resolve(options.http);
    if (!local) return tl::unexpected(local.error());
    auto key = operators_key_in(options.key_file);
    if (!key) return tl::unexpected(key.error());
    std::unique_ptr<MetricsPart> part(new MetricsPart(metrics::Exporter(std::move(sources), *std::move(key)), drain));
    auto server = metrics::HttpServer::start(
        local->front(), [&self = *part](const auto& request) { return self.answer(request); }, keep_use_of_maps);
    if (!server) return tl::unexpected(server.error());
    part->server_ = *std::move(server);
    return part;
}

metrics::HttpAnswer MetricsPart::answer(const metrics::HttpRequest& request) {
    if (drain_ == nullptr || request.path != drain_path) return exporter_.answer(request);
    if (auto refused = exporter_.refusal_to_change(request)) return *std::move(refused);
    return drain_->answer(request);
}

}  // namespace atp::apps
