// SPDX-License-Identifier: Apache-2.0
// Sends one kind of message to a switch at a steady rate, as an attacker would, and prints what it achieved and cost.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/descriptor.h"
#include "wire/control.h"
#include "wire/joining_message.h"
#include "wire/packet.h"

namespace {

using namespace atp;  // NOLINT(google-build-using-namespace): a program of one file
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

std::atomic<bool> stopped = false;  // by SIGTERM

constexpr int exit_failed = 1;
constexpr int exit_unavailable = 77;
constexpr std::size_t batch_messages = 64;
constexpr std::size_t header_bytes = sizeof(iphdr) + sizeof(udphdr);
constexpr auto refresh = std::chrono::milliseconds(250);
constexpr auto probe_wait = std::chrono::seconds(1);

struct Options {
    std::string kind;
    std::string to;
    std::string forge;  // first address of a /16 from which messages seem to come; empty: from this host
    double rate = 20'000;
    double seconds = 5;
    std::uint32_t channels = 256;
    std::size_t bytes = 0;
};

// A number that never repeats within a run and looks random.
std::uint64_t scrambled(std::uint64_t number) {
    number *= 0x9E3779B97F4A7C15U;
    number ^= number >> 32U;
    return number * 0xD6E8FEB86659FD93U;
}

wire::Join join_of(std::uint32_t job, std::uint16_t channel, std::uint64_t cookie, std::uint32_t epoch) {
    wire::Join join;
    join.nonce = 0x1111;
    join.cookie = cookie;
    join.epoch = epoch;
    join.terms.job = job, join.terms.token = 77, join.terms.channel = channel;
    join.terms.lanes = 62, join.terms.window_log2 = 4, join.terms.aggregators = 16;
    join.terms.mask1 = 1, join.terms.scale = 1e8;
    join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
    return join;
}

template <class Message>
Bytes encoded(const Message& message, std::size_t padded_bytes = 0) {
    Bytes bytes(std::max<std::size_t>(2048, padded_bytes));
    bytes.resize(wire::encode(message, bytes, padded_bytes));
    return bytes;
}

Bytes gradient(std::uint64_t number) {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = 4;
    header.job = static_cast<std::uint32_t>(number);
    header.token = scrambled(number) | 1U;
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = header.bitmap1 = header.mask1 = 1;
    header.mask0 = 3;
    Bytes bytes(ATP_HEADER_BYTES + std::size_t{62} * ATP_LANE_BYTES);
    wire::encode_header(header, bytes);
    return bytes;
}

using Maker = std::function<Bytes(std::uint64_t number, std::uint64_t cookie)>;

std::map<std::string, Maker> makers(const Options& options) {
    const auto job = [](std::uint64_t number) { return static_cast<std::uint32_t>(scrambled(number)); };
    const std::size_t question = std::max(options.bytes, wire::least_question_bytes);
    return {
        {"join", [=](std::uint64_t number,
                     std::uint64_t cookie) { return encoded(join_of(job(number), 0, cookie, 1), question); }},
        {"hello", [=](std::uint64_t number, std::uint64_t) { return encoded(wire::Hello{.nonce = number}, question); }},
        {"stats", [](std::uint64_t number,
                     std::uint64_t cookie) { return encoded(wire::Stats{.nonce = number, .cookie = cookie}); }},
        {"leave",
         [=](std::uint64_t number, std::uint64_t) {
             return encoded(wire::Leave{.nonce = number, .job = job(number), .token = 77, .epoch = 9});
         }},
        {"joined",
         [=](std::uint64_t number, std::uint64_t) {
             return encoded(wire::Joined{.nonce = number, .job = job(number), .token = 77, .ready = true});
         }},
        {"refused",
         [=](std::uint64_t number, std::uint64_t) {
             return encoded(wire::Refused{
                 .nonce = number, .job = job(number), .token = 77, .reason = wire::Refusal::full, .text = "no"});
         }},
        {"retry",
         [=](std::uint64_t number, std::uint64_t) {
             return encoded(wire::Retry{.nonce = number, .job = job(number), .token = 77, .cookie = number + 1});
         }},
        {"gradient", [](std::uint64_t number, std::uint64_t) { return gradient(number); }},
    };
}

int failed(const std::string& what) {
    const int code = errno;
    fmt::print(stderr, "flood: {}: {}\n", what, std::strerror(code));  // NOLINT(concurrency-mt-unsafe): one thread
    return code == EPERM ? exit_unavailable : exit_failed;
}

// Sends batches. A forging sender writes IP headers itself.
class Sender {
  public:
    Sender(const sockaddr_in& to, const Options& options)
        : to_(to),
          forges_(!options.forge.empty()),
          socket_(::socket(AF_INET, SOCK_CLOEXEC | (forges_ ? SOCK_RAW : SOCK_DGRAM), forges_ ? IPPROTO_RAW : 0)) {
        if (forges_) ::inet_pton(AF_INET, options.forge.c_str(), &first_);
        const int room = 1 << 22;
        ::setsockopt(socket_.number(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        // Answers are not read: a short buffer keeps them cheap.
        const int none = 1;
        if (forges_) ::setsockopt(socket_.number(), SOL_SOCKET, SO_RCVBUF, &none, sizeof none);
        // What fails here fails again when it sends.
        if (!forges_) {
            static_cast<void>(::connect(socket_.number(), reinterpret_cast<const sockaddr*>(&to_), sizeof to_));
        }
    }

    [[nodiscard]] bool valid() const { return socket_.valid(); }
    [[nodiscard]] int descriptor() const { return socket_.number(); }
    // The messages that the kernel took.
    std::size_t send(const std::vector<Bytes>& messages) {
        std::array<mmsghdr, batch_messages> batch{};
        std::array<iovec, batch_messages> parts{};
        frames_.resize(messages.size());
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const Bytes& bytes = forges_ ? frame(frames_[i], messages[i]) : messages[i];
            parts[i] = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
            batch[i].msg_hdr.msg_iov = &parts[i];
            batch[i].msg_hdr.msg_iovlen = 1;
            if (!forges_) continue;
            batch[i].msg_hdr.msg_name = &to_;
            batch[i].msg_hdr.msg_namelen = sizeof to_;
        }
        const int sent = ::sendmmsg(socket_.number(), batch.data(), static_cast<unsigned>(messages.size()), 0);
        return sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }
    template <class Message>
    std::optional<Message> answer_to(const Bytes& question, std::chrono::milliseconds longest) {
        ::send(socket_.number(), question.data(), question.size(), 0);
        pollfd waiting{.fd = socket_.number(), .events = POLLIN, .revents = 0};
        Bytes bytes(65'535);
        while (::poll(&waiting, 1, static_cast<int>(longest.count())) > 0) {
            const auto size = ::recv(socket_.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (size < 0) break;
            const std::span<std::byte> answer(bytes.data(), static_cast<std::size_t>(size));
            if (auto message = wire::decode<Message>(answer)) return message;
        }
        return std::nullopt;
    }
    void drop_answers() {
        std::array<std::byte, 2048> bytes{};
        for (int i = 0; i < 4096 && ::recv(socket_.number(), bytes.data(), bytes.size(), MSG_DONTWAIT) >= 0; ++i) {
        }
    }

  private:
    const Bytes& frame(Bytes& bytes, const Bytes& message) {
        const std::uint64_t number = ++frames_sent_;
        iphdr ip{};
        ip.version = 4, ip.ihl = 5, ip.ttl = 8, ip.protocol = IPPROTO_UDP;
        ip.tot_len = htons(static_cast<std::uint16_t>(header_bytes + message.size()));
        // The kernel fills in the checksum of the IP header; UDP may go without one.
        ip.saddr = first_.s_addr | htonl(static_cast<std::uint32_t>(scrambled(number) % 65'000 + 1));
        ip.daddr = to_.sin_addr.s_addr;
        udphdr udp{};
        udp.source = htons(static_cast<std::uint16_t>(1024 + number % 60'000));
        udp.dest = to_.sin_port;
        udp.len = htons(static_cast<std::uint16_t>(sizeof udp + message.size()));
        bytes.resize(header_bytes + message.size());
        std::memcpy(bytes.data(), &ip, sizeof ip);
        std::memcpy(bytes.data() + sizeof ip, &udp, sizeof udp);
        std::memcpy(bytes.data() + header_bytes, message.data(), message.size());
        return bytes;
    }

    sockaddr_in to_;
    bool forges_;
    in_addr first_{};
    net::Descriptor socket_;
    std::vector<Bytes> frames_;
    std::uint64_t frames_sent_ = 0;
};

double seconds_of_cpu() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

int flood(const Options& options, Sender& sender, const Maker& make, std::uint64_t cookie) {
    // Made beforehand: making a message costs more than sending it.
    std::vector<std::vector<Bytes>> batches(64);
    std::uint64_t number = 0;
    for (auto& batch : batches) {
        for (std::size_t i = 0; i < batch_messages; ++i) batch.push_back(make(++number, cookie));
    }
    const double before = seconds_of_cpu();
    const auto begin = Clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    std::uint64_t sent = 0;
    for (std::size_t turn = 0; !stopped && elapsed() < options.seconds; ++turn) {
        while (static_cast<double>(sent) > elapsed() * options.rate)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        sent += sender.send(batches[turn % batches.size()]);
        if (turn % 16 == 0) sender.drop_answers();
    }
    const double took = elapsed();
    fmt::print(R"({{"kind":"{}","sent":{},"seconds":{:.3f},"rate":{:.0f},"busy":{:.3f}}})"
               "\n",
               options.kind, sent, took, static_cast<double>(sent) / took, (seconds_of_cpu() - before) / took);
    return 0;
}

std::optional<std::uint64_t> cookie_for(Sender& sender, const Bytes& question) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        const auto retry = sender.answer_to<wire::Retry>(question, std::chrono::milliseconds(200));
        if (retry) return retry->cookie;
    }
    return std::nullopt;
}

// Joins as the first of two ranks in many channels, and stays.
int hold(const Options& options, Sender& sender) {
    const auto cookie = cookie_for(sender, encoded(join_of(0, 0, 0, 1), wire::least_question_bytes));
    if (!cookie) return failed("no RETRY from " + options.to);
    const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
    for (std::uint32_t epoch = 1; Clock::now() < end; ++epoch) {
        for (std::uint32_t channel = 0; channel < options.channels; ++channel) {
            const std::uint32_t job = 1 + channel / 8;
            sender.send({encoded(join_of(job, static_cast<std::uint16_t>(channel % 8), *cookie, epoch),
                                 wire::least_question_bytes)});
            if (channel % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        sender.drop_answers();
        std::this_thread::sleep_for(refresh);
    }
    return 0;
}

// Round trips of HELLOs.
int probe(const Options& options, Sender& sender) {
    std::vector<double> round_trips;
    std::uint64_t lost = 0;
    const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
    for (std::uint64_t nonce = 1; Clock::now() < end; ++nonce) {
        const auto begin = Clock::now();
        const Bytes question = encoded(wire::Hello{.nonce = nonce}, wire::least_question_bytes);
        if (sender.answer_to<wire::Welcome>(question, probe_wait)) {
            round_trips.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
        } else {
            ++lost;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (round_trips.empty()) return failed("no WELCOME from " + options.to);
    std::ranges::sort(round_trips);
    const auto share = [&](double part) {
        return round_trips[static_cast<std::size_t>(part * static_cast<double>(round_trips.size() - 1))];
    };
    fmt::print(R"({{"kind":"probe","answers":{},"lost":{},"median_ms":{:.3f},"p95_ms":{:.3f},"longest_ms":{:.3f}}})"
               "\n",
               round_trips.size(), lost, share(0.5), share(0.95), share(1));
    return 0;
}

std::optional<sockaddr_in> address_of(const std::string& text) {
    const auto colon = text.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (colon == std::string::npos || ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1)
        return std::nullopt;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1))));
    return address;
}

int run(const Options& options) {
    const auto to = address_of(options.to);
    if (!to) return failed("not an IPv4 address with a port: " + options.to);
    Sender sender(*to, options);
    if (!sender.valid()) return failed("a socket");
    if (options.kind == "hold") return hold(options, sender);
    if (options.kind == "probe") return probe(options, sender);
    auto all = makers(options);
    const bool proven = options.kind.ends_with("-cookie");
    const std::string kind = proven ? options.kind.substr(0, options.kind.size() - 7) : options.kind;
    if (!all.contains(kind)) return failed("unknown kind " + kind);
    std::optional<std::uint64_t> cookie = 0;
    if (proven) cookie = cookie_for(sender, all[kind](1, 0));
    if (!cookie) return failed("no RETRY from " + options.to);
    return flood(options, sender, all[kind], *cookie);
}

}  // namespace

int main(int count, char** words) {
    Options options;
    CLI::App program(
        "Send messages to a switch as an attacker would, or open channels (hold), or time HELLOs (probe).");
    program
        .add_option(
            "kind", options.kind,
            "join, join-cookie, hello, stats, stats-cookie, leave, joined, refused, retry, gradient, hold or probe")
        ->required();
    program.add_option("to", options.to, "IPv4 address and port of the switch")->required();
    program.add_option("--rate", options.rate, "messages per second")->capture_default_str();
    program.add_option("--seconds", options.seconds, "duration")->capture_default_str();
    program.add_option("--forge", options.forge, "forge source addresses of the /16 that begins here; needs root");
    program.add_option("--channels", options.channels, "channels to open (hold)")->capture_default_str();
    program.add_option("--bytes", options.bytes, "least length of a question (join, hello)")->capture_default_str();
    CLI11_PARSE(program, count, words);
    std::signal(SIGTERM, [](int) { stopped = true; });
    return run(options);
}
