// SPDX-License-Identifier: Apache-2.0
// Somebody who records all packets of a job with a key, and repeats them in the names of those who sent them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "site.h"

namespace atp::test {
namespace {

using Recording = std::vector<Wiretap::Datagram>;

class Replay : public Site {
  protected:
    // The whole life of a job: JOINs, sums, LEAVEs. Returns its number.
    std::uint32_t run_job(const Wiretap& tap) const {
        const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
        if (ranks.size() != 2) return 0;
        expect_sums(ranks, 2);
        return *ranks[0]->formation().job;
    }
    // Without LEAVEs, which would end again what JOINs began.
    static Recording without_leaves(Recording recording) {
        std::erase_if(recording, [](const Wiretap::Datagram& datagram) {
            return wire::control_type(datagram.bytes) == wire::ControlType::leave;
        });
        return recording;
    }
    // Answers of the switch also to each of `clients`, as if they were to these.
    static void repeat(Wiretap& tap, const Recording& recording, const std::vector<wire::Address>& clients) {
        for (const Wiretap::Datagram& datagram : recording) {
            tap.send(datagram);
            if (datagram.way == Way::there) continue;
            for (const wire::Address& client : clients) tap.send({Way::back, client, datagram.bytes});
        }
    }
    static bool is_control(const Wiretap::Datagram& datagram) { return wire::control_type(datagram.bytes).has_value(); }
};

TEST_F(Replay, OfAnEarlierSessionChangesNothingInALaterOne) {
    const SwitchProcess node(asking());
    Wiretap tap(node.address());
    const std::uint32_t earlier = run_job(tap);
    const Recording recording = tap.recorded();
    const Recording staying = without_leaves(recording);
    ASSERT_GT(std::ranges::count_if(recording, is_control), 8);

    const auto ranks = Job(2, {tap.address()}, options_of("vision")).formed();
    ASSERT_EQ(ranks.size(), 2U);
    std::vector<wire::Address> clients;
    for (const auto& [client, join] : tap.last<wire::Join>()) {
        if (join.terms.job == *ranks[0]->formation().job) clients.push_back(client);
    }
    ASSERT_EQ(clients.size(), 2U);
    Recording formation = tap.recorded();
    formation.erase(formation.begin(), formation.begin() + static_cast<std::ptrdiff_t>(recording.size()));
    std::erase_if(formation, [](const auto& datagram) { return !is_control(datagram); });
    std::atomic<int> passes{0};
    {
        const std::jthread replayer([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                repeat(tap, ++passes % 2 == 0 ? recording : staying, clients);
                repeat(tap, formation, {});
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        });
        EXPECT_TRUE(eventually([&] {
            expect_sums(ranks, 2);
            return passes > 10 || HasFailure();
        }));
    }
    EXPECT_EQ(node.members_of(*ranks[0]->formation().job), 2U);
    EXPECT_EQ(node.members_of(earlier), 0U);
}

TEST_F(Replay, BringsNoJobThatHasLeftBack) {
    const SwitchProcess node(asking());
    Wiretap tap(node.address());
    const std::uint32_t job = run_job(tap);
    ASSERT_NE(job, 0U);
    const Recording recording = without_leaves(tap.recorded());
    EXPECT_TRUE(eventually([&] { return node.members_of(job) == 0; }));
    const std::uint64_t joins = node.report().shards[0].tree.joins;
    for (int pass = 0; pass < 5; ++pass) {
        repeat(tap, recording, {});
        EXPECT_EQ(node.members_of(job), 0U);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(node.members_of(job), 0U);
    EXPECT_TRUE(eventually([&] { return node.report().shards[0].tree.joins > joins; })) << "some had a valid cookie";
    expect_new_job(tap.address(), options_of("vision"));
}

TEST_F(Replay, OfASessionWithAnEarlierProcessOpensNoJobAtTheNext) {
    auto before = std::make_unique<SwitchProcess>(asking());
    Wiretap tap(before->address());
    const std::uint32_t job = run_job(tap);
    ASSERT_NE(job, 0U);
    const Recording recording = without_leaves(tap.recorded());
    const std::string address = to_string(before->address());
    before.reset();
    const SwitchProcess node(asking(), address);
    for (int pass = 0; pass < 3; ++pass) {
        repeat(tap, recording, {});
        expect_new_job(tap.address(), options_of("vision"));
        EXPECT_EQ(node.members_of(job), 0U);
    }
}

}  // namespace
}  // namespace atp::test
