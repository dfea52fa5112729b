// SPDX-License-Identifier: Apache-2.0
#include "tenants/tenants_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "control/address_range.h"
#include "crypto/tenant_key.h"
#include "keys/key_file.h"
#include "keys/secret_file.h"
#include "tables/table_reader.h"

namespace atp::tenants {
namespace {

using control::Tenant;
using tables::TableReader;

constexpr std::size_t most_bytes = std::size_t{1} << 20U;  // of a file
constexpr std::uint64_t most_id = std::numeric_limits<std::uint32_t>::max();
constexpr std::string_view key_forms = "the path of a file that `atp key for` wrote, or a list of them";

std::vector<control::AddressRange> read_ranges(TableReader& reader, std::string_view key) {
    constexpr std::string_view forms = "a network such as \"10.0.0.0/8\", or a list of networks";
    const std::vector<std::string> texts = reader.texts(key, forms);
    if (texts.empty()) return {};
    const auto ranges = control::parse_ranges(fmt::format("{}", fmt::join(texts, ",")));
    if (!ranges) reader.refuse(key, forms);
    return ranges.value_or(std::vector<control::AddressRange>());
}

std::optional<std::uint32_t> read_number(TableReader& reader, std::string_view key, std::uint64_t least,
                                         std::uint64_t most = most_id) {
    const auto number = reader.number(key, least, most);
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

// What the tenants of one file have in common.
struct Seen {
    std::filesystem::path folder;
    std::set<std::string, std::less<>> names{};
    std::map<std::uint32_t, std::string> keys{};  // the tenant of each id
    std::string switch_name{};
};

void read_key(TableReader& reader, const std::string& file, Seen& seen, Tenant& tenant) {
    auto key = keys::read_key_file((seen.folder / file).string());
    if (!key) return reader.complain_of("keys", to_string(key.error()));
    if (key->at_switch.empty()) {
        return reader.complain_of(
            "keys",
            // errors.md, starts: a switch needs the key that `atp key for` derives, and never holds a tenant's own
            fmt::format("{} is the tenant's own key, which no switch should hold: name the file of `atp key for`",
                        file));
    }
    if (key->tenant != tenant.name) {
        return reader.complain_of("keys", fmt::format("{} is a key of tenant {}", file, key->tenant));
    }
    if (seen.switch_name.empty()) seen.switch_name = key->at_switch;
    if (key->at_switch != seen.switch_name) {
        return reader.complain_of(
            "keys",
            // errors.md, starts: one file is for one switch, whose name its keys state
            fmt::format("{} is a key for switch {}, and one before it for {}: use keys for one switch", file,
                        key->at_switch, seen.switch_name));
    }
    const auto [same, is_new] = seen.keys.emplace(key->id, tenant.name);
    if (!is_new) {
        return reader.complain_of(
            "keys", fmt::format("{} has the key id {}, which tenant {} has already", file, key->id, same->second));
    }
    tenant.keys.push_back(*std::move(key));
}

std::optional<Tenant> read_tenant(const toml::table& table, const std::string& place, Seen& seen,
                                  std::string& problem) {
    TableReader reader(table, place);
    Tenant tenant;
    reader.require("name", crypto::key_name_forms);
    tenant.name = reader.text("name", crypto::key_name_forms).value_or("");
    if (reader.has("name") && !crypto::is_key_name(tenant.name)) reader.refuse("name", crypto::key_name_forms);
    if (!seen.names.insert(tenant.name).second) reader.refuse("name", "each name once");
    reader.require("keys", key_forms);
    for (const std::string& file : reader.texts("keys", key_forms)) read_key(reader, file, seen, tenant);
    tenant.sources = read_ranges(reader, "sources");
    tenant.servers = read_ranges(reader, "servers");
    tenant.groups = read_ranges(reader, "groups");
    tenant.jobs = read_number(reader, "jobs", 0);
    tenant.channels = read_number(reader, "channels", 0);
    tenant.server_bytes = reader.quantity("server_memory", parse_size, size_forms);
    tenant.aggregators = read_number(reader, "aggregators", 1);
    tenant.weight = read_number(reader, "weight", 1, 1000).value_or(tenant.weight);
    tenant.fabric = reader.flag("fabric", tenant.fabric);
    for (const std::uint64_t id : reader.numbers("revoked", 1, most_id)) {
        tenant.revoked.push_back(static_cast<std::uint32_t>(id));
        if (std::ranges::find(tenant.keys, id, &crypto::TenantKey::id) != tenant.keys.end()) {
            reader.refuse("revoked", "ids whose key files are not in 'keys'");
        }
    }
    if (auto found = reader.problem()) {
        problem = *std::move(found);
        return std::nullopt;
    }
    return tenant;
}

Failure malformed(const std::string& path, std::string text) {
    return fail(Operation::open, Reason::malformed, path, std::move(text));
}

std::string limit_text(std::optional<std::uint64_t> limit) { return limit ? std::to_string(*limit) : "the switch's"; }

std::string ids_of(const Tenant& tenant) {
    std::vector<std::uint32_t> ids;
    for (const crypto::TenantKey& key : tenant.keys) ids.push_back(key.id);
    return fmt::format("{}", fmt::join(ids, ", "));
}

std::string change_of(const Tenant& before, const Tenant& after) {
    std::vector<std::string> texts;
    const auto compare = [&](std::string_view name, const std::string& was, const std::string& is) {
        if (was != is) texts.push_back(fmt::format("{} {} (was {})", name, is, was));
    };
    const auto ranges = [](const std::vector<control::AddressRange>& of) {
        return of.empty() ? std::string("any") : to_string(std::span(of));
    };
    compare("keys", ids_of(before), ids_of(after));
    compare("revoked", fmt::format("[{}]", fmt::join(before.revoked, ", ")),
            fmt::format("[{}]", fmt::join(after.revoked, ", ")));
    compare("jobs", limit_text(before.jobs), limit_text(after.jobs));
    compare("channels", limit_text(before.channels), limit_text(after.channels));
    compare("server_memory", limit_text(before.server_bytes), limit_text(after.server_bytes));
    compare("aggregators", limit_text(before.aggregators), limit_text(after.aggregators));
    compare("weight", std::to_string(before.weight), std::to_string(after.weight));
    compare("sources", ranges(before.sources), ranges(after.sources));
    compare("servers", ranges(before.servers), ranges(after.servers));
    compare("groups", ranges(before.groups), ranges(after.groups));
    compare("fabric", before.fabric ? "true" : "false", after.fabric ? "true" : "false");
    return fmt::format("{}", fmt::join(texts, ", "));
}

const Tenant* find(const control::Tenants& tenants, std::string_view name) {
    const auto found = std::ranges::find(tenants.all(), name, &Tenant::name);
    return found == tenants.all().end() ? nullptr : &*found;
}

}  // namespace

Result<std::shared_ptr<const control::Tenants>> read_tenants_file(const std::string& path) {
    const auto text = keys::read_secret_file(path, most_bytes, "tenants file", "");
    if (!text) return tl::unexpected(text.error());
    // The error of the file names its path.
    const auto tables = tables::parse_tables((*text)->text(), "tenants", "tenant");
    if (!tables) return malformed(path, tables.error());
    Seen seen{.folder = std::filesystem::path(path).parent_path()};
    std::vector<Tenant> tenants;
    for (const toml::node& node : tables->all()) {
        std::string problem;
        const std::string place = fmt::format("tenant {}", tenants.size() + 1);
        auto tenant = read_tenant(*node.as_table(), place, seen, problem);
        if (!tenant) return malformed(path, std::move(problem));
        tenants.push_back(*std::move(tenant));
    }
    return std::make_shared<const control::Tenants>(std::move(tenants));
}

std::vector<std::string> changes_between(const control::Tenants& before, const control::Tenants& after) {
    std::vector<std::string> texts;
    for (const Tenant& tenant : after.all()) {
        const Tenant* const was = find(before, tenant.name);
        if (was == nullptr) {
            texts.push_back(fmt::format("tenant {} added, keys {}", tenant.name, ids_of(tenant)));
        } else if (const std::string change = change_of(*was, tenant); !change.empty()) {
            texts.push_back(fmt::format("tenant {}: {}", tenant.name, change));
        }
    }
    for (const Tenant& tenant : before.all()) {
        if (find(after, tenant.name) == nullptr) texts.push_back(fmt::format("tenant {} removed", tenant.name));
    }
    return texts;
}

}  // namespace atp::tenants
