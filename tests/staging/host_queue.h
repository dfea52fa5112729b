// SPDX-License-Identifier: Apache-2.0
// A device queue on this processor. A thread executes the loads in order, each when the test allows it. Another thread
// executes the stores in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "staging/device_queue.h"

namespace atp::testing {

class HostQueue final : public staging::DeviceQueue {
  public:
    explicit HostQueue(bool held = false);
    ~HostQueue() override;  // executes the remaining steps

    Result<void> load_after(void* event) override;
    void load_integers(const staging::Elements& from, float scale, std::byte* lanes, Done done) override;
    void store(const std::byte* lanes, double factor, const staging::Elements& to, Done done) override;
    Result<void> fetch_floats(const staging::Elements& from, std::byte* lanes) override;

    // Allows `loads` further loads and holds all later ones.
    void allow(std::size_t loads);
    void release();
    // Makes every later step fail, as after a fault of a device.
    void break_down();

    [[nodiscard]] std::size_t loads() const;
    [[nodiscard]] std::size_t stores() const;
    [[nodiscard]] std::size_t fetches() const;

  private:
    struct Step {
        std::function<void()> work;
        Done done;
    };
    // Steps that one thread executes in order.
    struct Line {
        std::deque<Step> steps;
        std::size_t done = 0;
        std::optional<std::size_t> allowed;  // further steps that may run; nullopt: all
        std::thread thread;
    };

    void add(Line& line, std::function<void()> work, Done done);
    void run(Line& line);
    [[nodiscard]] Result<void> condition() const;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    Line loads_;
    Line stores_;
    std::size_t fetches_ = 0;
    bool broken_ = false;
    bool ending_ = false;
};

}  // namespace atp::testing
