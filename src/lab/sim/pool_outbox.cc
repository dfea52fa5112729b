// SPDX-License-Identifier: Apache-2.0
#include "sim/pool_outbox.h"

#include <algorithm>
#include <cstring>

#include "sim/processes.h"

namespace atp::sim {

std::span<std::byte> PoolOutbox::reserve(std::size_t max_bytes) {
    PacketPool& pool = processes_.pool();
    return pool.next_room().first(std::min(max_bytes, pool.capacity()));
}

void PoolOutbox::commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) {
    PacketPool& pool = processes_.pool();
    const PacketId packet = pool.allocate(processes_.id());
    pool.resize(packet, bytes);
    processes_.note_sent(from_, pool.bytes(packet));
    keep(packet, ecn);
    send(to);
}

bool PoolOutbox::borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    PacketPool& pool = processes_.pool();
    const auto same = std::ranges::find(received_, bytes.data(), [&](PacketId id) { return pool.data(id); });
    PacketId packet{};
    if (same != received_.end()) {
        packet = *same;
        pool.retain(packet);
    } else {
        packet = pool.allocate(processes_.id());
        std::memcpy(pool.data(packet), bytes.data(), bytes.size());
    }
    pool.resize(packet, bytes.size());
    keep(packet, ecn);
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

void PoolOutbox::keep(PacketId packet, wire::Ecn ecn) {
    release();
    last_ = packet;
    congested_ = ecn == wire::Ecn::congested;
}

}  // namespace atp::sim
