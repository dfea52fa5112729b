// SPDX-License-Identifier: Apache-2.0
#include "client/switch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/text.h"
#include "wire/job_text.h"

namespace atp::client {
namespace {

using Json = nlohmann::ordered_json;

// In ASCII, so that a report may be cut into parts between any two bytes.
std::string text_of(const Json& json) {
    constexpr bool only_ascii = true;
    return json.dump(-1, ' ', only_ascii, Json::error_handler_t::replace);
}

// Thrown if the value of a key does not have the type that a report requires.
struct Malformed {};

void require(bool condition) {
    if (!condition) throw Malformed{};
}

void get(const Json& json, bool& value) {
    require(json.is_boolean());
    value = json.get<bool>();
}
void get(const Json& json, double& value) {
    require(json.is_number());
    value = json.get<double>();
}
template <std::unsigned_integral Value>
void get(const Json& json, Value& value) {
    require(json.is_number_unsigned() && json.get<std::uint64_t>() <= std::numeric_limits<Value>::max());
    value = json.get<Value>();
}
void get(const Json& json, std::string& value) {
    require(json.is_string());
    value = json.get<std::string>();
}
template <class Value>
void get(const Json& json, std::vector<Value>& values) {
    require(json.is_array());
    for (const Json& element : json) get(element, values.emplace_back());
}
// Pairs of a name and a text.
void get(const Json& json, std::vector<std::pair<std::string, std::string>>& texts) {
    require(json.is_object());
    for (const auto& [name, text] : json.items()) get(text, texts.emplace_back(name, std::string()).second);
}

// Archives: describe() names each key of a report once, and runs with a ReportWriter or a reader.
class ReportWriter {
  public:
    template <class Described>
    using Of = const Described&;

    explicit ReportWriter(Json& json) : json_(json) { json_ = Json::object(); }

    template <class Value>
    void value(std::string_view key, const Value& value) {
        json_[std::string(key)] = value;
    }
    void value(std::string_view key, const std::vector<std::pair<std::string, std::string>>& texts) {
        Json& json = json_[std::string(key)] = Json::object();
        for (const auto& [name, text] : texts) json[name] = text;
    }
    template <class Value>
    void value_if_known(std::string_view key, const std::optional<Value>& known) {
        if (known) value(key, *known);
    }
    void hex(std::string_view key, std::uint64_t number) { value(key, fmt::format("{:016x}", number)); }
    void job(std::string_view key, std::uint32_t number) { value(key, wire::job_to_string(number)); }
    void jobs(std::string_view key, const std::vector<std::uint32_t>& numbers) {
        Json& array = json_[std::string(key)] = Json::array();
        for (const std::uint32_t number : numbers) array.push_back(wire::job_to_string(number));
    }
    void choice(std::string_view key, bool chosen, std::string_view yes, std::string_view no) {
        value(key, chosen ? yes : no);
    }
    void value_unless_empty(std::string_view key, const std::string& text) {
        if (!text.empty()) value(key, text);
    }
    template <class Counters, std::size_t count>
    void counters(const CounterFields<Counters, count>& fields, const Counters& counters) {
        for (const auto& field : fields) value(field.name, field.value_of(counters));
    }
    // Writes only counters that are not 0.
    template <class Name>
    void counts(std::span<const std::uint64_t> counts, Name&& name) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] != 0) value(name(i), counts[i]);
        }
    }
    template <class Name>
    void texts_of(const net::UdpReport& features, Name&& name) {
        for (std::size_t i = 0; i < net::feature_count; ++i) {
            value(name(i), features[static_cast<net::Feature>(i)].text);
        }
    }
    template <class Describe>
    void object(std::string_view key, Describe&& describe) {
        ReportWriter inner(json_[std::string(key)]);
        describe(inner);
    }
    template <class Described>
    void optional(std::string_view key, const std::optional<Described>& described) {
        if (described) object(key, [&](ReportWriter& inner) { describe(inner, *described); });
    }
    template <class Described>
    void list(std::string_view key, const std::vector<Described>& list) {
        Json& array = json_[std::string(key)] = Json::array();
        for (const Described& each : list) {
            ReportWriter inner(array.emplace_back());
            describe(inner, each);
        }
    }
    void parts(const std::vector<ReportPart>& parts) {
        for (const ReportPart& part : parts) {
            assert(!json_.contains(part.name));
            json_[part.name] = Json::parse(part.json);
        }
    }

  private:
    Json& json_;
};

