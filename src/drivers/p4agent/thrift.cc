// SPDX-License-Identifier: Apache-2.0
#include "p4agent/thrift.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <utility>

namespace atp::p4agent {
namespace {

constexpr std::uint8_t type_stop = 0;
constexpr std::uint8_t type_flag = 2;
constexpr std::uint8_t type_number8 = 3;
constexpr std::uint8_t type_number64_float = 4;
constexpr std::uint8_t type_number16 = 6;
constexpr std::uint8_t type_number32 = 8;
constexpr std::uint8_t type_number64 = 10;
constexpr std::uint8_t type_text = 11;
constexpr std::uint8_t type_struct = 12;
constexpr std::uint8_t type_map = 13;
constexpr std::uint8_t type_set = 14;
constexpr std::uint8_t type_list = 15;
constexpr std::uint32_t version_1 = 0x80010000;
constexpr std::uint32_t message_call = 1;
constexpr std::uint32_t message_reply = 2;
constexpr std::size_t longest_text = std::size_t{64} << 20U;  // the program of the switch is a text in a reply
constexpr std::int64_t longest_list = 1 << 20;
constexpr unsigned deepest = 16;

void append(std::string& bytes, std::uint64_t value, unsigned size) {
    for (unsigned at = size; at-- > 0;) bytes += static_cast<char>(value >> (8 * at) & 0xFFU);
}

std::string number(std::uint64_t value, unsigned size) {
    std::string bytes;
    append(bytes, value, size);
    return bytes;
}

void append_text(std::string& bytes, std::string_view text) {
    append(bytes, text.size(), 4);
    bytes += text;
}

}  // namespace

const ThriftValue& ThriftValue::field(std::int16_t number_of_field) const {
    static const ThriftValue none;
    const auto found = fields.find(number_of_field);
    return found == fields.end() ? none : found->second;
}

ThriftArguments& ThriftArguments::add(std::uint8_t type, std::string_view value) {
    append(bytes_, type, 1);
    append(bytes_, static_cast<std::uint16_t>(++count_), 2);
    bytes_ += value;
    return *this;
}

ThriftArguments& ThriftArguments::flag(bool value) { return add(type_flag, number(value ? 1 : 0, 1)); }

ThriftArguments& ThriftArguments::number32(std::int32_t value) {
    return add(type_number32, number(static_cast<std::uint32_t>(value), 4));
}

ThriftArguments& ThriftArguments::number64(std::int64_t value) {
    return add(type_number64, number(static_cast<std::uint64_t>(value), 8));
}

ThriftArguments& ThriftArguments::text(std::string_view value) {
    return add(type_text, number(value.size(), 4) + std::string(value));
}

ThriftArguments& ThriftArguments::texts(const std::vector<std::string>& values) {
    std::string list = number(type_text, 1) + number(values.size(), 4);
    for (const std::string& value : values) append_text(list, value);
    return add(type_list, list);
}

ThriftArguments& ThriftArguments::exact_keys(const std::vector<std::string>& keys) {
    std::string list = number(type_struct, 1) + number(keys.size(), 4);
    for (const std::string& key : keys) {
        // Field 1 of a BmMatchParam is its kind, 0 for exact. Field 2 is the exact key, whose field 1 is its bytes.
        ThriftArguments exact;
        exact.text(key);
        ThriftArguments parameter;
        parameter.number32(0).add(type_struct, exact.bytes() + number(type_stop, 1));
        list += parameter.bytes() + number(type_stop, 1);
    }
    return add(type_list, list);
}

ThriftArguments& ThriftArguments::struct_of(std::int32_t field) {
    return add(type_struct, ThriftArguments().number32(field).bytes() + number(type_stop, 1));
}

ThriftArguments& ThriftArguments::empty_struct() { return add(type_struct, number(type_stop, 1)); }

Result<ThriftConnection> ThriftConnection::open(const wire::Address& server, Duration timeout) {
    net::Descriptor socket(::socket(server.data()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
    const timeval limit{.tv_sec = microseconds / 1'000'000, .tv_usec = microseconds % 1'000'000};
    const int on = 1;
    // SO_SNDTIMEO also limits connect().
    ::setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ::setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!socket.valid() || ::connect(socket.number(), server.data(), server.size()) != 0) {
        return fail(Operation::connect, Reason::unreachable, to_string(server),
                    // errors.md, starts, unreachable: `--p4` names it
                    "no Thrift server answers: start simple_switch with --thrift-port");
    }
    return ThriftConnection(std::move(socket), to_string(server));
}

bool ThriftConnection::send(std::string_view bytes) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

bool ThriftConnection::take(std::size_t count, std::string& bytes) {
    bytes.resize(count);
    for (std::size_t at = 0; at < count;) {
        const ssize_t received = ::recv(socket_.number(), bytes.data() + at, count - at, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received <= 0) return false;
        at += static_cast<std::size_t>(received);
    }
    return true;
}

// Reads a number and extends its sign.
bool ThriftConnection::take_number(std::size_t bytes, std::int64_t& number) {
    std::string text;
    if (!take(bytes, text)) return false;
    std::uint64_t value = (static_cast<unsigned char>(text.front()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (const char byte : text) value = value << 8U | static_cast<unsigned char>(byte);
    number = static_cast<std::int64_t>(value);
    return true;
}

bool ThriftConnection::take_fields(ThriftValue& value, unsigned depth) {
    for (;;) {
        std::int64_t type = 0;
        std::int64_t number = 0;
        if (!take_number(1, type)) return false;
        if (type == type_stop) return true;
        if (!take_number(2, number)) return false;
        ThriftValue& field = value.fields[static_cast<std::int16_t>(number)];
        if (!take_value(static_cast<std::uint8_t>(type), field, depth + 1)) return false;
    }
}

bool ThriftConnection::take_value(std::uint8_t type, ThriftValue& value, unsigned depth) {
    std::int64_t each = 0;
    std::int64_t of_key = 0;
    std::int64_t count = 0;
    if (depth > deepest) return false;
    switch (type) {
        case type_flag:
        case type_number8: return take_number(1, value.number);
        case type_number16: return take_number(2, value.number);
        case type_number32: return take_number(4, value.number);
        case type_number64_float:
        case type_number64: return take_number(8, value.number);
        case type_struct: return take_fields(value, depth);
        case type_text:
            return take_number(4, count) && count >= 0 && static_cast<std::size_t>(count) <= longest_text &&
                   take(static_cast<std::size_t>(count), value.text);
        case type_map:
            if (!take_number(1, of_key)) return false;
            [[fallthrough]];
        case type_set:
        case type_list: break;
        default: return false;
    }
    if (!take_number(1, each) || !take_number(4, count) || count < 0 || count > longest_list) return false;
    for (std::int64_t at = 0; at < count; ++at) {
        ThriftValue key;
        if (type == type_map && !take_value(static_cast<std::uint8_t>(of_key), key, depth + 1)) return false;
        if (!take_value(static_cast<std::uint8_t>(each), value.list.emplace_back(), depth + 1)) return false;
    }
    return true;
}

Result<ThriftValue> ThriftConnection::call(std::string_view service, std::string_view function,
                                           const ThriftArguments& arguments) {
    std::string message;
    append(message, version_1 | message_call, 4);
    append_text(message, std::string(service) + ":" + std::string(function));
    append(message, static_cast<std::uint32_t>(++calls_), 4);
    message += arguments.bytes();
    append(message, type_stop, 1);
    std::int64_t kind = 0;
    std::int64_t number = 0;
    ThriftValue name;
    ThriftValue reply;
    if (!send(message) || !take_number(4, kind) || !take_value(type_text, name, 0) || !take_number(4, number) ||
        number != calls_ || !take_fields(reply, 0)) {
        return fail(Operation::receive, Reason::closed, peer_, "the Thrift server does not answer any more");
    }
    // The result has number 0. Exceptions have other numbers, and a message of another kind is one of Thrift itself.
    const bool is_reply = (static_cast<std::uint64_t>(kind) & 0xFFU) == message_reply;
    if (!is_reply || (!reply.fields.empty() && !reply.fields.contains(0))) {
        return fail(Operation::configure, Reason::rejected, peer_,
                    // errors.md, starts, rejected
                    std::string(function) + " failed: does the switch still run a program of p4/?");
    }
    return reply.field(0);
}

}  // namespace atp::p4agent
