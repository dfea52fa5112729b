// SPDX-License-Identifier: Apache-2.0
// Processor time that this process spends on a part of its work.
#pragma once

#include <ctime>

namespace atp::apps {

// Measures the time of all threads between start() and stop(), except what the calling thread runs in aside().
// start(), aside() and stop() are called by one thread.
class CpuTime {
  public:
    void start() { seconds_ = -read(CLOCK_PROCESS_CPUTIME_ID); }
    void stop() { seconds_ += read(CLOCK_PROCESS_CPUTIME_ID); }
    template <class Call>
    decltype(auto) aside(Call&& call) {
        struct Excluded {
            explicit Excluded(double& total) : seconds(total) {}
            ~Excluded() { seconds -= read(CLOCK_THREAD_CPUTIME_ID) - begin; }
            Excluded(const Excluded&) = delete;
            Excluded& operator=(const Excluded&) = delete;
            double& seconds;
            double begin = read(CLOCK_THREAD_CPUTIME_ID);
        };
        const Excluded excluded(seconds_);
        return call();
    }
    [[nodiscard]] double seconds() const { return seconds_; }

  private:
    static double read(clockid_t clock) {
        timespec time{};
        clock_gettime(clock, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    }

    double seconds_ = 0;
};

}  // namespace atp::apps