class ReportReader {
  public:
    template <class Described>
    using Of = Described&;

    explicit ReportReader(const Json& json) : json_(json) { require(json.is_object()); }

    template <class Value>
    void value(std::string_view key, Value& value) {
        if (const Json* json = find(key)) get(*json, value);
    }
    template <class Value>
    void value_if_known(std::string_view key, std::optional<Value>& known) {
        if (const Json* json = find(key)) get(*json, known.emplace());
    }
    void hex(std::string_view key, std::uint64_t& number) {
        std::string digits;
        value(key, digits);
        if (digits.empty()) return;
        const char* const end = digits.data() + digits.size();
        const auto parsed = std::from_chars(digits.data(), end, number, 16);
        require(parsed.ec == std::errc() && parsed.ptr == end);
    }
    void job(std::string_view key, std::uint32_t& number) {
        std::string digits;
        value(key, digits);
        if (!digits.empty()) number = job_of(digits);
    }
    void jobs(std::string_view key, std::vector<std::uint32_t>& numbers) {
        std::vector<std::string> all;
        value(key, all);
        for (const std::string& digits : all) numbers.push_back(job_of(digits));
    }
    void choice(std::string_view key, bool& chosen, std::string_view yes, std::string_view) {
        std::string text;
        value(key, text);
        chosen = text == yes;
    }
    void value_unless_empty(std::string_view key, std::string& text) { value(key, text); }
    template <class Counters, std::size_t count>
    void counters(const CounterFields<Counters, count>& fields, Counters& counters) {
        for (const auto& field : fields) value(field.name, field.in(counters));
    }
    template <class Name>
    void counts(std::span<std::uint64_t> counts, Name&& name) {
        for (std::size_t i = 0; i < counts.size(); ++i) value(name(i), counts[i]);
    }
    template <class Name>
    void texts_of(net::UdpReport& features, Name&& name) {
        for (std::size_t i = 0; i < net::feature_count; ++i) {
            std::string text;
            value(name(i), text);
            features.set(static_cast<net::Feature>(i), false, false, std::move(text));
        }
    }
    template <class Describe>
    void object(std::string_view key, Describe&& describe) {
        const Json* json = find(key);
        if (json == nullptr) return;
        ReportReader inner(*json);
        describe(inner);
    }
    template <class Described>
    void optional(std::string_view key, std::optional<Described>& described) {
        object(key, [&](ReportReader& inner) { describe(inner, described.emplace()); });
    }
    template <class Described>
    void list(std::string_view key, std::vector<Described>& list) {
        const Json* json = find(key);
        if (json == nullptr) return;
        require(json->is_array());
        for (const Json& element : *json) {
            ReportReader inner(element);
            describe(inner, list.emplace_back());
        }
    }
    // Called last: reads the keys that no other call has read.
    void parts(std::vector<ReportPart>& parts) {
        for (const auto& [key, value] : json_.items()) {
            if (std::ranges::find(asked_, key) == asked_.end()) parts.push_back({key, text_of(value)});
        }
    }

  private:
    static std::uint32_t job_of(std::string_view digits) {
        const auto job = wire::parse_job(digits);
        require(job.has_value());
        return *job;
    }
    const Json* find(std::string_view key) {
        asked_.emplace_back(key);
        const auto found = json_.find(asked_.back());
        return found == json_.end() ? nullptr : &*found;
    }

