// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "p4agent/job_tables.h"

namespace atp::p4agent {

// Table `jobs` of p4/atp.v1model.p4: the job and its token, or the number of a group instead of the token.
class OnePassTables final : public JobTables {
  public:
    explicit OnePassTables(Bmv2& bmv2) : bmv2_(bmv2) {}

    void clear() override;
    [[nodiscard]] bool admit(const control::AdmittedJob& job, std::uint16_t slot) override;
    void dismiss(const control::JobKey& job) override;
    void learn_place(const control::JobKey& /*job*/, const control::AdmittedPlace& /*place*/) override {}
    void learn_group(const control::ChannelKey& channel, std::uint64_t group_number) override;
    void set_level(const control::JobKey& job, std::uint8_t level) override;

  private:
    struct TokenEntry {
        std::uint64_t token = 0;  // or number of a group
        std::optional<Bmv2::Handle> handle{};
    };
    struct Served {
        control::AdmittedJob job;
        std::uint16_t slot = 0;
        TokenEntry entry{};
        std::map<std::uint16_t, TokenEntry> groups{};  // by channel
    };
    [[nodiscard]] static Bmv2::Action action_of(const Served& served);
    [[nodiscard]] TokenEntry add_entry(const Served& served, std::uint64_t token);
    void remove(const TokenEntry& entry);
    void change(const TokenEntry& entry, const Served& served);

    Bmv2& bmv2_;
    std::map<control::JobKey, Served> served_;
};

}  // namespace atp::p4agent
