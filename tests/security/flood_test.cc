// SPDX-License-Identifier: Apache-2.0
// A host that reads no packets, and sends as many messages as it can: no sum is wrong, no running job ends, and a new
// job still finds its place. bench/security/run measures their speed meanwhile.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "messages.h"
#include "outsider.h"
#include "site.h"

namespace atp::test {
namespace {

// Sends what `next` makes to each target, until it is destroyed.
class Flood {
  public:
    using Next = std::function<Bytes(Outsider& outsider, std::uint64_t number)>;

    Flood(std::vector<wire::Address> targets, Next next)
        : thread_([this, targets = std::move(targets), next = std::move(next)](const std::stop_token& stop) {
              Outsider outsider;
              while (!stop.stop_requested()) {
                  for (const wire::Address& target : targets) outsider.send(next(outsider, ++sent), target);
                  if (sent % 32 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
          }) {}

    std::atomic<std::uint64_t> sent{0};

  private:
    std::jthread thread_;  // last: it ends before what it uses
};

// It knows the job, which reports show, and guesses everything else.
Target guess(std::uint32_t job, std::uint64_t number) {
    const auto seq = static_cast<std::uint32_t>(number % 200);
    return {.job = job, .token = mix64(number) | 1U, .nonce = mix64(number, 1), .epoch = 1, .seq = seq};
}

// The job sums, and others form, during a flood of each kind.
void flood(const SwitchProcess& node, const comm::Options& own, const comm::Options& other) {
    const std::string address = to_string(node.address());
    const auto ranks = Job(2, {address}, own).formed();
    ASSERT_EQ(ranks.size(), 2U);
    const std::uint32_t job = *ranks[0]->formation().job;
    std::vector<wire::Address> targets = open_ports();
    targets.push_back(node.address());

    std::vector<std::pair<std::string, Flood::Next>> kinds;
    const auto add = [&](const std::string& name, auto&& make) { kinds.emplace_back(name, make); };
    const std::vector<Forgery> controls = control_forgeries(guess(job, 1));
    for (std::size_t kind = 0; kind < controls.size(); ++kind) {
        add(controls[kind].name,
            [job, kind](Outsider&, std::uint64_t number) { return control_forgeries(guess(job, number))[kind].bytes; });
    }
    const std::vector<Forgery> packets = packet_forgeries(guess(job, 1), true);
    for (std::size_t kind = 0; kind < packets.size(); ++kind) {
        add(packets[kind].name, [job, kind](Outsider&, std::uint64_t number) {
            return packet_forgeries(guess(job, number), true)[kind].bytes;
        });
    }
    // A host that receives at its address, and answers each RETRY. An open switch takes its jobs, until its share of
    // the table is full.
    add("JOIN with a cookie", [](Outsider& outsider, std::uint64_t number) {
        Target target = guess(static_cast<std::uint32_t>(mix64(number)), number);
        std::uint64_t cookie = 0;
        for (Bytes answer = outsider.receive(0); !answer.empty() && cookie == 0; answer = outsider.receive(0)) {
            const auto retry = wire::decode<wire::Retry>(answer);
            if (!retry) continue;
            target = {.job = retry->job, .token = retry->token, .nonce = retry->nonce, .epoch = 2};
            cookie = retry->cookie;
        }
        wire::Join join = join_of(target);
        join.cookie = cookie;
        return bytes_of(wire::JoiningMessage(join));
    });
    for (const auto& [name, next] : kinds) {
        SCOPED_TRACE(name);
        const bool only_switch = name == "JOIN with a cookie";
        Flood running(only_switch ? std::vector{node.address()} : targets, next);
        EXPECT_TRUE(eventually([&] { return running.sent > 2000; }));
        expect_sums(ranks, 3);
        expect_new_job(address, other);
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(node.members_of(job), 2U);
}

class Flooded : public Site {};

TEST_F(Flooded, SwitchWithTenantsKeepsJobsAndTakesNewOnesDuringEachFlood) {
    const SwitchProcess node(asking());
    flood(node, options_of("vision"), options_of("speech"));
}

TEST_F(Flooded, OpenSwitchKeepsJobsAndTakesNewOnesDuringEachFlood) {
    const SwitchProcess node(open());
    flood(node, options_of(""), options_of(""));
}

}  // namespace
}  // namespace atp::test
