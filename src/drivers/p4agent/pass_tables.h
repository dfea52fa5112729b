// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "p4agent/job_tables.h"
#include "protocol/pipeline_cells.h"

namespace atp::p4agent {

// Tables `streams` and `places` of p4/pipeline.v1model.p4. A channel has a stream from 1 to 127, and each of its places
// a number from 1 to 15. The program adds without a look at the token, so a stream that is given to another channel
// must hold no aggregator: the agent frees them first, by the register of tags.
class PassTables final : public JobTables {
  public:
    explicit PassTables(Bmv2& bmv2);

    void clear() override;
    [[nodiscard]] bool admit(const control::AdmittedJob& job, std::uint16_t slot) override;
    void dismiss(const control::JobKey& job) override;
    // The first mask of a place holds.
    void learn_place(const control::JobKey& job, const control::AdmittedPlace& place) override;
    void learn_group(const control::ChannelKey& channel, std::uint64_t group_number) override;
    void set_level(const control::JobKey& job, std::uint8_t level) override;

  private:
    static constexpr std::uint8_t most_streams = ATP_TAG_STREAMS;
    static constexpr std::size_t most_places = 15;

    struct ServedPlace {
        control::AdmittedPlace place;
        std::uint8_t number = 0;
        std::optional<Bmv2::Handle> entry{};
    };
    struct Stream {
        std::uint8_t number = 0;
        Bmv2::Handle entry = 0;
        std::optional<Bmv2::Handle> entry_of_group{};
        std::vector<ServedPlace> places{};
    };
    struct Served {
        control::AdmittedJob job;
        std::uint16_t slot = 0;
        std::map<std::uint16_t, std::uint64_t> groups{};  // by channel
        std::map<std::uint16_t, Stream> streams{};        // by channel
    };

    [[nodiscard]] Stream* stream_of(Served& served, std::uint16_t channel);
    [[nodiscard]] std::optional<Bmv2::Handle> add_stream(const Served& served, std::uint16_t channel,
                                                         std::uint64_t token, std::uint8_t number);
    void add_group(const Served& served, std::uint16_t channel, Stream& stream);
    void show(const Served& served, std::uint8_t stream, ServedPlace& place);
    void hide(ServedPlace& place);
    void free_aggregators(std::uint8_t stream);

    Bmv2& bmv2_;
    std::map<control::JobKey, Served> served_;
    std::deque<std::uint8_t> free_streams_;          // the one that was free for the longest time is first
    std::array<bool, most_streams + 1> was_used_{};  // may hold aggregators
};

}  // namespace atp::p4agent
