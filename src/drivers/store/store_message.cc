// SPDX-License-Identifier: Apache-2.0
#include "store/store_message.h"

#include <fmt/format.h>

#include <cassert>
#include <cstddef>
#include <span>

#include "store/store_table.h"
#include "wire/bytes.h"

namespace atp::store {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// A whole message: `fields` writes what follows the number, in `fields_bytes` bytes.
std::string message_of(auto kind_or_status, std::int64_t number, std::size_t fields_bytes, const auto& fields) {
    const std::size_t length = sizeof store_version + sizeof kind_or_status + sizeof number + fields_bytes;
    assert(length <= max_message_bytes);
    std::string message(length_bytes + length, '\0');
    wire::ByteWriter writer(std::as_writable_bytes(std::span(message)));
    writer.field(static_cast<std::uint32_t>(length));
    writer.field(store_version);
    writer.field(kind_or_status);
    writer.field(number);
    fields(writer);
    assert(writer.finish() == message.size());
    return message;
}

void write_bytes(wire::ByteWriter& writer, std::string_view bytes) {
    writer.field(static_cast<std::uint32_t>(bytes.size()));
    writer.field(bytes_of(bytes));
}

tl::unexpected<StoreRefusal> cut_short() {
    return refuse(StoreStatus::malformed, "the message is shorter than its fields");
}

// The version is the first field in every version, so a peer of another version can report the mismatch.
Outcome<std::uint8_t> take_version_and_next(wire::ByteReader& reader) {
    std::uint8_t version = 0;
    reader.field(version);
    if (!reader.ok()) return cut_short();
    if (version != store_version) {
        return refuse(StoreStatus::version_mismatch,
                      // errors.md, forms, version mismatch: two versions of ATP:
                      // [upgrade](../operate/upgrade.md#versions)
                      fmt::format("this host speaks version {} of the store protocol, the peer version {}: run the "
                                  "same version of atp on all ranks",
                                  store_version, version));
    }
    std::uint8_t next = 0;
    reader.field(next);
    if (!reader.ok()) return cut_short();
    return next;
}

// The fields of one kind of request.
struct Shape {
    std::size_t least_keys = 0;
    std::size_t most_keys = 0;
    bool number = false;
    bool value = false;
};

Shape shape_of(Kind kind) {
    switch (kind) {
        case Kind::hello: return {.number = true};
        case Kind::set: return {.least_keys = 1, .most_keys = 1, .value = true};
        case Kind::add: return {.least_keys = 1, .most_keys = 1, .number = true};
        case Kind::get:
        case Kind::wait:
        case Kind::missing: return {.least_keys = 1, .most_keys = max_keys_per_request};
        case Kind::remove: return {.least_keys = 1, .most_keys = 1};
        case Kind::cancel: return {};
    }
    return {};
}

Outcome<void> check_shape(const StoreRequest& request) {
    const Shape shape = shape_of(request.kind);
    const std::size_t keys = request.keys.size();
    const bool stranger = request.kind == Kind::hello && request.number != hello_number;
    if (stranger || keys < shape.least_keys || keys > shape.most_keys || (!shape.number && request.number != 0) ||
        (!shape.value && !request.value.empty())) {
        return refuse(StoreStatus::malformed,
                      fmt::format("the fields do not form a '{}' request", to_string(request.kind)));
    }
    return {};
}

// False: it is cut short.
bool take_bytes(wire::ByteReader& reader, std::string& bytes) {
    std::uint32_t size = 0;
    reader.field(size);
    if (!reader.ok() || size > reader.left()) return false;
    bytes.resize(size);
    reader.field(std::as_writable_bytes(std::span(bytes)));
    return true;
}

Outcome<void> take_keys(wire::ByteReader& reader, std::vector<std::string>& keys) {
    std::uint16_t count = 0;
    reader.field(count);
    if (!reader.ok()) return cut_short();
    if (count > max_keys_per_request) {
        return refuse(StoreStatus::too_large,
                      // errors.md, none: the client of this library sends no such request
                      fmt::format("{} keys in one request; use at most {}", count, max_keys_per_request));
    }
    keys.reserve(count);
    for (std::uint16_t at = 0; at < count; ++at) {
        reader.field(keys.emplace_back(), UINT16_MAX);
        if (!reader.ok()) return cut_short();
        if (auto checked = check_key(keys.back()); !checked) return checked;
    }
    return {};
}

}  // namespace

