// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <exception>

#include "store/store.h"

namespace atp::python {

// The store that PyTorch hands to every backend, as communicators want it.
//
// Shares: the c10d store. Threads: as that one's, usually one at a time. Failure: as store::Store says; whatever the
// c10d store throws becomes Reason::failed. A signal that Python has a handler for, which raises, ends a wait with
// Reason::closed.
class StoreAdapter final : public store::Store {
  public:
    explicit StoreAdapter(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

    [[nodiscard]] Result<void> set(std::string_view key, std::string_view value) override;
    [[nodiscard]] Result<std::int64_t> add(std::string_view key, std::int64_t delta) override;
    [[nodiscard]] Result<void> wait(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> missing(std::span<const std::string> keys) override;
    // A c10d store cannot tell which keys begin so: it removes none, and they go with the store.
    [[nodiscard]] Result<std::size_t> remove(std::string_view prefix) override;
    void close() noexcept override {}

    // What a signal's handler has raised during a wait.
    void rethrow_interruption() const {
        if (interruption_) std::rethrow_exception(interruption_);
    }

  private:
    std::exception_ptr interruption_;
    c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace atp::python
