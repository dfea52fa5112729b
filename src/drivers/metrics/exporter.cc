// SPDX-License-Identifier: Apache-2.0
#include "metrics/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "crypto/crypto.h"
#include "metrics/exposition.h"
#include "metrics/page.h"
#include "metrics/switch_metrics.h"
#include "net/clock.h"

namespace atp::metrics {
namespace {

// The page asks only this server, and no other page may show it in a frame.
constexpr std::pair<std::string_view, std::string_view> policy{
    "Content-Security-Policy",
    // errors.md, none: no error
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "frame-ancestors 'none'"};
// errors.md, none: no error
constexpr std::string_view html = "text/html; charset=utf-8";
constexpr std::pair<std::string_view, std::string_view> uncached{"Cache-Control", "no-store"};

bool equal(std::string_view one, std::string_view other) {
    return crypto::are_equal(crypto::bytes_of(one), crypto::bytes_of(other));
}

// The text after `scheme`, which is in any case; nullopt: another scheme.
std::optional<std::string_view> credentials(std::string_view authorization, std::string_view scheme) {
    const auto is_same = [](char one, char other) { return (one | 0x20) == (other | 0x20); };
    const std::string_view begin = authorization.substr(0, scheme.size());
    if (!std::ranges::equal(begin, scheme, is_same) || authorization.size() <= scheme.size()) return std::nullopt;
    if (authorization[scheme.size()] != ' ') return std::nullopt;
    return authorization.substr(scheme.size() + 1);
}

// Without padding; characters of no digit end the text.
std::string from_base64(std::string_view text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (const char character : text) {
        const std::size_t digit = digits.find(character);
        if (digit == std::string_view::npos) break;
        bits = bits << 6U | static_cast<std::uint32_t>(digit);
        count += 6;
        if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xffU);
    }
    return bytes;
}

// As a bearer's, or as the password of any user.
bool has_key(std::string_view authorization, std::string_view key) {
    if (const auto bearer = credentials(authorization, "Bearer")) return equal(*bearer, key);
    const auto basic = credentials(authorization, "Basic");
    if (!basic) return false;
    const std::string user = from_base64(*basic);
    const std::size_t colon = user.find(':');
    return colon != std::string::npos && equal(std::string_view(user).substr(colon + 1), key);
}

std::string_view missing_key(const HttpRequest& request) {
    return request.authorization.empty() ? "the operator's key is required\n" : "this is not the operator's key\n";
}

}  // namespace

Reports ask(const std::vector<SwitchSource>& sources) {
    std::vector<std::future<std::optional<client::SwitchReport>>> asked;
    for (std::size_t i = 1; i < sources.size(); ++i) asked.push_back(std::async(std::launch::async, sources[i].ask));
    Reports reports;
    if (!sources.empty()) reports.push_back(sources.front().ask());
    for (auto& report : asked) reports.push_back(report.get());
    return reports;
}

Exporter::Exporter(std::vector<SwitchSource> sources, std::string key)
    : sources_(std::move(sources)), key_(std::move(key)) {}

HttpAnswer Exporter::answer(const HttpRequest& request) {
    if (request.method != "GET") return {.status = 405, .body = "only GET\n", .headers = {{"Allow", "GET, HEAD"}}};
    if (request.path == "/healthz") return health();
    if (auto refused = refusal(request)) return *std::move(refused);
    if (request.path == "/metrics") {
        const TextFormat format = format_for(request.accept);
        return {.type = content_type(format), .body = metrics(format)};
    }
    if (request.path == "/reports") return listed();
    if (request.path == "/") {
        return {.type = html, .body = std::string(page), .headers = {policy, uncached}};
    }
    return {.status = 404, .body = "this server has /, /metrics, /reports and /healthz\n"};
}

const Reports& Exporter::reports() {
    if (!asked_ || net::now() - *asked_ >= fresh) {
        reports_ = ask(sources_);
        asked_ = net::now();
    }
    return reports_;
}

std::optional<HttpAnswer> Exporter::refusal(const HttpRequest& request) {
    if (key_.empty()) {
        const bool have_tenants =
            std::ranges::any_of(reports(), [](const auto& report) { return report && !report->is_open; });
        if (!have_tenants) return std::nullopt;
        return HttpAnswer{.status = 403, .body = "a switch has tenants, so this server needs --http-key\n"};
    }
    if (has_key(request.authorization, key_)) return std::nullopt;
    return HttpAnswer{.status = 401,
                      .body = std::string(missing_key(request)),
                      .headers = {{"WWW-Authenticate", "Basic realm=\"ATP\""}}};
}

std::optional<HttpAnswer> Exporter::refusal_to_change(const HttpRequest& request) const {
    if (key_.empty()) return HttpAnswer{.status = 403, .body = "this needs a server with --http-key\n"};
    const auto bearer = credentials(request.authorization, "Bearer");
    if (bearer && equal(*bearer, key_)) return std::nullopt;
    const bool other_scheme = !bearer && !request.authorization.empty();
    return HttpAnswer{
        .status = 401,
        .body = std::string(other_scheme ? "send the operator's key as a bearer's\n" : missing_key(request)),
        .headers = {{"WWW-Authenticate", "Bearer realm=\"ATP\""}}};
}

std::string Exporter::metrics(TextFormat format) {
    const Reports& found = reports();
    Exposition exposition;
    for (std::size_t i = 0; i < sources_.size(); ++i) add_switch(sources_[i].name, found[i], exposition);
    return exposition.text(format);
}

// For supervisors, which restart what is not healthy: one switch that answers is enough.
HttpAnswer Exporter::health() {
    const bool healthy = std::ranges::any_of(reports(), [](const auto& report) { return report.has_value(); });
    return {.status = healthy ? 200 : 503, .body = healthy ? "ok\n" : "no switch answers\n", .headers = {uncached}};
}

HttpAnswer Exporter::listed() {
    const Reports& found = reports();
    std::string body = R"({"switches":[)";
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        body +=
            fmt::format(R"({}{{"name":{},"report":{}}})", i == 0 ? "" : ",", nlohmann::json(sources_[i].name).dump(),
                        found[i] ? client::to_json(*found[i]) : std::string("null"));
    }
    body += fmt::format(R"(],"at_s":{:.6f}}})", std::chrono::duration<double>(asked_->time_since_epoch()).count());
    return {.type = "application/json", .body = std::move(body), .headers = {uncached}};
}

}  // namespace atp::metrics
