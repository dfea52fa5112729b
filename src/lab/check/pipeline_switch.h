// SPDX-License-Identifier: Apache-2.0
// A switch that is a pipeline (pipeline/decide_pipeline.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "check/configuration.h"
#include "check/system.h"
#include "protocol/membership.h"
#include "protocol/pipeline_cells.h"
#include "protocol/switch.h"
#include "protocol/variant.h"
#include "wire/packet.h"

namespace atp::check {

namespace ATP_VARIANT {

// What the last pass of a packet did.
struct PipelinePass {
    atp_header header{};           // of the packet as it arrived
    atp_pipeline_words before{};   // of the aggregator that the packet names
    std::uint8_t kind = 0;         // enum atp_pass_kind
    std::uint8_t event = 0;        // enum atp_switch_event
    bool passes_again = false;     // the packet is in flight to this switch
    protocol::Verdict verdict;     // if it does not pass again
    std::string_view violation{};  // empty: none
};

// One step is one pass of a packet. A packet that passes again is in flight between the two: any other packet may
// overtake it, and it may be lost or repeated. Its kind and `seen` are bytes in front of it.
//
// Ownership: owns the words and lanes of its aggregators. Borrows both arguments of the constructor.
// Threads: none.
class PipelineSwitch {
  public:
    PipelineSwitch(const Configuration& configuration, const protocol::Membership& membership, std::uint8_t level);

    // Rewrites the packet in place.
    PipelinePass handle(Sent& packet, Input input);
    void clear();

    [[nodiscard]] bool untouched() const;
    [[nodiscard]] std::uint8_t held() const;
    // True if a held aggregator can be claimed in both ways: after ageing by any fragment, and at once by a fragment of
    // the same stream that is W newer. No gradient claims a leaving aggregator before it is abandoned.
    [[nodiscard]] bool all_reclaimable() const;
    // Fragment of a tag, which `body` completes.
    [[nodiscard]] std::optional<FragmentPlace> fragment_of(const atp_pipeline_words& words) const;

    template <class Archive>
    void persist(Archive& archive) {
        for (Aggregator& at : table_) {
            atp_pipeline_words& words = at.words;
            archive.value(words.tomb), archive.value(words.tomb_seq), archive.value(words.tag);
            archive.value(words.body), archive.value(words.bitmap), archive.value(words.marks);
            archive.stamp_us(words.touched_us);
            archive.value(at.lanes);
        }
    }

  private:
    struct Aggregator {
        atp_pipeline_words words{};
        std::array<std::uint32_t, model_lanes> lanes{};
    };

    [[nodiscard]] atp_pipeline_place place_of(const atp_header& header) const;
    void move_lanes(std::uint8_t action, std::span<std::byte> lanes, Aggregator& at) const;
    [[nodiscard]] std::uint8_t event_of_claim(Aggregator at, std::uint32_t seq, Time now) const;

    const Configuration& configuration_;
    const protocol::Membership& membership_;
    std::uint8_t level_;
    std::vector<Aggregator> table_;
};

// The packet of `bytes`, without what a pipeline put in front of it. `kind`: of its next pass.
[[nodiscard]] std::span<const std::byte> packet_between_passes(std::span<const std::byte> bytes, std::uint8_t& kind);

}  // namespace ATP_VARIANT
}  // namespace atp::check
