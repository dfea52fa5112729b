// SPDX-License-Identifier: Apache-2.0
#include "client/switch_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <thread>

#include "net/clock.h"
#include "support/fails.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using client::ProbeOutcome;
using client::SwitchClient;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds attempt{20};

// Answers HELLOs like a switch, in a thread of its own. `late`: answers each HELLO only after this number of later
// HELLOs. `passes`: true if a HELLO of this length arrives.
class FakeSwitch {
  public:
    using Passes = std::function<bool(std::size_t bytes)>;

    explicit FakeSwitch(
        std::size_t late, Passes passes = [](std::size_t) { return true; })
        : late_(late), passes_(std::move(passes)), socket_(open_or_fail(on_loopback(wire::Family::ipv4))) {
        thread_ = std::thread([this] { run(); });
    }
    ~FakeSwitch() {
        stopping_ = true;
        thread_.join();
    }
    [[nodiscard]] std::unique_ptr<SwitchClient> client() const {
        auto client = SwitchClient::open(socket_->local());
        EXPECT_TRUE(client);
        return client ? *std::move(client) : nullptr;
    }

  private:
    struct Question {
        std::uint64_t nonce;
        std::size_t bytes;
        wire::Address from;
    };

    void run() {
        std::array<wire::Datagram, 16> batch;
        while (!stopping_) {
            pollfd waited{socket_->descriptor(), POLLIN, 0};
            if (::poll(&waited, 1, 10) != 1) continue;
            const auto count = socket_->receive(batch);
            for (std::size_t at = 0; count && at < *count; ++at) take(batch[at]);
        }
    }
    void take(const wire::Datagram& datagram) {
        const auto hello = wire::decode<wire::Hello>(datagram.bytes);
        if (!hello || !passes_(datagram.bytes.size())) return;
        questions_.push_back({hello->nonce, datagram.bytes.size(), *datagram.from});
        if (questions_.size() <= late_) return;
        const Question question = questions_.front();
        questions_.pop_front();
        std::vector<std::byte> bytes(std::max<std::size_t>(question.bytes, 1024));
        const wire::Welcome welcome{.nonce = question.nonce,
                                    .received_bytes = static_cast<std::uint32_t>(question.bytes),
                                    .path = {{.id = 1, .aggregators = 1, .lanes = 64}},
                                    .software = "fake"};
        const std::size_t size = wire::encode(welcome, bytes, question.bytes);
        EXPECT_TRUE(put(*socket_, std::string_view(reinterpret_cast<const char*>(bytes.data()), size), question.from));
        static_cast<void>(socket_->flush());
    }

    std::size_t late_;
    Passes passes_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::deque<Question> questions_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

Result<client::Greeting> ask(SwitchClient& client) { return client.hello(net::now() + seconds(20), 0, attempt); }
Result<ProbeOutcome> probe(SwitchClient& client, std::uint32_t bytes) {
    return client.probe(bytes, net::now() + seconds(20), attempt);
}

TEST(SwitchClient, AnswerAfterTheNextQuestionIsAccepted) {
    const FakeSwitch slow(3);
    const auto greeting = ask(*slow.client());
    ASSERT_TRUE(greeting) << to_string(greeting.error());
    EXPECT_EQ(greeting->asked, 1U) << "the first question was answered";
    EXPECT_GE(greeting->round_trip, 3 * attempt);
}

TEST(SwitchClient, ProbeOfASlowSwitchArrives) {
    const FakeSwitch slow(3);
    const auto client = slow.client();
    EXPECT_EQ(probe(*client, 9000), ProbeOutcome::arrived);
    EXPECT_EQ(probe(*client, 1232), ProbeOutcome::arrived);
}

TEST(SwitchClient, ProbeIsLostIfOnlyAShortQuestionIsAnswered) {
    const FakeSwitch narrow(0, [](std::size_t bytes) { return bytes <= 1232; });
    const auto client = narrow.client();
    EXPECT_EQ(probe(*client, 9000), ProbeOutcome::lost);
    EXPECT_EQ(probe(*client, 1232), ProbeOutcome::arrived);
}

// Late answers to short HELLOs of an earlier probe prove nothing about this one.
TEST(SwitchClient, SlowSwitchBehindANarrowPathLosesOnlyTheLongProbe) {
    const FakeSwitch narrow(2, [](std::size_t bytes) { return bytes <= 1232; });
    const auto client = narrow.client();
    EXPECT_EQ(probe(*client, 9000), ProbeOutcome::lost);
    EXPECT_EQ(probe(*client, 1232), ProbeOutcome::arrived);
    EXPECT_EQ(probe(*client, 9000), ProbeOutcome::lost);
}

TEST(SwitchClient, ProbeOfASilentSwitchFailsAtItsDeadline) {
    const FakeSwitch silent(0, [](std::size_t) { return false; });
    const auto client = silent.client();
    const auto outcome = client->probe(1232, net::now() + milliseconds(200), attempt);
    ASSERT_TRUE(fails(outcome, {.reason = Reason::timed_out, .peer = to_string(client->address())}));
    EXPECT_GE(outcome.error().elapsed, milliseconds(200));
}

}  // namespace
}  // namespace atp::test
