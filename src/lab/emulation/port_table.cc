// SPDX-License-Identifier: Apache-2.0
#include "emulation/port_table.h"

#include <bit>

namespace atp::emulation {

bool emulates(const PortTableConfig& config) { return emulates(config.in) || emulates(config.out); }

PortTable::PortTable(const PortTableConfig& config)
    : config_(config),
      entries_(config.peers, Entry{.peer = {}, .in = {config.in, 0}, .out = {config.out, 0}}),
      buckets_(std::bit_ceil(std::size_t{config.peers} * 2 + 1), none) {
    for (std::uint32_t at = config.peers; at != 0; --at) {
        entries_[at - 1].chained = free_;
        free_ = at - 1;
    }
}

EmulatedPort* PortTable::in(const wire::Address& from, Time now) {
    Entry* const entry = entry_of(from, now);
    return entry == nullptr ? nullptr : &entry->in;
}

EmulatedPort* PortTable::out(const wire::Address& to, Time now) {
    Entry* const entry = entry_of(to, now);
    return entry == nullptr ? nullptr : &entry->out;
}

PortTable::Entry* PortTable::entry_of(const wire::Address& peer, Time now) {
    std::uint32_t at = find(peer);
    if (at == none) at = create(peer, now);
    if (at == none) {
        ++refused_;
        return nullptr;
    }
    entries_[at].used = now;
    if (at != newest_) {
        take_out(at);
        put_first(at);
    }
    return &entries_[at];
}

std::uint32_t PortTable::find(const wire::Address& peer) {
    // Packets often arrive in bursts from one peer.
    if (newest_ != none && entries_[newest_].peer == peer) return newest_;
    std::uint32_t at = bucket_of(peer);
    while (at != none && entries_[at].peer != peer) at = entries_[at].chained;
    return at;
}

std::uint32_t PortTable::create(const wire::Address& peer, Time now) {
    forget_idle(now);
    if (free_ == none) return none;
    const std::uint32_t at = free_;
    Entry& entry = entries_[at];
    free_ = entry.chained;
    entry.peer = peer;
    PortConfig in = config_.in;
    PortConfig out = config_.out;
    if (created_ >= config_.lossy_peers) in.loss = out.loss = 0;
    entry.in = {in, config_.seed, created_ * 2};
    entry.out = {out, config_.seed, created_ * 2 + 1};
    std::uint32_t& bucket = bucket_of(peer);
    entry.chained = bucket;
    bucket = at;
    put_first(at);
    ++size_;
    ++created_;
    return at;
}

void PortTable::forget_idle(Time now) {
    while (oldest_ != none && forgettable(entries_[oldest_], now)) forget(oldest_);
}

// Usually the queues are empty before a peer counts as idle. At a very low rate, a packet may still be held; with a new
// port, the next packet would overtake it.
bool PortTable::forgettable(const Entry& entry, Time now) const {
    return now - entry.used >= config_.forget_after && entry.in.idle(now) && entry.out.idle(now);
}

void PortTable::forget(std::uint32_t at) {
    Entry& entry = entries_[at];
    forgotten_.in += entry.in.counters();
    forgotten_.out += entry.out.counters();
    std::uint32_t* link = &bucket_of(entry.peer);
    while (*link != at) link = &entries_[*link].chained;
    *link = entry.chained;
    take_out(at);
    entry.chained = free_;
    free_ = at;
    --size_;
}

void PortTable::put_first(std::uint32_t at) {
    entries_[at].newer = none;
    entries_[at].older = newest_;
    (newest_ == none ? oldest_ : entries_[newest_].newer) = at;
    newest_ = at;
}

void PortTable::take_out(std::uint32_t at) {
    const Entry& entry = entries_[at];
    (entry.newer == none ? newest_ : entries_[entry.newer].older) = entry.older;
    (entry.older == none ? oldest_ : entries_[entry.older].newer) = entry.newer;
}

PortPairCounters PortTable::totals() const {
    PortPairCounters totals = forgotten_;
    for (std::uint32_t at = newest_; at != none; at = entries_[at].older) {
        totals.in += entries_[at].in.counters();
        totals.out += entries_[at].out.counters();
    }
    return totals;
}

std::vector<PeerPorts> PortTable::peers() const {
    std::vector<PeerPorts> peers;
    peers.reserve(size_);
    for (std::uint32_t at = newest_; at != none; at = entries_[at].older) {
        const Entry& entry = entries_[at];
        peers.push_back({entry.peer, {entry.in.counters(), entry.out.counters()}});
    }
    return peers;
}

}  // namespace atp::emulation
