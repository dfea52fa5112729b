// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <exception>

#include "store/store.h"

namespace atp::python {

// Adapts the c10d store that PyTorch hands to every backend to store::Store.
//
// Ownership: shares the c10d store.
// Threads: those that the c10d store allows, usually one at a time.
// Failure: as store::Store documents. An exception of the c10d store becomes Reason::failed. If Python's handler of a
//   signal raises during a wait, the wait fails with Reason::closed, and rethrow_interruption() throws the exception.
class StoreAdapter final : public store::Store {
  public:
    explicit StoreAdapter(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

    [[nodiscard]] Result<void> set(std::string_view key, std::string_view value) override;
    [[nodiscard]] Result<std::int64_t> add(std::string_view key, std::int64_t delta) override;
    [[nodiscard]] Result<void> wait(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> missing(std::span<const std::string> keys) override;
    // A c10d store cannot list keys by prefix, so this removes none. The keys live as long as the store.
    [[nodiscard]] Result<std::size_t> remove(std::string_view prefix) override;
    void close() noexcept override {}

    // Throws what a signal handler raised during a wait; does nothing if none did.
    void rethrow_interruption() const {
        if (interruption_) std::rethrow_exception(interruption_);
    }

  private:
    std::exception_ptr interruption_;
    c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace atp::python
