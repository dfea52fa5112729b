// SPDX-License-Identifier: Apache-2.0
#include "net/udp_report.h"

#include <fmt/format.h>

#include <utility>

namespace atp::net {

std::string_view to_string(Feature feature) {
    switch (feature) {
        case Feature::mmsg: return "mmsg";
        case Feature::gso: return "gso";
        case Feature::gro: return "gro";
        case Feature::ecn: return "ecn";
        case Feature::no_fragments: return "no-fragments";
        case Feature::busy_poll: return "busy-poll";
        case Feature::receive_buffer: return "receive-buffer";
        case Feature::send_buffer: return "send-buffer";
    }
    return "unknown";
}

std::vector<std::string> UdpReport::missing() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < feature_count; ++i) {
        if (states_[i].missing()) {
            lines.push_back(fmt::format("{}: {}", net::to_string(static_cast<Feature>(i)), states_[i].text));
        }
    }
    return lines;
}

std::string UdpReport::to_string() const {
    std::string lines;
    for (std::size_t i = 0; i < feature_count; ++i) {
        const FeatureState& state = states_[i];
        const char* const standing = state.in_use ? "on" : state.requested ? "off, requested" : "off";
        lines += fmt::format("{}: {}{}{}\n", net::to_string(static_cast<Feature>(i)), standing,
                             state.text.empty() ? "" : ": ", state.text);
    }
    return lines;
}

void UdpReport::set(Feature feature, bool requested, bool in_use, std::string text) {
    states_[static_cast<std::size_t>(feature)] = {requested, in_use, std::move(text)};
    ++revision_;
}

void UdpReport::lose(Feature feature, std::string why) {
    set(feature, (*this)[feature].requested, false, std::move(why));
}

}  // namespace atp::net
