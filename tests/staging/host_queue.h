// SPDX-License-Identifier: Apache-2.0
// A device that is this processor: does the steps in order on threads of its own, when the test lets it.
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
    ~HostQueue() override;  // does what is left

    Result<void> load_after(void* event) override;
    void load_integers(const staging::Elements& from, float scale, std::byte* lanes, Done done) override;
    void store(const std::byte* lanes, double factor, const staging::Elements& to, Done done) override;
    Result<void> fetch_floats(const staging::Elements& from, std::byte* lanes) override;

    // Loads wait, but for so many from now on.
    void allow(std::size_t loads);
    void release();
    // Like a device: everything from the next step on fails.
    void break_down();

    [[nodiscard]] std::size_t loads() const;
    [[nodiscard]] std::size_t stores() const;
    [[nodiscard]] std::size_t fetches() const;

  private:
    struct Step {
        std::function<void()> work;
        Done done;
    };
    // Steps that follow each other.
    struct Line {
        std::deque<Step> steps;
        std::size_t done = 0;
        std::optional<std::size_t> allowed;  // as many as there are, where it says nothing
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
