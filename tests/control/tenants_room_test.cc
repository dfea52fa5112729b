// SPDX-License-Identifier: Apache-2.0
// Which places of a switch tenants get, over all numbers of jobs that they could have.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/guarantees.h"
#include "control/switch_room.h"

namespace atp::control {
namespace {

using Answer = SwitchRoom::RoomAnswer;

const Time start{std::chrono::seconds(100)};

Tenant with_jobs(std::string name, std::optional<std::uint32_t> jobs) {
    return {.name = std::move(name), .jobs = jobs};
}

std::shared_ptr<const Tenants> tenants_of(std::vector<Tenant> tenants) {
    return std::make_shared<const Tenants>(std::move(tenants));
}

// A room whose tenants open and close jobs of one channel each.
struct Jobs {
    Jobs(std::uint32_t most, std::vector<Tenant> tenants) : room(most, 1000) { set(std::move(tenants)); }

    void set(std::vector<Tenant> tenants) { room.set_tenants(tenants_of(std::move(tenants))); }
    Answer open(const std::string& tenant, bool may_end = true) {
        const JobKey key{.job = ++last, .token = 1};
        const Answer answer = room.take(key, Owner{.tenant = tenant}, start, may_end);
        if (answer == Answer::granted) open_jobs.emplace_back(tenant, key);
        return answer;
    }
    // As trees do after `waits`.
    void end_marked() {
        std::erase_if(open_jobs, [&](const auto& job) {
            const bool ends = room.must_end(job.second);
            if (ends) room.give_back(job.second);
            return ends;
        });
    }
    [[nodiscard]] std::uint32_t held(const std::string& tenant) const {
        return room.use_of(Owner{.tenant = tenant}).jobs;
    }

