// SPDX-License-Identifier: Apache-2.0
#include "fake_thrift.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

namespace atp::p4agent {
namespace {

std::string number(std::uint64_t value, unsigned bytes) {
    std::string text;
    for (unsigned at = bytes; at-- > 0;) text += static_cast<char>(value >> (8 * at) & 0xFFU);
    return text;
}

std::string field(unsigned type, unsigned id, const std::string& value) {
    return number(type, 1) + number(id, 2) + value;
}

std::string text_of(std::string_view value) { return number(value.size(), 4) + std::string(value); }

std::uint32_t number_in(const std::string& bytes, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(bytes.at(at + i));
    return value;
}

bool has_input(int descriptor) {
    pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 20) > 0;
}

}  // namespace

std::string reply_number32(std::int32_t value) { return field(8, 0, number(static_cast<std::uint32_t>(value), 4)); }
std::string reply_number64(std::int64_t value) { return field(10, 0, number(static_cast<std::uint64_t>(value), 8)); }
std::string reply_text(std::string_view value) { return field(11, 0, text_of(value)); }
std::string reply_list64(const std::vector<std::int64_t>& values) {
    std::string list = number(10, 1) + number(values.size(), 4);
    for (const std::int64_t value : values) list += number(static_cast<std::uint64_t>(value), 8);
    return field(15, 0, list);
}
std::string reply_counter(std::int64_t packets) {
    return field(
        12, 0,
        field(10, 1, number(0, 8)) + field(10, 2, number(static_cast<std::uint64_t>(packets), 8)) + number(0, 1));
}
std::string reply_ports(const std::vector<std::string>& names) {
    std::string list = number(12, 1) + number(names.size(), 4);
    for (std::size_t port = 0; port < names.size(); ++port) {
        const std::string no_extra = number(11, 1) + number(11, 1) + number(0, 4);
        list += field(8, 1, number(port, 4)) + field(11, 2, text_of(names[port])) + field(2, 3, number(1, 1)) +
                field(13, 4, no_extra) + number(0, 1);
    }
    return field(15, 0, list);
}
std::string reply_exception() { return field(12, 1, field(8, 1, number(3, 4)) + number(0, 1)); }

FakeThrift::FakeThrift() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in local{};
    local.sin_family = AF_INET;
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::bind(listener_.number(), reinterpret_cast<const sockaddr*>(&local), sizeof local);
    (void)::listen(listener_.number(), 4);
    thread_ = std::thread([this] { run(); });
}

FakeThrift::~FakeThrift() {
    stopping_ = true;
    thread_.join();
}

wire::Address FakeThrift::address() const {
    sockaddr_in local{};
    socklen_t size = sizeof local;
    (void)::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&local), &size);
    return wire::Address::from(reinterpret_cast<const sockaddr*>(&local), size);
}

void FakeThrift::answer(const std::string& function, std::string fields) {
    const std::scoped_lock lock(mutex_);
    answers_[function] = std::move(fields);
}

std::vector<std::string> FakeThrift::calls(const std::string& function) const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> found;
    for (const auto& [name, arguments] : calls_) {
        if (name == function) found.push_back(arguments);
    }
    return found;
}

void FakeThrift::run() {
    while (!stopping_) {
        if (!has_input(listener_.number())) continue;
        const net::Descriptor client(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
        serve(client.number());
    }
}

void FakeThrift::serve(int client) {
    std::array<char, 65'536> buffer;
    while (!stopping_) {
        if (!has_input(client)) continue;
        const ssize_t size = ::recv(client, buffer.data(), buffer.size(), 0);
        if (size <= 0 || closing_) return;
        const std::string call(buffer.data(), static_cast<std::size_t>(size));
        const std::size_t length = number_in(call, 4);
        const std::string name = call.substr(8, length);
        const std::string sequence = call.substr(8 + length, 4);
        std::string reply = number(0x80010002, 4) + text_of(name.substr(name.find(':') + 1)) + sequence;
        {
            const std::scoped_lock lock(mutex_);
            calls_.emplace_back(name, call.substr(12 + length));
            if (const auto found = answers_.find(name); found != answers_.end()) reply += found->second;
        }
        reply += number(0, 1);
        (void)::send(client, reply.data(), reply.size(), MSG_NOSIGNAL);
    }
}

}  // namespace atp::p4agent
