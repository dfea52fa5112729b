// SPDX-License-Identifier: Apache-2.0
// Where the sums of a job are added, and what each link then carries. All ranks compute the same layout, and a planner
// predicts with the same function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::control {

// What one rank knows of the network.
struct LayoutRank {
    std::uint64_t leaf = 0;        // id of its switch; 0: it names none
    std::uint64_t root = 0;        // id of the last switch of its path
    bool serves = false;           // can serve a part of the sums
    std::string host;              // ranks of one host share its link; empty: a host of its own
    std::string rack;              // which shares a link to the others; empty: that of its switch
    bool in_path = false;          // a switch in the path of the rack adds, and has no address
    double host_bits_per_s = 0;    // of the link of its host, in each direction; 0: not named
    double uplink_bits_per_s = 0;  // of the link above its rack; 0: not named
};

enum class LayoutKind : std::uint8_t {
    one_root,  // one switch above all ranks
    hosts,     // each host serves a share; no switch adds
    leaves,    // the same, behind the switches of racks
    racks,     // the same; in a rack without a switch its hosts take turns as one
};
[[nodiscard]] std::string_view to_string(LayoutKind kind);

// How one rank reaches the server of a share.
struct Ascent {
    enum class Kind : std::uint8_t {
        direct,     // sends to the server
        by_switch,  // to its own switch
        in_path,    // to the server, and a switch in the path adds for the rack
        by_rank,    // to rank `leaf`, which adds for the rack
    };
    Kind kind = Kind::direct;
    std::uint16_t leaf = 0;

    friend bool operator==(const Ascent&, const Ascent&) = default;
};

struct LayoutShare {
    std::uint16_t server = 0;       // rank
    std::vector<Ascent> ascents{};  // by rank
};

// What a link carries in each direction.
struct LinkLoad {
    std::uint16_t rank = 0;  // it, or the first one of its rack
    bool is_uplink = false;
    double tensors = 0;
    double bits_per_s = 0;  // 0: no rate is named
};

struct Layout {
    LayoutKind kind = LayoutKind::one_root;
    std::vector<LayoutShare> shares{};  // channel c uses share c mod n; one_root: none. A host may have two
    std::vector<LinkLoad> loads{};      // of each link that carries something
    LinkLoad busiest{};                 // the one of them that takes the longest
    double duration = 0;                // of a tensor on that link, to compare layouts only
};

// nullopt: these ranks cannot form this layout.
[[nodiscard]] std::optional<Layout> layout_of(LayoutKind kind, std::span<const LayoutRank> ranks);
// The one with the shortest time on its busiest link; of almost equal ones, the first in the order of LayoutKind. A
// rate that is not named counts as the slowest named one of a host; if none is named, all links count equally. nullopt:
// some rank names no switch, and some rank cannot serve.
[[nodiscard]] std::optional<Layout> best_layout(std::span<const LayoutRank> ranks);

}  // namespace atp::control
