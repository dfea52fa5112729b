// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.h"

#include <algorithm>

#include "net/clock.h"

namespace atp::store {
namespace {

Failure closed() { return fail(Operation::rendezvous, Reason::closed, {}, "another rank closed the store"); }

}  // namespace

Result<void> MemoryStore::set(std::string_view key, std::string_view value) {
    {
        const Lock lock(mutex_);
        if (closed_) return closed();
        if (const auto stored = table_.set(key, value); !stored) return to_failure(stored.error(), {});
    }
    changed_.notify_all();
    return {};
}

Result<std::int64_t> MemoryStore::add(std::string_view key, std::int64_t delta) {
    Lock lock(mutex_);
    if (closed_) return closed();
    const auto sum = table_.add(key, delta);
    if (!sum) return to_failure(sum.error(), {});
    lock.unlock();
    changed_.notify_all();
    return *sum;
}

Result<void> MemoryStore::wait(std::span<const std::string> keys, Time deadline) {
    Lock lock(mutex_);
    return wait(lock, keys, deadline);
}

Result<std::vector<std::string>> MemoryStore::get_all(std::span<const std::string> keys, Time deadline) {
    Lock lock(mutex_);
    if (auto there = wait(lock, keys, deadline); !there) return Failure(std::move(there).error());
    std::vector<std::string> values;
    values.reserve(keys.size());
    for (const std::string& key : keys) values.push_back(*table_.find(key));
    return values;
}

Result<std::vector<std::string>> MemoryStore::missing(std::span<const std::string> keys) {
    const Lock lock(mutex_);
    if (closed_) return closed();
    return absent(keys);
}

Result<std::size_t> MemoryStore::remove(std::string_view prefix) {
    const Lock lock(mutex_);
    if (closed_) return closed();
    if (const auto checked = check_key(prefix); !checked) return to_failure(checked.error(), {});
    return table_.remove(prefix);
}

void MemoryStore::close() noexcept {
    {
        const Lock lock(mutex_);
        closed_ = true;
    }
    changed_.notify_all();
}

Result<void> MemoryStore::wait(Lock& lock, std::span<const std::string> keys, Time deadline) {
    if (const auto checked = check_keys(keys); !checked) return to_failure(checked.error(), {});
    const Time start = net::now();
    const auto is_there = [this](const std::string& key) { return table_.find(key) != nullptr; };
    for (;;) {
        if (closed_) return closed();
        if (std::ranges::all_of(keys, is_there)) return {};
        const Time now = net::now();
        if (now >= deadline) return keys_not_set(absent(keys), {}, now - start);
        changed_.wait_for(lock, std::min<Duration>(deadline - now, net::longest_sleep));
    }
}

std::vector<std::string> MemoryStore::absent(std::span<const std::string> keys) const {
    std::vector<std::string> names;
    std::ranges::copy_if(keys, std::back_inserter(names),
                         [this](const std::string& key) { return table_.find(key) == nullptr; });
    return names;
}

}  // namespace atp::store
