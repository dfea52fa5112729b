// SPDX-License-Identifier: Apache-2.0
#include "p4agent/control_port.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wire/bytes.h"

namespace atp::p4agent {
namespace {

constexpr std::size_t longest_frame = 65'536;
constexpr std::size_t ip_at = 14;
constexpr std::size_t udp_at = ip_at + 20;
constexpr std::size_t payload_at = udp_at + 8;
constexpr std::size_t source_at = ip_at + 12;
constexpr std::size_t destination_at = ip_at + 16;
constexpr unsigned frames_at_once = 64;

wire::Address address_at(std::span<const std::byte> frame, std::size_t host_at, std::size_t port_at) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, &frame[host_at], sizeof address.sin_addr);
    std::memcpy(&address.sin_port, &frame[port_at], sizeof address.sin_port);
    return wire::Address::from(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace

std::optional<control::PassingMessage> message_of(std::span<const std::byte> frame, std::uint16_t port) {
    if (frame.size() < payload_at || wire::load_u16(&frame[12]) != ETHERTYPE_IP) return std::nullopt;
    const bool is_plain = wire::load_u8(&frame[ip_at]) == 0x45 && (wire::load_u16(&frame[ip_at + 6]) & 0x3FFFU) == 0;
    if (!is_plain || wire::load_u8(&frame[ip_at + 9]) != IPPROTO_UDP) return std::nullopt;
    if (wire::load_u16(&frame[udp_at]) != port && wire::load_u16(&frame[udp_at + 2]) != port) return std::nullopt;
    const std::size_t bytes = wire::load_u16(&frame[udp_at + 4]);
    if (bytes < payload_at - udp_at || udp_at + bytes > frame.size()) return std::nullopt;
    return control::PassingMessage{.bytes = frame.subspan(payload_at, bytes - (payload_at - udp_at)),
                                   .from = address_at(frame, source_at, udp_at),
                                   .to = address_at(frame, destination_at, udp_at + 2)};
}

Result<ControlPort> ControlPort::open(const std::string& device, std::uint16_t port) {
    const auto refused = [&device](const char* what) {
        return fail(Operation::open, errno == EPERM ? Reason::denied : Reason::unsupported, device, what);
    };
    const unsigned index = ::if_nametoindex(device.c_str());
    // errors.md, starts, unsupported: `--p4-control` names it
    if (index == 0) return refused("no such interface: name the one at which simple_switch delivers control messages");
    net::Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP)));
    // errors.md, starts, denied
    if (!socket.valid()) return refused("no packet socket: run as root");
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_IP);
    address.sll_ifindex = static_cast<int>(index);
    if (::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return refused("the packet socket cannot be bound");
    return ControlPort(std::move(socket), port);
}

void ControlPort::read(std::chrono::milliseconds at_most, const Visit& visit) {
    pollfd waiting{.fd = socket_.number(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(at_most.count())) <= 0) return;
    std::array<std::byte, longest_frame> frame;
    for (unsigned count = 0; count < frames_at_once; ++count) {
        const ssize_t size = ::recv(socket_.number(), frame.data(), frame.size(), 0);
        if (size <= 0) return;
        if (const auto message = message_of(std::span(frame).first(static_cast<std::size_t>(size)), port_))
            visit(*message);
    }
}

}  // namespace atp::p4agent
