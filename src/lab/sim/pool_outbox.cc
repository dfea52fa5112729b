// SPDX-License-Identifier: Apache-2.0
#include "sim/pool_outbox.h"

#include <algorithm>
#include <cstring>

#include "sim/processes.h"

namespace atp::sim {

std::span<std::byte> PoolOutbox::reserve(std::size_t max_bytes) {
    PacketPool& pool = processes_.pool();
    release();
    last_ = pool.allocate(processes_.id());
    return pool.room(*last_).first(std::min(max_bytes, pool.capacity()));
}

void PoolOutbox::commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) {
    processes_.pool().resize(*last_, bytes);
    processes_.note_sent(from_, processes_.pool().bytes(*last_));
    congested_ = ecn == wire::Ecn::congested;
    send(to);
}

bool PoolOutbox::borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    PacketPool& pool = processes_.pool();
    release();
    const auto same = std::ranges::find(received_, bytes.data(), [&](PacketId id) { return pool.data(id); });
    if (same != received_.end()) {
        last_ = *same;
        pool.retain(*same);
    } else {
        last_ = pool.allocate(processes_.id());
        std::memcpy(pool.data(*last_), bytes.data(), bytes.size());
    }
    pool.resize(*last_, bytes.size());
    congested_ = ecn == wire::Ecn::congested;
    send(to);
    return true;
}

bool PoolOutbox::repeat(const wire::Address& to) {
    if (!last_) return false;
    send(to);
    return true;
}

void PoolOutbox::send(const wire::Address& to) {
    PacketPool& pool = processes_.pool();
    pool.retain(*last_);
    pool.set_sender(*last_, from_);
    processes_.send(from_, *last_, to, congested_, now_);
}

void PoolOutbox::release() {
    if (last_) processes_.pool().release(*last_);
    last_.reset();
}

}  // namespace atp::sim
