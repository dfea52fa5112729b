// SPDX-License-Identifier: Apache-2.0
// The saved state of a tree (control/persist_join_tree.h).
#include "control/persist_join_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "control/join_tree_fixture.h"
#include "support/byte_archive.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;

std::string output_of(JoinTree& tree) {
    std::string out;
    while (const auto event = tree.poll_event()) {
        out += "event " + std::to_string(static_cast<int>(event->kind)) + ";";
        if (event->kind == Kind::opened) tree.opened(key_of(*event));
    }
    while (tree.poll_notice()) {
    }
    while (const auto transmit = tree.poll_transmit()) {
        std::array<std::byte, 2048> bytes{};
        const std::size_t size = wire::encode(transmit->message, bytes);
        out += to_string(transmit->to) + " ";
        out.append(reinterpret_cast<const char*>(bytes.data()), size);
    }
    return out + std::to_string(tree.poll_timeout().time_since_epoch().count());
}

struct Dice {
    explicit Dice(unsigned seed) : random(seed) {}
    unsigned below(unsigned bound) { return static_cast<unsigned>(random() % bound); }
    std::mt19937 random;
};

enum class Role : std::uint8_t {
    leaf,           // of two
    root,           // of leaves, or of one unit
    root_of_racks,  // whose switches are in the path: each member joins the root
};

wire::Join random_position(Dice& dice, Role role) {
    if (role == Role::root_of_racks) {
        const auto unit = static_cast<std::uint8_t>(dice.below(2));
        wire::Join join = join_of_member(unit, 2, dice.below(2), static_cast<std::uint16_t>(2 * unit), 0x3);
        join.level = 1;
        return join;
    }
    const unsigned member = dice.below(3);
    if (role == Role::leaf || dice.below(2) == 0) {
        return join_of_member(0, 3, member, 0, role == Role::leaf ? 0x3 : 0x1);
    }
    return join_of_unit(static_cast<std::uint8_t>(dice.below(2)), 0, 3, 0x3);
}

wire::Join random_join(Dice& dice, unsigned step, Role role) {
    wire::Join join = random_position(dice, role);
    join.nonce = dice.below(8) == 0 ? 2 : 1;
    join.epoch = dice.below(4) == 0 ? dice.below(step + 1) : step + 1;
    join.begun = dice.below(4) == 0;
    if (dice.below(12) == 0) ++join.terms.channel;
    if (dice.below(6) == 0) join.edges = {{.kind = wire::EdgeKind::parent, .silent_ms = 3000}};
    if (dice.below(6) == 0) join.job_name = "resnet-50";
    if (dice.below(6) == 0) join.statements = {{.count = 1, .text = "allreduce"}};
    if (dice.below(4) == 0) join.pace = {.share_percent = 80, .unit = 1, .member = 1};
    return join;
}

constexpr std::uint32_t hold_ms = 400;

// Draws the same from `dice` for equal states.
void random_step(JoinTree& tree, Dice dice, unsigned step, Role role, Time now) {
    Branch* const branch = tree.find(key);
    switch (dice.below(25)) {
        case 24:
            if (branch == nullptr) return;
            for (unsigned i = dice.below(20); i > 0; --i) {
                branch->pace.handle_completed(1U << dice.below(2), milliseconds(dice.below(40)), now);
            }
            return;
        case 0: {
            wire::Leave leave{.nonce = 1, .job = job, .token = token, .channel = channel};
            leave.epoch = step + 1;
            leave.member = static_cast<std::uint8_t>(dice.below(3));
            return tree.handle_leave(leave, worker(leave.member), now);
        }
        case 1:
        case 2:
        case 3:
        case 4:
            if (branch == nullptr) return;
            return tree.handle_joined({.nonce = branch->up_nonce,
                                       .job = job,
                                       .token = token,
                                       .channel = channel,
                                       .epoch = branch->up_epoch - std::min(branch->up_epoch, dice.below(3)),
                                       .number = step + 1,
                                       .ready = dice.below(6) != 0,
                                       .hold_ms = hold_ms,
                                       .pace = {.share_percent = static_cast<std::uint8_t>(dice.below(2) * 90)}},
                                      host(1), now);
        case 5:
            if (dice.below(4) != 0) return;
            return tree.handle_refused({.nonce = branch == nullptr ? 0 : branch->up_nonce,
                                        .job = job,
                                        .token = token,
                                        .channel = channel,
                                        .reason = dice.below(2) == 0 ? Refusal::full : Refusal::restarted,
                                        .text = "no"},
                                       host(1), now);
        case 6:
            return tree.handle_retry({.nonce = branch == nullptr ? 0 : branch->up_nonce,
                                      .job = job,
                                      .token = token,
                                      .channel = channel,
                                      .cookie = dice.below(3)},
                                     host(1), now);
        case 7:
        case 8:
        case 9:
        case 10: return tree.handle_timeout(now);
        default: break;
    }
    const wire::Join join = random_join(dice, step, role);
    const bool is_worker = join.level == 0 || role == Role::root_of_racks;
    tree.handle_join(join, is_worker ? worker(join.units.front().ranks.front()) : host(9), now);
}

// A restored tree behaves like the original. persist() therefore includes the whole state.
TEST(PersistJoinTree, RestoredTreeContinuesLikeTheOriginal) {
    for (unsigned seed = 1; seed <= 80; ++seed) {
        Dice dice(seed);
        const Role role = seed % 2 == 0 ? Role::leaf : seed % 4 == 1 ? Role::root : Role::root_of_racks;
        JoinTreeConfig config{.parent = role == Role::leaf ? host(1) : wire::Address{}};
        config.secret = {7, 7};
        if (seed % 7 == 0) config.channels = 2;
        config.hold = milliseconds(seed % 3 == 0 ? hold_ms : 3000);
        JoinTree original(config);
        Time now{std::chrono::hours(1)};
        for (unsigned step = 0; step < 250; ++step) {
            JoinTree shadow(config);
            ASSERT_TRUE(testing::copy_state(original, shadow));
            now += milliseconds(dice.below(seed % 5 == 0 ? 600 : 60));
            const auto drawn = dice.below(1U << 30U);
            random_step(original, Dice(drawn), step, role, now);
            random_step(shadow, Dice(drawn), step, role, now);
            ASSERT_EQ(output_of(shadow), output_of(original)) << "seed " << seed << " step " << step;
            ASSERT_EQ(testing::state_of(shadow), testing::state_of(original)) << "seed " << seed << " step " << step;
        }
    }
}

}  // namespace
}  // namespace atp::control
