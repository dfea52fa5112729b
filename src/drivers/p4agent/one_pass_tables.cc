// SPDX-License-Identifier: Apache-2.0
#include "p4agent/one_pass_tables.h"

#include <algorithm>

namespace atp::p4agent {
namespace {

constexpr const char* table = "jobs";

}  // namespace

void OnePassTables::clear() { bmv2_.clear_table(table); }

Bmv2::Action OnePassTables::action_of(const Served& served) {
    const control::AdmittedJob& job = served.job;
    return {.name = "admit",
            .arguments = {big_endian(job.level, 1), big_endian(job.token, 8), big_endian(served.slot, 2)}};
}

bool OnePassTables::add_entry(Served& served, std::uint64_t token) {
    const auto handle =
        bmv2_.add_entry(table, {big_endian(served.job.job, 4), big_endian(token, 8)}, action_of(served));
    if (handle) served.entries.push_back({.token = token, .handle = *handle});
    return handle.has_value();
}

bool OnePassTables::admit(const control::AdmittedJob& job, std::uint16_t slot) {
    Served served{.job = job, .slot = slot};
    if (!add_entry(served, job.token)) return false;
    served_.insert_or_assign(job.key(), std::move(served));
    return true;
}

void OnePassTables::dismiss(const control::JobKey& job) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    for (const TokenEntry& entry : found->second.entries) bmv2_.remove_entry(table, entry.handle);
    served_.erase(found);
}

void OnePassTables::learn_group(const control::ChannelKey& channel, std::uint64_t group_number) {
    const auto found = served_.find(channel.of_job());
    if (found == served_.end()) return;
    const std::vector<TokenEntry>& entries = found->second.entries;
    if (std::ranges::find(entries, group_number, &TokenEntry::token) != entries.end()) return;
    static_cast<void>(add_entry(found->second, group_number));
}

void OnePassTables::set_level(const control::JobKey& job, std::uint8_t level) {
    const auto found = served_.find(job);
    if (found == served_.end() || found->second.job.level == level) return;
    found->second.job.level = level;
    for (const TokenEntry& entry : found->second.entries)
        bmv2_.change_entry(table, entry.handle, action_of(found->second));
}

}  // namespace atp::p4agent