    const Json& json_;
    std::vector<std::string> asked_;
};

template <class Archive, class Described>
using Of = typename Archive::template Of<Described>;

template <class Archive>
void describe_packets(Archive& archive, Of<Archive, protocol::SwitchCounters> counters) {
    archive.object("packets", [&](Archive& inner) { inner.counters(protocol::switch_fields, counters); });
}

template <class Archive>
void describe(Archive& archive, Of<Archive, JobReport> job) {
    archive.job("job", job.job);
    describe_packets(archive, job.counters);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, SlowestChild> slowest) {
    archive.value_if_known("rank", slowest.rank);
    archive.value("unit", slowest.unit);
    archive.value("share_percent", slowest.share_percent);
    archive.value("last_percent", slowest.last_percent);
    archive.value("waited_permille", slowest.waited_permille);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, ChannelReport> channel) {
    archive.job("job", channel.job);
    archive.value("channel", channel.channel);
    archive.value("protocol", channel.protocol);
    archive.value("level", channel.level);
    archive.value("ready", channel.ready);
    archive.value("present", channel.present);
    archive.value("expected", channel.expected);
    archive.value("hosts_server", channel.hosts);
    archive.choice("results", channel.by_group, "multicast", "unicast");
    archive.optional("slowest", channel.slowest);
    archive.value_unless_empty("job_name", channel.job_name);
    archive.value_unless_empty("tenant", channel.tenant);
    if (!channel.hosts) return;
    archive.value("server_bytes", channel.server_bytes);
    archive.object("server", [&](Archive& inner) { inner.counters(protocol::server_fields, channel.server); });
}

template <class Archive>
void describe(Archive& archive, Of<Archive, TenantReport> tenant) {
    archive.value("name", tenant.name);
    archive.value_if_known("jobs", tenant.jobs);
    archive.value_if_known("channels", tenant.channels);
    archive.value_if_known("server_bytes", tenant.server_bytes);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, SliceReport> slice) {
    archive.value("tenant", slice.tenant);
    archive.value("aggregators", slice.aggregators);
    archive.value_if_known("held", slice.held);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, MarkReport> port) {
    archive.value("interface", port.interface);
    archive.value("link_rate", port.link_rate);
    archive.value("marked", port.marked);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, KernelReport> kernel) {
    archive.value("lanes", kernel.lanes);
    archive.value("level", kernel.level);
    archive.jobs("passing_jobs", kernel.passing_jobs);
    archive.value("without_release", kernel.without_release);
    archive.value("without_copies", kernel.without_copies);
    archive.counters(kernel_fields, kernel);
    archive.value("interfaces", kernel.interfaces);
    archive.list("marks", kernel.marks);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, ShardReport> shard) {
    archive.value("address", shard.address);
    archive.value("aggregators", shard.aggregators);
    describe_packets(archive, shard.packets);
    archive.object("refused", [&](Archive& inner) {
        inner.counts(shard.packets.refused, [](std::size_t i) { return to_string(static_cast<wire::DecodeError>(i)); });
    });
    archive.counters(shard_fields, shard.shard);
    archive.counters(control::tree_fields, shard.tree);
    archive.object("udp", [&](Archive& inner) { inner.counters(net::udp_fields, shard.udp); });
    archive.object("features", [&](Archive& inner) {
        inner.texts_of(shard.features, [](std::size_t i) { return to_string(static_cast<net::Feature>(i)); });
    });
    archive.list("jobs", shard.jobs);
    archive.list("channels", shard.channels);
    archive.list("slices", shard.slices);
    archive.optional("kernel", shard.kernel);
    archive.parts(shard.parts);
}

