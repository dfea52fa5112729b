// SPDX-License-Identifier: Apache-2.0
#include "store/store_message.h"

#include <fmt/format.h>

#include <cassert>
#include <concepts>
#include <utility>

#include "store/store_table.h"

namespace atp::store {
namespace {

template <std::unsigned_integral Number>
void put(std::string& to, Number number) {
    for (std::size_t shift = sizeof(Number) * 8; shift > 0;) {
        shift -= 8;
        to.push_back(static_cast<char>(static_cast<std::uint8_t>(std::uint64_t{number} >> shift)));
    }
}

template <std::unsigned_integral Length>
void put_bytes(std::string& to, std::string_view bytes) {
    put(to, static_cast<Length>(bytes.size()));
    to += bytes;
}

// The beginning of a message; seal() writes its length when it is complete.
std::string begin(std::uint8_t kind_or_status, std::int64_t number) {
    std::string message;
    put(message, std::uint32_t{0});
    put(message, store_version);
    put(message, kind_or_status);
    put(message, static_cast<std::uint64_t>(number));
    return message;
}

std::string seal(std::string message) {
    std::string length;
    put(length, static_cast<std::uint32_t>(message.size() - length_bytes));
    assert(message.size() - length_bytes <= max_message_bytes);
    message.replace(0, length_bytes, length);
    return message;
}

// Reads from the front of a message. take() returns false if too few bytes are left.
class Cursor {
  public:
    explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

    template <std::unsigned_integral Number>
    [[nodiscard]] bool take(Number& number) {
        if (bytes_.size() < sizeof(Number)) return false;
        std::uint64_t value = 0;
        for (std::size_t at = 0; at < sizeof(Number); ++at) {
            value = value << 8U | static_cast<std::uint8_t>(bytes_[at]);
        }
        number = static_cast<Number>(value);
        bytes_.remove_prefix(sizeof(Number));
        return true;
    }
    [[nodiscard]] bool take(std::int64_t& number) {
        std::uint64_t bits = 0;
        if (!take(bits)) return false;
        number = static_cast<std::int64_t>(bits);
        return true;
    }
    template <std::unsigned_integral Length>
    [[nodiscard]] bool take_bytes(std::string_view& bytes) {
        Length length = 0;
        if (!take(length) || bytes_.size() < length) return false;
        bytes = bytes_.substr(0, length);
        bytes_.remove_prefix(length);
        return true;
    }
    [[nodiscard]] bool empty() const { return bytes_.empty(); }

  private:
    std::string_view bytes_;
};

tl::unexpected<StoreRefusal> cut_short() {
    return refuse(StoreStatus::malformed, "the message is shorter than its fields");
}

// The version is the first field in every version, so a peer of another version can report the mismatch.
Outcome<std::uint8_t> take_version_and_next(Cursor& cursor) {
    std::uint8_t version = 0;
    std::uint8_t next = 0;
    if (!cursor.take(version)) return cut_short();
    if (version != store_version) {
        return refuse(StoreStatus::version_mismatch,
                      fmt::format("this host speaks version {} of the store protocol, the peer version {}: run the "
                                  "same version of atp on all ranks",
                                  store_version, version));
    }
    if (!cursor.take(next)) return cut_short();
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

Outcome<void> take_keys(Cursor& cursor, std::vector<std::string>& keys) {
    std::uint16_t count = 0;
    if (!cursor.take(count)) return cut_short();
    if (count > max_keys_per_request) {
        return refuse(StoreStatus::too_large,
                      fmt::format("{} keys in one request; use at most {}", count, max_keys_per_request));
    }
    keys.reserve(count);
    for (std::uint16_t at = 0; at < count; ++at) {
        std::string_view key;
        if (!cursor.take_bytes<std::uint16_t>(key)) return cut_short();
        if (auto checked = check_key(key); !checked) return checked;
        keys.emplace_back(key);
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
    std::string message = begin(static_cast<std::uint8_t>(request.kind), request.number);
    put(message, static_cast<std::uint16_t>(request.keys.size()));
    for (const std::string& key : request.keys) put_bytes<std::uint16_t>(message, key);
    put_bytes<std::uint32_t>(message, request.value);
    return seal(std::move(message));
}

std::string encode(const Reply& reply) {
    std::string message = begin(static_cast<std::uint8_t>(reply.status), reply.number);
    put(message, static_cast<std::uint16_t>(reply.fields.size()));
    for (const std::string& field : reply.fields) put_bytes<std::uint32_t>(message, field);
    return seal(std::move(message));
}

Outcome<StoreRequest> decode_request(std::string_view message) {
    Cursor cursor(message);
    const auto kind = take_version_and_next(cursor);
    if (!kind) return tl::unexpected<StoreRefusal>(kind.error());
    StoreRequest request;
    request.kind = static_cast<Kind>(*kind);
    if (to_string(request.kind) == "unknown") {
        return refuse(StoreStatus::malformed, fmt::format("{} is not a kind of request", *kind));
    }
    if (!cursor.take(request.number)) return cut_short();
    if (const auto keys = take_keys(cursor, request.keys); !keys) return tl::unexpected<StoreRefusal>(keys.error());
    std::string_view value;
    if (!cursor.take_bytes<std::uint32_t>(value)) return cut_short();
    if (const auto checked = check_value(value); !checked) return tl::unexpected<StoreRefusal>(checked.error());
    if (!cursor.empty()) return refuse(StoreStatus::malformed, "the message is longer than its fields");
    request.value = value;
    if (const auto fits = check_shape(request); !fits) return tl::unexpected<StoreRefusal>(fits.error());
    return request;
}

Outcome<Reply> decode_reply(std::string_view message) {
    Cursor cursor(message);
    const auto status = take_version_and_next(cursor);
    if (!status) return tl::unexpected<StoreRefusal>(status.error());
    Reply reply;
    reply.status = static_cast<StoreStatus>(*status);
    if (reply.status < StoreStatus::done || reply.status > last_status) {
        return refuse(StoreStatus::malformed, fmt::format("{} is not a status of a reply", *status));
    }
    std::uint16_t count = 0;
    if (!cursor.take(reply.number) || !cursor.take(count)) return cut_short();
    for (std::uint16_t at = 0; at < count; ++at) {
        std::string_view field;
        if (!cursor.take_bytes<std::uint32_t>(field)) return cut_short();
        reply.fields.emplace_back(field);
    }
    if (!cursor.empty()) return refuse(StoreStatus::malformed, "the message is longer than its fields");
    return reply;
}

void MessageReader::append(std::string_view bytes) {
    bytes_.erase(0, at_);
    at_ = 0;
    bytes_ += bytes;
}

Outcome<std::optional<std::string_view>> MessageReader::next() {
    const std::string_view rest = std::string_view(bytes_).substr(at_);
    std::uint32_t length = 0;
    if (!Cursor(rest).take(length)) return std::nullopt;
    if (length > max_message_bytes) {
        return refuse(StoreStatus::too_large,
                      fmt::format("the message has {} bytes; the limit is {}", length, max_message_bytes));
    }
    if (rest.size() - length_bytes < length) return std::nullopt;
    at_ += length_bytes + length;
    return rest.substr(length_bytes, length);
}

}  // namespace atp::store
