// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/descriptor.h"

namespace atp::apps {

// The one UDP socket that a service manager opened for this process (sd_listen_fds(3)); nullopt: none. Only the first
// call has it. Failure: there are several, or it is another kind of socket.
[[nodiscard]] Result<std::optional<int>> socket_of_manager();

// Tells a service manager such as systemd what this process does (sd_notify(3)). Without one, calls do nothing.
//
// Ownership: owns a socket, from the start on, so that it has one also if the process runs out of descriptors.
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

    std::string manager_;     // path, or @name of an abstract socket; empty: none
    net::Descriptor socket_;  // not connected
    std::optional<Duration> interval_{};
};

}  // namespace atp::apps