template <class Archive>
void describe(Archive& archive, Of<Archive, SwitchReport> report) {
    archive.value("software", report.software);
    archive.hex("id", report.id);
    archive.value("address", report.address);
    archive.value("uptime_s", report.uptime_s);
    archive.value("hellos", report.hellos);
    archive.value("memory_bytes", report.memory_bytes);
    archive.value("lanes", report.lanes);
    archive.value_unless_empty("parent", report.parent);
    if (!report.parent.empty()) archive.value("parent_answers", report.parent_answers);
    archive.value("draining", report.draining);
    archive.value("open", report.is_open);
    if (!report.is_open) archive.list("tenants", report.tenants);
    archive.list("shards", report.shards);
    archive.parts(report.parts);
}

// nullopt: the text is no JSON, nested deeper than any report, or has a key that no report has. The limit bounds the
// recursion when a part is written again. Texts may have control characters in JSON's escapes.
std::optional<Json> parse(std::string_view text) {
    constexpr int most_depth = 32;
    bool fits = true;
    Json json = Json::parse(
        text,
        [&](int depth, Json::parse_event_t event, Json& part) {
            fits = fits && depth <= most_depth;
            if (!part.is_string()) return fits;
            const auto& found = part.get_ref<const std::string&>();
            std::string clean = printable(found);
            if (event == Json::parse_event_t::key) fits = fits && clean == found;
            if (event == Json::parse_event_t::value) part = std::move(clean);
            return fits;
        },
        false);
    if (!fits || json.is_discarded()) return std::nullopt;
    return json;
}

}  // namespace

std::string to_json(const SwitchReport& report) {
    Json json;
    ReportWriter writer(json);
    describe(writer, report);
    return text_of(json);
}

std::optional<std::string> printable_report(std::string_view text) {
    const auto json = parse(text);
    return json ? std::optional(text_of(*json)) : std::nullopt;
}

std::optional<SwitchReport> read_switch_report(std::string_view text) {
    const auto json = parse(text);
    if (!json || !json->is_object() || !json->contains("shards")) return std::nullopt;
    try {
        SwitchReport report;
        ReportReader reader(*json);
        describe(reader, report);
        return report;
    } catch (const Malformed&) {
        return std::nullopt;
    }
}

void add_parts(std::string_view object, std::vector<ReportPart>& parts) {
    if (object.empty()) return;
    const Json json = Json::parse(object);
    for (const auto& [key, value] : json.items()) parts.push_back({key, text_of(value)});
}

const ShardReport* kernel_of(const SwitchReport& report) {
    const auto found = std::ranges::find_if(report.shards, [](const ShardReport& shard) { return !!shard.kernel; });
    return found == report.shards.end() ? nullptr : &*found;
}

std::uint64_t memory_of_kernel(const ShardReport& shard) {
    return shard.kernel ? shard.aggregators * protocol::aggregator_bytes(shard.kernel->lanes) : 0;
}

std::optional<double> emulated_loss(const SwitchReport& report) {
    const auto part = std::ranges::find(report.parts, "emulated_ports", &ReportPart::name);
    if (part == report.parts.end()) return std::nullopt;
    const Json json = Json::parse(part->json, nullptr, false);
    if (!json.is_object() || !json.contains("loss") || !json["loss"].is_number()) return 0;
    return json["loss"].get<double>();
}

std::vector<SliceReport> slices_in(const control::TableSlices& slices,
                                   const std::function<std::uint32_t(const control::JobKey&)>& held_by) {
    std::map<std::string_view, SliceReport> by_tenant;
    slices.for_each([&](const control::JobKey& job, std::string_view tenant, const atp_range& slice) {
        SliceReport& of_tenant = by_tenant[tenant];
        of_tenant.tenant = tenant;
        of_tenant.aggregators = slice.size;
        if (held_by) of_tenant.held = of_tenant.held.value_or(0) + held_by(job);
    });
    std::vector<SliceReport> reports;
    for (auto& [tenant, slice] : by_tenant) reports.push_back(std::move(slice));
    return reports;
}

}  // namespace atp::client
