// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes, with a TCP store, and that end without a LEAVE. They sum in a switch;
// tests/python/test_host_level.py kills ranks that sum in shared memory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>

#include "fabric.h"
#include "net/clock.h"
#include "net/resolve.h"
#include "store/tcp_store.h"
#include "store/tcp_store_server.h"
#include "values.h"

namespace atp::test {
namespace {

constexpr std::uint32_t processes = 3;
constexpr std::size_t elements = 5000;

Result<std::unique_ptr<comm::Communicator>> form(const std::string& store_address, std::uint32_t rank,
                                                 const std::string& switch_address) {
    const auto address = net::resolve(store_address);
    if (!address) return tl::unexpected(address.error());
    auto store = store::TcpStore::connect(address->front(), net::now() + longest_wait);
    if (!store) return tl::unexpected(store.error());
    comm::Options options = small_options();
    options.switch_address = switch_address;
    return comm::Communicator::form(**store, rank, processes, options);
}

// Process of the last rank: sums until it is killed or an operation fails.
[[noreturn]] void be_a_rank(int addresses) {
    std::array<char, 256> text{};
    if (read(addresses, text.data(), text.size() - 1) <= 0) _exit(1);
    const std::string both(text.data());
    const std::size_t space = both.find(' ');
    const auto formed = form(both.substr(0, space), processes - 1, both.substr(space + 1));
    if (!formed) _exit(2);
    for (std::uint32_t round = 0;; ++round) {
        Bytes values = tensor_of(numeric::ElementType::float32, processes - 1, elements, round);
        const auto work = (*formed)->all_reduce({values.data(), values.data(), elements}, numeric::ElementType::float32,
                                                comm::Reduction::sum);
        if (!work || !(*work)->wait()) _exit(3);
    }
}

TEST(KilledProcesses, AreNamedByTheOthers) {
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    // Fork before this process has any other thread.
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) be_a_rank(pipe_ends[0]);

    switchd::SwitchNodeConfig config = small_switch();
    config.hold = std::chrono::seconds(2);
    const auto node = start(config);
    auto store = store::TcpStoreServer::start(wire::Address::loopback(wire::Family::ipv4, 0));
    ASSERT_TRUE(store);
    const std::string store_address = to_string((*store)->local());
    const std::string both = store_address + " " + address_of(*node);
    EXPECT_EQ(write(pipe_ends[1], both.data(), both.size()), static_cast<ssize_t>(both.size()));

    std::atomic<std::uint32_t> rounds{0};
    each(processes - 1, [&](std::uint32_t rank) {
        const auto formed = form(store_address, rank, address_of(*node));
        if (!formed) {
            kill(child, SIGKILL);
            FAIL() << to_string(formed.error());
        }
        for (std::uint32_t round = 0;; ++round) {
            Bytes values = tensor_of(numeric::ElementType::float32, rank, elements, round);
            const auto work = (*formed)->all_reduce({values.data(), values.data(), elements},
                                                    numeric::ElementType::float32, comm::Reduction::sum);
            ASSERT_TRUE(work) << to_string(work.error());
            if (const auto done = (*work)->wait(); !done) {
                EXPECT_EQ(done.error().operation, Operation::all_reduce);
                EXPECT_EQ(done.error().reason, Reason::refused) << "not by the deadline";
                EXPECT_TRUE(says(done.error(), "rank 2"));
                break;
            }
            EXPECT_EQ(difference(
                          sum_of_ranks(numeric::ElementType::float32, comm::Reduction::sum, processes, elements, round),
                          values, 4),
                      "");
            if (++rounds == 20) kill(child, SIGKILL);
        }
    });
    EXPECT_GE(rounds, 20U);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself with status " << WEXITSTATUS(status);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

}  // namespace
}  // namespace atp::test
