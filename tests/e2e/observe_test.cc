// SPDX-License-Identifier: Apache-2.0
// The log of a switch and of ranks, event by event, on real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fabric.h"
#include "net/clock.h"
#include "net/udp_socket.h"
#include "observe/log.h"
#include "wire/control.h"

namespace atp::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Lines of one log, which several threads write.
class LogOfNode {
  public:
    [[nodiscard]] std::shared_ptr<observe::Log> open() {
        return std::make_shared<observe::Log>(
            observe::LogConfig{.level = observe::Severity::debug,
                               .receiver = [this](observe::Severity, std::string_view line) { add(line); }});
    }
    void add(std::string_view line) {
        const std::scoped_lock lock(mutex_);
        lines_.emplace_back(line);
    }
    // The first line that begins so; empty: none.
    [[nodiscard]] std::string line(std::string_view begin) const {
        const std::scoped_lock lock(mutex_);
        const auto found =
            std::ranges::find_if(lines_, [&](const std::string& line) { return line.starts_with(begin); });
        return found == lines_.end() ? std::string() : *found;
    }
    // Lines of this rank that begin so.
    [[nodiscard]] std::ptrdiff_t count(std::string_view begin, std::uint32_t rank) const {
        const std::string of_rank = " rank=" + std::to_string(rank);
        const std::scoped_lock lock(mutex_);
        return std::ranges::count_if(lines_, [&](const std::string& line) {
            return line.starts_with(begin) && line.find(of_rank) != std::string::npos;
        });
    }
    [[nodiscard]] bool shows(std::string_view begin) const {
        return eventually([&] { return !line(begin).empty(); });
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

// A worker that joins once and is then silent.
class SilentWorker {
  public:
    void join(std::uint32_t job, const wire::Address& to) {
        wire::Join join;
        join.terms.job = job, join.terms.token = 0x5eed;
        join.terms.lanes = small_lanes, join.terms.window_log2 = 4, join.terms.aggregators = 16;
        join.terms.mask1 = 1, join.terms.scale = 1e8;
        join.units = {{.unit = 0, .members = 1, .mask0 = 3, .direct = false, .ranks = {0}}};
        join.epoch = 1;
        send(join, to);
        std::array<wire::Datagram, 1> datagrams;
        const bool asked_again = eventually([&] {
            const auto count = socket_->receive(datagrams);
            return count && *count == 1;
        });
        ASSERT_TRUE(asked_again);
        const auto retry = wire::decode<wire::Retry>(datagrams[0].bytes);
        ASSERT_TRUE(retry);
        join.cookie = retry->cookie;
        send(join, to);
    }
    [[nodiscard]] std::string address() const { return to_string(socket_->local()); }

  private:
    void send(const wire::Join& join, const wire::Address& to) {
        const auto room = socket_->reserve(1024);
        socket_->commit(wire::encode(join, room, wire::least_question_bytes), to, wire::Ecn::not_capable);
        socket_->flush();
    }

    std::unique_ptr<net::UdpSocket> socket_ =
        *net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
};

TEST(SwitchLog, JobThatRunsIsFormedReadyAndLeftWithItsMembers) {
    LogOfNode log;
    auto config = small_switch();
    config.log = log.open();
    const auto node = start(config);
    Job(2, {address_of(*node)}).run([](comm::Communicator& communicator) { succeeds(communicator.barrier()); });
    EXPECT_TRUE(log.shows("job left job="));
    EXPECT_THAT(log.line("job formed job="), HasSubstr(" channel=0 level=0 address=127.0.0.1:"));
    EXPECT_THAT(log.line("job ready job="), HasSubstr(" channel=0 members=2"));
    EXPECT_THAT(log.line("member joined job="), HasSubstr(" address=127.0.0.1:"));
    EXPECT_THAT(log.line("member left job="), HasSubstr(" address=127.0.0.1:"));
    EXPECT_EQ(log.line("job failed"), "");
    EXPECT_EQ(log.line("member lost"), "");
}

TEST(SwitchLog, SilentMemberIsLostAndItsJobFails) {
    LogOfNode log;
    auto config = small_switch();
    config.hold = std::chrono::milliseconds(300);
    config.log = log.open();
    const auto node = start(config);
    SilentWorker worker;
    worker.join(7, node->address());
    EXPECT_TRUE(log.shows("job failed"));
    EXPECT_EQ(log.line("member lost"),
              "member lost job=00000007 channel=0 rank=0 address=" + worker.address() + " reason=silence");
    EXPECT_THAT(log.line("job failed"), StartsWith("job failed job=00000007 channel=0 address=" + worker.address() +
                                                   " reason=\"member 0 of unit 0 sent nothing for "));
}

TEST(SwitchLog, RefusedJobIsLoggedWithItsAddressAndReason) {
    LogOfNode log;
    auto config = small_switch();
    config.jobs = 1;
    config.log = log.open();
    const auto node = start(config);
    SilentWorker admitted, refused;
    admitted.join(7, node->address());
    ASSERT_TRUE(log.shows("job formed job=00000007"));
    refused.join(8, node->address());
    EXPECT_TRUE(log.shows("job refused"));
    EXPECT_THAT(log.line("job refused"),
                StartsWith("job refused job=00000008 channel=0 address=" + refused.address() + " reason=\""));
}

TEST(SwitchLog, ParentThatComesAndGoesIsLogged) {
    LogOfNode log;
    auto root = start(small_switch());
    const std::string parent = address_of(*root);
    auto config = small_switch();
    config.parent = root->address();
    config.log = log.open();
    const auto leaf = start(config);
    EXPECT_TRUE(log.shows("parent ready address=" + parent));
    root.reset();
    EXPECT_TRUE(log.shows("parent lost address=" + parent));
}

comm::Options logging_to(LogOfNode& log) {
    comm::Options options = small_options();
    options.log_receiver = [&log](observe::Severity, std::string_view line) { log.add(line); };
    return options;
}

TEST(RankLog, JobThatRunsIsReadyAndLeftWithEffectiveSettings) {
    const auto node = start(small_switch());
    LogOfNode log;
    Job(1, {address_of(*node)}, logging_to(log)).run([](comm::Communicator& communicator) {
        succeeds(communicator.barrier());
    });
    EXPECT_THAT(log.line("job ready"),
                HasSubstr("rank=0 world=1 switch=" + address_of(*node) + " channels=1 lanes=64 window=16"));
    EXPECT_THAT(log.line("job left job="), HasSubstr(" rank=0"));
    EXPECT_EQ(log.line("job failed"), "");
}

TEST(RankLog, Float64IsSaidOnceToBeRounded) {
    const auto node = start(small_switch());
    LogOfNode log;
    Job(1, {address_of(*node)}, logging_to(log)).run([](comm::Communicator& communicator) {
        for (const auto type : {numeric::ElementType::float32, numeric::ElementType::float64}) {
            for (int call = 0; call < 2; ++call) {
                double value = 0;
                succeeds(communicator.all_reduce({&value, &value, 1}, type, comm::Reduction::sum));
            }
        }
    });
    EXPECT_EQ(log.count("float64 rounded", 0), 1);
}

// A GradScaler makes such numbers.
TEST(RankLog, NumbersTooLargeForTheScaleAreSaidOnceToTravelAsFloats) {
    const auto node = start(small_switch());
    LogOfNode log;
    Job(1, {address_of(*node)}, logging_to(log)).run([&](comm::Communicator& communicator) {
        constexpr int most_calls = 1000;
        for (int call = 0; call < most_calls && log.count("float fallback", 0) == 0; ++call) {
            std::vector<float> values(20'000, 1e4F);
            if (!succeeds(sum_in_place(communicator, values))) return;
        }
    });
    EXPECT_EQ(log.count("float fallback", 0), 1);
    EXPECT_THAT(log.line("float fallback"), HasSubstr("try dynamic scaling"));
}

TEST(RankLog, JobThatCannotFormFailsWithTheErrorOfTheCall) {
    const auto node = start(small_switch());
    LogOfNode log;
    comm::Options options = logging_to(log);
    options.join_timeout = std::chrono::milliseconds(300);
    const auto formed = Job(2, {address_of(*node)}, options).form(0);
    ASSERT_FALSE(formed);
    EXPECT_THAT(log.line("job failed"), StartsWith("job failed rank=0 reason=")) << "the job has no number yet";
    EXPECT_THAT(log.line("job failed"), HasSubstr("rank 1 of 2"));
    EXPECT_EQ(log.line("job left"), "");
}

TEST(RankLog, JobInMemoryHasTheNumberOfRankZeroOnAllRanks) {
    LogOfNode log;
    comm::Options options = logging_to(log);
    options.host_level = true;
    std::uint32_t number = 0;
    Job(2, {""}, options).run([&](comm::Communicator& communicator) {
        ASSERT_TRUE(succeeds(communicator.barrier()));
        if (communicator.rank() == 0) number = communicator.formation().job.value();
    });
    const std::string job = "job left job=" + wire::job_to_string(number);
    EXPECT_NE(number, 0U);
    EXPECT_EQ(log.count("job left", 0) + log.count("job left", 1), 2);
    EXPECT_EQ(log.count(job, 0) + log.count(job, 1), 2);
}

TEST(RankLog, JobThatFailsAfterItsRanksMetHasItsNumber) {
    LogOfNode log;
    Job job(2, {"nobody.invalid:4790"}, logging_to(log));
    each(2, [&](std::uint32_t rank) { EXPECT_FALSE(job.form(rank)); });
    EXPECT_THAT(log.line("job failed"), testing::MatchesRegex("job failed job=[0-9a-f]{8} rank=.*"));
    EXPECT_EQ(log.line("job failed job=00000000"), "");
}

TEST(RankLog, OperationThatTimesOutFailsTheJobOnce) {
    const auto node = start(small_switch());
    LogOfNode log;
    Job job(2, {address_of(*node)}, logging_to(log));
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    static_cast<void>(error_of(ranks[0]->barrier(net::now() + std::chrono::milliseconds(200))));
    EXPECT_THAT(log.line("job failed job="), HasSubstr(" rank=0 reason=\"wait rank 1: timed out"));
    ranks.clear();
    EXPECT_EQ(log.count("job failed", 0), 1);
    EXPECT_EQ(log.count("job left", 0), 0);
}

// Rank 1 calls each operation later than the others. Runs until each rank has logged it, and `last`, the switch that
// adds all, has reported it.
void run_with_slow_rank(Job& job, LogOfNode& log, const switchd::SwitchNode& last) {
    // Ends as soon as all have named it. Other programs on the machine can make other ranks late for many steps.
    constexpr int most_steps = 1500;
    std::optional<client::SlowestChild> reported;
    const auto all_logged = [&] {
        for (std::uint32_t rank = 0; rank < job.world(); ++rank) {
            if (log.count("rank slow", rank) == 0) return false;
        }
        return true;
    };
    job.options().log_receiver = [&](observe::Severity, std::string_view line) { log.add(line); };
    job.run([&](comm::Communicator& communicator) {
        const std::uint32_t rank = communicator.rank();
        std::vector<float> values(several_windows, 1.0F);
        for (int step = 0; step < most_steps; ++step) {
            if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
            if (!succeeds(sum_in_place(communicator, values, comm::Reduction::average))) return;
            if (rank == 0) {
                const auto report = last.snapshot();
                const auto& channels = report.shards.at(0).channels;
                if (!channels.empty() && channels.front().slowest) reported = channels.front().slowest;
            }
            // All ranks do the same number of steps.
            float done = rank == 0 && reported && all_logged() ? 1.0F : 0.0F;
            if (!succeeds(
                    communicator.all_reduce({&done, &done, 1}, numeric::ElementType::float32, comm::Reduction::sum)) ||
                done != 0)
                return;
        }
    });
    EXPECT_TRUE(all_logged());
    EXPECT_THAT(log.line("rank slow"), HasSubstr(" of the time for rank 1, "));
    ASSERT_TRUE(reported);
    EXPECT_EQ(reported->rank, 1);
    EXPECT_GE(reported->waited_permille, 250);
}

switchd::SwitchNodeConfig with_short_hold() {
    auto config = small_switch();
    config.hold = std::chrono::milliseconds(600);
    return config;
}

TEST(RankLog, SlowRankIsNamedByEachRankAndByItsSwitchWhileTheJobRuns) {
    const auto node = start(with_short_hold());
    LogOfNode log;
    Job job(3, {address_of(*node)});
    run_with_slow_rank(job, log, *node);
}

TEST(RankLog, SlowRankOfAnotherRackIsNamed) {
    const TwoLevels fabric(with_short_hold(), with_short_hold());
    LogOfNode log;
    Job job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])});
    run_with_slow_rank(job, log, *fabric.root);
}

}  // namespace
}  // namespace atp::test
