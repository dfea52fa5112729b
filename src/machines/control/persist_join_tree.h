// SPDX-License-Identifier: Apache-2.0
// The saved state of a switch's tree (protocol/archive.h). Before, poll_transmit(), poll_event() and poll_notice() have
// returned nothing. What a tree still had to tell is dropped when another
// state is restored into it.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "control/join_tree.h"
#include "control/persist_messages.h"

namespace atp::control {

// A map whose entries `persist_entry` saves or restores.
template <class Key, class Value, protocol::Archive Archive, class PersistEntry>
void persist_map(std::map<Key, Value>& entries, Archive& archive, PersistEntry&& persist_entry) {
    auto size = static_cast<std::uint16_t>(entries.size());
    archive.value(size);
    if constexpr (Archive::reads) {
        entries.clear();
        for (std::uint16_t i = 0; i < size; ++i) {
            Key key{};
            Value value{};
            persist_entry(key, value);
            entries.emplace(std::move(key), std::move(value));
        }
    } else {
        for (auto& [constant_key, value] : entries) {
            Key key = constant_key;
            persist_entry(key, value);
        }
    }
}

template <protocol::Archive Archive>
void persist_key(ChannelKey& key, Archive& archive) {
    archive.value(key.job), archive.value(key.token), archive.value(key.channel);
}

template <protocol::Archive Archive>
void Departures::persist(Archive& archive) {
    persist_map(entries_, archive, [&](std::pair<ChannelKey, std::uint16_t>& place, Departed& departed) {
        persist_key(place.first, archive), archive.value(place.second);
        archive.value(departed.host.family), archive.bytes(departed.host.host);
        archive.value(departed.nonce), archive.value(departed.epoch), archive.time(departed.until);
    });
    if constexpr (Archive::reads) sort_expiries();
}

template <protocol::Archive Archive>
void QuestionPace::persist(Archive& archive) {
    persist_map(hosts_, archive, [&](wire::Address& address, Host& host) {
        archive.value(address), archive.time(host.next), archive.time(host.until);
        archive.time(host.answers_until), archive.value(host.asked);
    });
    archive.time(look_at_);
}

template <protocol::Archive Archive>
void Branch::Child::persist(Archive& archive) {
    archive.value(address), detector.persist(archive), archive.time(asked_at), persist_unit(unit, archive);
    archive.value(nonce), archive.value(epoch), archive.value(receives_group), archive.value(join_bytes);
    archive.value(key);
    persist_pace(pace, archive);
}

// The table of ranks follows from the children.
template <protocol::Archive Archive>
void Branch::persist(Archive& archive) {
    persist_terms(terms, archive), persist_text(job_name, archive);
    archive.value(level), archive.value(hosts), archive.value(mask), archive.value(present), archive.value(has_racks);
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(bits));
        bool is_rack = racks[bit] != nullptr;
        archive.value(is_rack);
        children[bit].persist(archive);
        if (!is_rack) continue;
        if (racks[bit] == nullptr) racks[bit] = std::make_unique<Rack>();
        Rack& rack = *racks[bit];
        archive.value(rack.mask), archive.value(rack.present);
        for (std::uint32_t members = rack.mask; members != 0; members &= members - 1) {
            rack.members[static_cast<unsigned>(std::countr_zero(members))].persist(archive);
        }
    }
    persist_units(units_below, archive), persist_units(complete_units, archive);
    persist_text(owner.tenant, archive), archive.value(owner.host), archive.value(first_host);
    archive.unread(number), archive.value(spans_hosts), archive.unread(active_at);
    archive.value(receivers), archive.value(has_memory), archive.value(opened);
    archive.value(int32_path), archive.value(int32_lanes);
    archive.value(begun), archive.value(up), archive.value(up_data), archive.value(up_ready);
    up_detector.persist(archive), up_long_path.persist(archive), archive.value(up_narrow);
    archive.value(up_hold), archive.value(up_lost), archive.time(up_next), archive.value(up_asker);
    archive.value(up_nonce), archive.value(up_cookie), archive.time(up_retry_next);
    archive.value(up_ticket);
    archive.value(up_epoch), archive.value(up_order.epoch), archive.value(up_order.number);
    archive.value(group_number), failures.persist(archive), archive.value(missing_units_above);
    persist_map(stated, archive, [&](std::uint16_t& position, std::vector<wire::Statement>& statements) {
        archive.value(position), persist_statements(statements, archive);
    });
    persist_statements(stated_below, archive), persist_statements(stated_above, archive);
    archive.value(unreported);
    pace.persist(archive), persist_pace(pace_above, archive);
    archive.value(group), archive.value(asks_path), archive.value(once_to), archive.value(by_group);
    archive.time(group_next);
    if constexpr (Archive::reads) note_ranks();
}

inline namespace ATP_VARIANT {

// `room` and `pace` are the tree's own: what several trees share is not restored.
template <protocol::Archive Archive>
void JoinTree::persist(Archive& archive) {
    if constexpr (Archive::reads) {
        for (const auto& [key, branch] : branches_) config_.room->give_back(key.of_job());
        outbox_.clear(), events_.clear(), notices_.clear();
        statements_sent_ = {};
    }
    persist_map(branches_, archive, [&](ChannelKey& key, std::unique_ptr<Branch>& branch) {
        if (branch == nullptr) branch = std::make_unique<Branch>();
        persist_key(key, archive), branch->persist(archive);
        if constexpr (Archive::reads) static_cast<void>(config_.room->take(key.of_job(), branch->owner, {}, false));
    });
    persist_map(jobs_, archive, [&](JobKey& key, TreeJob& job) {
        archive.value(key.job), archive.value(key.token), archive.value(job.level), archive.value(job.channels);
    });
    memory_.persist(archive), departures_.persist(archive), config_.pace->persist(archive);
    persist_list(repeats_, archive, [&](Repeat& repeat) {
        archive.value(repeat.transmit.to), persist_message(repeat.transmit.message, archive);
        archive.value(repeat.transmit.near), archive.value(repeat.transmit.padded_bytes);
        archive.value(repeat.left), archive.time(repeat.next);
    });
    persist_map(barred_, archive, [&](ChannelKey& key, Barred& barred) {
        wire::JoiningMessage message = barred.refused;
        persist_key(key, archive), persist_message(message, archive), archive.time(barred.until);
        if (auto* const refused = std::get_if<wire::Refused>(&message)) barred.refused = std::move(*refused);
    });
    archive.time(next_sweep_), archive.value(pause_.lasted), archive.time(pause_.ended);
    archive.time(began_at_), archive.value(last_up_epoch_), archive.value(number_), archive.unread(last_branch_);
    last_ = nullptr;
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
