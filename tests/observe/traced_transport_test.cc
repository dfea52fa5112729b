// SPDX-License-Identifier: Apache-2.0
#include "observe/traced_transport.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "net/udp_socket.h"
#include "udp_fixture.h"
#include "wire/control.h"

namespace atp::observe {
namespace {

std::unique_ptr<net::Transport> open_socket() { return test::open_or_fail(test::on_loopback(wire::Family::ipv4)); }

std::size_t write_leave(std::span<std::byte> room, unsigned job) {
    return wire::encode(wire::Leave{.job = job, .token = 0x5eed, .channel = 0}, room);
}

// Each line without its time, from "A>B".
std::vector<std::string> events_in(const std::string& path, const std::string& where) {
    std::ifstream file(path);
    std::vector<std::string> events;
    for (std::string text; std::getline(file, text);) {
        const auto line = wire::parse_trace_line(text);
        if (!line || line->where != where) continue;
        events.push_back(std::string(line->what) + ' ' + std::to_string(line->job().value_or(0)));
    }
    return events;
}

double time_of(const std::string& path, const std::string& what) {
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
        const auto line = wire::parse_trace_line(text);
        if (line && line->what == what) return line->time_us;
    }
    return 0;
}

TEST(TracedTransport, PacketsInBothDirectionsAreTracedWithBothAddresses) {
    const std::string path =
        std::filesystem::temp_directory_path() / ("atp-traced-transport-" + std::to_string(getpid()));
    auto file = TraceFile::open({.path = path}, nullptr);
    ASSERT_TRUE(file) << to_string(file.error());
    wire::TraceSink* events = nullptr;
    const auto one = trace_transport(open_socket(), *file, &events);
    const auto two = trace_transport(open_socket(), *file);

    const auto room = one->reserve(256);
    one->commit(write_leave(room, 1), two->local(), wire::Ecn::capable_0);
    ASSERT_TRUE(one->repeat(two->local()));
    std::array<std::byte, 256> borrowed{};
    ASSERT_TRUE(one->borrow(std::span(borrowed).first(write_leave(borrowed, 2)), two->local(), wire::Ecn::capable_0));
    one->flush();
    events->packet({}, "completed", std::span(borrowed).first(write_leave(borrowed, 3)), nullptr, false);
    std::array<wire::Datagram, 8> datagrams;
    for (std::size_t received = 0, tries = 0; received < 3 && tries < 5000; ++tries) {
        const auto count = two->receive(datagrams);
        ASSERT_TRUE(count);
        received += *count;
        if (*count == 0) usleep(1000);
    }
    (*file)->close();

    const std::string link = to_string(one->local()) + '>' + to_string(two->local());
    EXPECT_EQ(events_in(path, link),
              (std::vector<std::string>{"sent 1", "sent 1", "sent 2", "received 1", "received 1", "received 2"}));
    EXPECT_EQ(events_in(path, to_string(one->local())), std::vector<std::string>{"completed 3"});
    EXPECT_GT(time_of(path, "completed"), time_of(path, "sent")) << "it has the time of the call";
    std::filesystem::remove(path);
}

TEST(TracedTransport, ReportsAboutPacketsReachTheCaller) {
    auto file = TraceFile::open({.path = "/dev/null"}, nullptr);
    ASSERT_TRUE(file) << to_string(file.error());
    net::UdpConfig config = test::on_loopback(wire::Family::ipv4);
    config.reports_errors = true;
    const auto traced = trace_transport(test::open_or_fail(config), *file);
    const wire::Address closed = open_socket()->local();
    const auto room = traced->reserve(256);
    traced->commit(write_leave(room, 1), closed, wire::Ecn::capable_0);
    traced->flush();
    std::array<wire::SendError, 4> errors{};
    std::size_t count = 0;
    for (int tries = 0; count == 0 && tries < 5000; ++tries) {
        count = traced->take_errors(errors);
        if (count == 0) usleep(1000);
    }
    EXPECT_EQ(count, 1U) << "the host reports that no process has this port";
}

TEST(TracedTransport, CallsReachTheTransport) {
    auto file = TraceFile::open({.path = "/dev/null"}, nullptr);
    ASSERT_TRUE(file) << to_string(file.error());
    auto socket = open_socket();
    net::Transport& inner = *socket;
    const auto traced = trace_transport(std::move(socket), *file);
    EXPECT_EQ(traced->local(), inner.local());
    EXPECT_EQ(traced->descriptor(), inner.descriptor());
    EXPECT_EQ(&traced->report(), &inner.report());
    EXPECT_EQ(&traced->counters(), &inner.counters());
    EXPECT_EQ(traced->poll_timeout(), inner.poll_timeout());
    EXPECT_EQ(traced->reaches_groups(), inner.reaches_groups());
    EXPECT_EQ(traced->report_parts(), inner.report_parts());
    const auto room = traced->reserve(64);
    traced->commit(write_leave(room, 1), inner.local(), wire::Ecn::capable_0);
    EXPECT_EQ(traced->waiting(), 1U);
    EXPECT_EQ(inner.waiting(), 1U);
}

}  // namespace
}  // namespace atp::observe
