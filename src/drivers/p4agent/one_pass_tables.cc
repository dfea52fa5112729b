// SPDX-License-Identifier: Apache-2.0
#include "p4agent/one_pass_tables.h"

#include <utility>

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

OnePassTables::TokenEntry OnePassTables::add_entry(const Served& served, std::uint64_t token) {
    return {.token = token,
            .handle = bmv2_.add_entry(table, {big_endian(served.job.job, 4), big_endian(token, 8)}, action_of(served))};
}

void OnePassTables::remove(const TokenEntry& entry) {
    if (entry.handle) bmv2_.remove_entry(table, *entry.handle);
}

void OnePassTables::change(const TokenEntry& entry, const Served& served) {
    if (entry.handle) bmv2_.change_entry(table, *entry.handle, action_of(served));
}

bool OnePassTables::admit(const control::AdmittedJob& job, std::uint16_t slot) {
    Served served{.job = job, .slot = slot};
    served.entry = add_entry(served, job.token);
    if (!served.entry.handle) return false;
    served_.insert_or_assign(job.key(), std::move(served));
    return true;
}

void OnePassTables::dismiss(const control::JobKey& job) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    remove(found->second.entry);
    for (const auto& [channel, entry] : found->second.groups) remove(entry);
    served_.erase(found);
}

void OnePassTables::learn_group(const control::ChannelKey& channel, std::uint64_t group_number) {
    const auto found = served_.find(channel.of_job());
    if (found == served_.end()) return;
    TokenEntry& entry = found->second.groups[channel.channel];
    if (entry.token == group_number) return;
    remove(entry);
    entry = add_entry(found->second, group_number);
}

void OnePassTables::set_level(const control::JobKey& job, std::uint8_t level) {
    const auto found = served_.find(job);
    if (found == served_.end() || found->second.job.level == level) return;
    found->second.job.level = level;
    change(found->second.entry, found->second);
    for (const auto& [channel, entry] : found->second.groups) change(entry, found->second);
}

}  // namespace atp::p4agent
