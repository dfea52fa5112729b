// SPDX-License-Identifier: Apache-2.0
// A host on the path that changes packets of a job with `seal=operation`.
#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <set>
#include <utility>

#include "base/hash.h"
#include "site.h"
#include "wire/packet.h"

namespace atp::test {
namespace {

class SealOnTheWire : public Site {
  protected:
    struct Outcome {
        bool succeeded = false;
        bool right = false;
        Error error{};
    };
    // One sum of a new job, during which packet `nth` of this direction, among those with at least `least` lanes, has
    // one bit changed, and so have its copies, since one that came through unchanged would count.
    [[nodiscard]] std::vector<Outcome> sum_with_a_change(const SwitchProcess& node, Way way, unsigned nth,
                                                         std::size_t least, std::uint32_t draw) const {
        std::atomic<bool> armed{false};
        std::atomic<unsigned> seen{0};
        using Fragment = std::pair<wire::Address, std::uint32_t>;  // to or from whom, and its number
        std::set<Fragment> fragments;
        std::optional<Fragment> changed;
        Wiretap tap(node.address(), [&](Way passing, const wire::Address& client, Bytes& bytes) {
            wire::Packet packet;
            if (!armed || passing != way || wire::decode(bytes, packet) != wire::DecodeError::none) return;
            if (packet.header.type != ATP_TYPE_GRADIENT && packet.header.type != ATP_TYPE_ACK) return;
            if (packet.lane_count() < least) return;
            const Fragment fragment(client, packet.header.seq);
            if (fragments.insert(fragment).second && seen++ == nth) changed = fragment;
            if (changed != fragment) return;
            packet.lanes[draw % packet.lanes.size()] ^= std::byte{1} << (draw >> 16U) % 8;
        });
        comm::Options options = options_of("vision");
        options.seal = comm::Seal::operation;
        const auto ranks = Job(2, {tap.address()}, options).formed();
        std::vector<Outcome> outcomes(2);
        if (ranks.size() != 2) return outcomes;
        armed = true;
        each(2, [&](std::uint32_t rank) {
            std::vector<float> values(several_windows, 0.5F);
            const auto work = sum_in_place(*ranks[rank], values);
            const Result<void> done = work ? (*work)->wait() : tl::unexpected(work.error());
            outcomes[rank] = {.succeeded = done.has_value(),
                              .right = values == std::vector<float>(values.size(), 1.0F)};
            if (!done) outcomes[rank].error = done.error();
        });
        EXPECT_GT(seen, nth) << "nothing was changed";
        for (Outcome& outcome : outcomes) {
            if (outcome.succeeded) continue;
            EXPECT_EQ(outcome.error.reason, Reason::forged) << to_string(outcome.error);
            EXPECT_EQ(outcome.error.address, tap.address());
        }
        return outcomes;
    }
};

TEST_F(SealOnTheWire, ForgedResultFailsOnAllRanks) {
    const SwitchProcess node(asking());
    for (unsigned number = 0; number < 8; ++number) {
        SCOPED_TRACE(number);
        const Way way = number % 2 == 0 ? Way::back : Way::there;
        for (const Outcome& outcome : sum_with_a_change(node, way, number * 9, small_lanes, mix(number))) {
            EXPECT_FALSE(outcome.succeeded);
        }
    }
}

// Also exponents and sealed words, which are shorter: who changes them for one rank makes this rank fail.
TEST_F(SealOnTheWire, NoRankReturnsAWrongSumWhateverIsChanged) {
    const SwitchProcess node(asking());
    for (unsigned number = 0; number < 12; ++number) {
        SCOPED_TRACE(number);
        const Way way = number % 2 == 0 ? Way::back : Way::there;
        const auto outcomes = sum_with_a_change(node, way, mix(number) % 160, 1, mix(number + 100));
        for (const Outcome& outcome : outcomes) EXPECT_TRUE(!outcome.succeeded || outcome.right);
        EXPECT_FALSE(outcomes[0].succeeded && outcomes[1].succeeded);
    }
}

}  // namespace
}  // namespace atp::test
