// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace atp::apps {

// Tells a service manager such as systemd what this process does (sd_notify(3)). Without one, calls do nothing.
//
// Ownership: owns no descriptor; each call opens a socket and closes it.
// Calling order: ready() when the service can be used; around a change of settings reloading() and ready(); stopping()
//   at the end. If watchdog_interval() has a value, alive() at least so often.
// Threads: one. Failure: none; a manager that does not listen gets nothing.
class ServiceNotice {
  public:
    // Reads the environment.
    ServiceNotice();

    void ready(std::string_view status) const;
    void reloading() const;
    void stopping() const;
    void alive() const { send("WATCHDOG=1"); }

    // Half of the time after which the manager ends a process that does not say it is alive; nullopt: never.
    [[nodiscard]] std::optional<Duration> watchdog_interval() const { return interval_; }

  private:
    void send(std::string_view state) const;

    std::string socket_;  // path, or @name of an abstract one; empty: no manager
    std::optional<Duration> interval_{};
};

}  // namespace atp::apps