std::string_view to_string(Kind kind) {
    switch (kind) {
        case Kind::hello: return "hello";
        case Kind::set: return "set";
        case Kind::add: return "add";
        case Kind::get: return "get";
        case Kind::wait: return "wait";
        case Kind::missing: return "missing";
        case Kind::remove: return "remove";
        case Kind::cancel: return "cancel";
    }
    return "unknown";
}

std::string encode(const StoreRequest& request) {
    std::size_t bytes = sizeof(std::uint16_t) + sizeof(std::uint32_t) + request.value.size();
    for (const std::string& key : request.keys) bytes += sizeof(std::uint16_t) + key.size();
    return message_of(request.kind, request.number, bytes, [&](wire::ByteWriter& writer) {
        writer.field(static_cast<std::uint16_t>(request.keys.size()));
        for (const std::string& key : request.keys) writer.field(key, UINT16_MAX);
        write_bytes(writer, request.value);
    });
}

std::string encode(const Reply& reply) {
    std::size_t bytes = sizeof(std::uint16_t);
    for (const std::string& field : reply.fields) bytes += field_overhead_bytes + field.size();
    return message_of(reply.status, reply.number, bytes, [&](wire::ByteWriter& writer) {
        writer.field(static_cast<std::uint16_t>(reply.fields.size()));
        for (const std::string& field : reply.fields) write_bytes(writer, field);
    });
}

Outcome<StoreRequest> decode_request(std::string_view message) {
    wire::ByteReader reader(bytes_of(message));
    const auto kind = take_version_and_next(reader);
    if (!kind) return tl::unexpected<StoreRefusal>(kind.error());
    StoreRequest request;
    request.kind = static_cast<Kind>(*kind);
    if (to_string(request.kind) == "unknown") {
        return refuse(StoreStatus::malformed, fmt::format("{} is not a kind of request", *kind));
    }
    reader.field(request.number);
    if (!reader.ok()) return cut_short();
    if (const auto keys = take_keys(reader, request.keys); !keys) return tl::unexpected<StoreRefusal>(keys.error());
    if (!take_bytes(reader, request.value)) return cut_short();
    if (const auto checked = check_value(request.value); !checked) return tl::unexpected<StoreRefusal>(checked.error());
    if (reader.left() != 0) return refuse(StoreStatus::malformed, "the message is longer than its fields");
    if (const auto fits = check_shape(request); !fits) return tl::unexpected<StoreRefusal>(fits.error());
    return request;
}

Outcome<Reply> decode_reply(std::string_view message) {
    wire::ByteReader reader(bytes_of(message));
    const auto status = take_version_and_next(reader);
    if (!status) return tl::unexpected<StoreRefusal>(status.error());
    Reply reply;
    reply.status = static_cast<StoreStatus>(*status);
    if (reply.status < StoreStatus::done || reply.status > last_status) {
        return refuse(StoreStatus::malformed, fmt::format("{} is not a status of a reply", *status));
    }
    reader.field(reply.number);
    std::uint16_t count = 0;
    reader.field(count);
    if (!reader.ok()) return cut_short();
    for (std::uint16_t at = 0; at < count; ++at) {
        if (!take_bytes(reader, reply.fields.emplace_back())) return cut_short();
    }
    if (reader.left() != 0) return refuse(StoreStatus::malformed, "the message is longer than its fields");
    return reply;
}

void MessageReader::append(std::string_view bytes) {
    bytes_.erase(0, at_);
    at_ = 0;
    bytes_ += bytes;
}

Outcome<std::optional<std::string_view>> MessageReader::next() {
    const std::string_view rest = std::string_view(bytes_).substr(at_);
    if (rest.size() < length_bytes) return std::nullopt;
    const std::uint32_t length = wire::load_u32(bytes_of(rest).data());
    if (length > max_message_bytes) {
        return refuse(StoreStatus::too_large,
                      // errors.md, forms, too large: another program connected to the store, or sent to it
                      fmt::format("the message has {} bytes; the limit is {}", length, max_message_bytes));
    }
    if (rest.size() - length_bytes < length) return std::nullopt;
    at_ += length_bytes + length;
    return rest.substr(length_bytes, length);
}

}  // namespace atp::store
