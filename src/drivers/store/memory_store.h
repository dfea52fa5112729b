// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

#include "store/store.h"
#include "store/store_table.h"

namespace atp::store {

// A store for ranks that are threads of one process. All ranks share one object.
//
// Ownership: owns the keys and values. Calling order: any. Threads: any, concurrently.
// Failure: that of Store; close() ends the store for all ranks.
class MemoryStore : public Store {
  public:
    explicit MemoryStore(const StoreLimits& limits = {}) : table_(limits) {}

    [[nodiscard]] Result<void> set(std::string_view key, std::string_view value) override;
    [[nodiscard]] Result<std::int64_t> add(std::string_view key, std::int64_t delta) override;
    [[nodiscard]] Result<void> wait(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> missing(std::span<const std::string> keys) override;
    [[nodiscard]] Result<std::size_t> remove(std::string_view prefix) override;
    void close() noexcept override;

  private:
    using Lock = std::unique_lock<std::mutex>;
    [[nodiscard]] Result<void> wait(Lock& lock, std::span<const std::string> keys, Time deadline);
    [[nodiscard]] std::vector<std::string> absent(std::span<const std::string> keys) const;

    std::mutex mutex_;
    std::condition_variable changed_;
    StoreTable table_;
    bool closed_ = false;
};

}  // namespace atp::store