    SwitchRoom room;
    std::uint32_t last = 0;
    std::vector<std::pair<std::string, JobKey>> open_jobs;
};

TEST(TenantsRoom, TenantBelowItsLimitIsNeverRefusedAndNeverEnds) {
    constexpr std::uint32_t table = 6;
    // All limits of three tenants that fit; 0 stands for none, and the others' order of asking.
    for (std::uint32_t a = 0; a <= table; ++a) {
        for (std::uint32_t b = 0; a + b <= table; ++b) {
            for (const bool borrowers_first : {true, false}) {
                Jobs jobs(table, {with_jobs("a", a == 0 ? std::nullopt : std::optional(a)),
                                  with_jobs("b", b == 0 ? std::nullopt : std::optional(b)),
                                  {.name = "free"}});
                const std::array<std::string, 3> order{"free", borrowers_first ? "a" : "b",
                                                       borrowers_first ? "b" : "a"};
                for (const std::string& tenant : order) {
                    for (std::uint32_t asked = 0; asked < table; ++asked) {
                        const std::uint32_t limit = tenant == "a" ? a : tenant == "b" ? b : 0;
                        const bool below = jobs.held(tenant) < limit;
                        const Answer answer = jobs.open(tenant);
                        if (below) {
                            EXPECT_EQ(answer, Answer::granted) << a << ' ' << b << ' ' << tenant << ' ' << asked;
                        } else if (limit != 0) {
                            EXPECT_EQ(answer, Answer::job_limit) << a << ' ' << b << ' ' << tenant << ' ' << asked;
                        }
                        jobs.end_marked();
                        EXPECT_LE(jobs.held("a") + jobs.held("b") + jobs.held("free"), table);
                    }
                }
                EXPECT_TRUE(a == 0 || jobs.held("a") == a);
                EXPECT_TRUE(b == 0 || jobs.held("b") == b);
            }
        }
    }
}

TEST(TenantsRoom, RoomThatIsNobodysIsSharedAsAmongHosts) {
    Jobs jobs(16, {with_jobs("own", 4), {.name = "first"}, {.name = "second"}});
    for (int i = 0; i < 12; ++i) EXPECT_EQ(jobs.open("first"), Answer::granted) << i;
    EXPECT_EQ(jobs.open("first"), Answer::no_job) << "4 are kept";
    EXPECT_EQ(jobs.open("second"), Answer::waits) << "first has more than its share";
    jobs.end_marked();
    EXPECT_EQ(jobs.held("first"), 11U);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(jobs.open("own"), Answer::granted) << i;
    EXPECT_EQ(jobs.open("own"), Answer::job_limit);
}

TEST(TenantsRoom, LimitsBeyondTheTableEndInPartsOfIt) {
    Jobs jobs(8, {with_jobs("big", 12), with_jobs("small", 4)});
    for (int i = 0; i < 6; ++i) EXPECT_EQ(jobs.open("big"), Answer::granted) << i;
    EXPECT_NE(jobs.open("big"), Answer::granted) << "a quarter of the table is the other one's";
    for (int i = 0; i < 2; ++i) EXPECT_EQ(jobs.open("small"), Answer::granted) << i;
    EXPECT_EQ(jobs.open("small"), Answer::no_job);
}

TEST(TenantsRoom, JobsThatRunKeepTheirPlacesWhenLimitsShrink) {
    Jobs jobs(8, {with_jobs("a", 6), with_jobs("b", 2)});
    for (int i = 0; i < 6; ++i) ASSERT_EQ(jobs.open("a"), Answer::granted);
    jobs.set({with_jobs("a", 2), with_jobs("b", 6)});
    EXPECT_EQ(jobs.held("a"), 6U);
    EXPECT_EQ(jobs.open("a"), Answer::job_limit);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(jobs.open("b"), Answer::granted);
    EXPECT_EQ(jobs.open("b"), Answer::waits) << "a has 4 beyond its own, more than an eighth";
    jobs.end_marked();
    EXPECT_EQ(jobs.held("a"), 5U);
}

TEST(TenantsRoom, JobOfATenantIsNobodyElses) {
    Jobs jobs(8, {{.name = "a"}, {.name = "b"}});
    const JobKey key{.job = 5, .token = 1};
    EXPECT_EQ(jobs.room.take(key, Owner{.tenant = "a"}, start, true), Answer::granted);
    EXPECT_EQ(jobs.room.take(key, Owner{.tenant = "b"}, start, true), Answer::of_another);
    EXPECT_EQ(jobs.room.take(key, Owner{.tenant = "a"}, start, true), Answer::granted);
    EXPECT_EQ(jobs.room.use_of(Owner{.tenant = "a"}).channels, 2U);
    EXPECT_EQ(jobs.room.use_of(Owner{.tenant = "b"}).channels, 0U);
}

TEST(TenantsRoom, ChannelsAreLimitedLikeJobs) {
    SwitchRoom room(100, 6);
    room.set_tenants(tenants_of({{.name = "a", .channels = 2}, {.name = "free"}}));
    const JobKey of_free{.job = 1, .token = 1};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(room.take(of_free, Owner{.tenant = "free"}, start, true), Answer::granted);
    EXPECT_EQ(room.take(of_free, Owner{.tenant = "free"}, start, true), Answer::no_channel);
    const JobKey of_a{.job = 2, .token = 1};
    for (int i = 0; i < 2; ++i) EXPECT_EQ(room.take(of_a, Owner{.tenant = "a"}, start, true), Answer::granted);
    EXPECT_EQ(room.take(of_a, Owner{.tenant = "a"}, start, true), Answer::channel_limit);
}

TEST(Guarantees, TenantHasItsLimitOrItsPartOfTheWhole) {
    const auto limit = [](const Tenant& tenant) { return tenant.jobs; };
    const Tenants fit({with_jobs("a", 3), with_jobs("b", std::nullopt), with_jobs("c", 4)});
    const Guarantees guarantees(&fit, 8, limit);
    EXPECT_EQ(guarantees.of({.tenant = "a"}), 3U);
    EXPECT_EQ(guarantees.of({.tenant = "b"}), 0U);
    EXPECT_EQ(guarantees.of({}), 0U);
    const auto nothing = [](const Owner&) { return 0U; };
    EXPECT_EQ(guarantees.left_to_others({.tenant = "a"}, nothing), 4U);
    EXPECT_EQ(guarantees.left_to_others({.tenant = "b"}, nothing), 7U);
    EXPECT_EQ(guarantees.left_to_others({.tenant = "b"}, [](const Owner&) { return 9U; }), 0U);

    for (std::uint32_t whole = 1; whole < 40; ++whole) {
        for (std::uint32_t of_a = 1; of_a < 60; of_a += 7) {
            for (std::uint32_t of_c = 1; of_c < 60; of_c += 5) {
                const Tenants tenants({with_jobs("a", of_a), with_jobs("c", of_c)});
                const Guarantees both(&tenants, whole, limit);
                const std::uint64_t a = both.of({.tenant = "a"});
                const std::uint64_t c = both.of({.tenant = "c"});
                EXPECT_LE(a + c, whole);
                EXPECT_LE(a, of_a);
                EXPECT_TRUE(of_a + of_c > whole || a + c == of_a + of_c);
            }
        }
    }
}

}  // namespace
}  // namespace atp::control
