// SPDX-License-Identifier: Apache-2.0
#include "check/explore.h"

#include "check/explorer.h"
#include "check/system.h"
#include "control/breaks.h"
#include "endpoint/breaks.h"
#include "protocol/breaks.h"
#include "protocol/variant.h"

namespace atp::check::ATP_VARIANT {

#ifdef ATP_BREAKABLE
namespace {

// The faults of the control plane follow those of protocol/breaks.h, and those of routing follow both.
#define ATP_COUNT_BREAK(name, hazard, what) +1
constexpr unsigned first_control_break = 1 ATP_BREAKS(ATP_COUNT_BREAK);
constexpr unsigned first_routing_break = first_control_break ATP_CONTROL_BREAKS(ATP_COUNT_BREAK);
#undef ATP_COUNT_BREAK

class ActiveBreak {
  public:
    explicit ActiveBreak(unsigned number) {
        if (number < first_control_break) {
            atp_active_break = static_cast<atp_break>(number);
        } else if (number >= first_routing_break) {
            endpoint::active_routing_break = static_cast<endpoint::RoutingBreak>(number - first_routing_break + 1);
        } else {
            control::active_break = static_cast<control::ControlBreak>(number - first_control_break + 1);
        }
    }
    ~ActiveBreak() {
        atp_active_break = ATP_BREAK_none;
        control::active_break = control::ControlBreak::none;
        endpoint::active_routing_break = endpoint::RoutingBreak::none;
    }
    ActiveBreak(const ActiveBreak&) = delete;
    ActiveBreak& operator=(const ActiveBreak&) = delete;
};

}  // namespace

Report explore(const Configuration& configuration, const Limits& limits, unsigned active_break) {
    const ActiveBreak active(active_break);
    return Explorer(configuration, make_system(configuration), limits).run();
}

std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace, unsigned active_break) {
    const ActiveBreak active(active_break);
    Model model(configuration, make_system(configuration));
    return check::replay(model, trace);
}
#else
Report explore(const Configuration& configuration, const Limits& limits) {
    return Explorer(configuration, make_system(configuration), limits).run();
}

std::string replay(const Configuration& configuration, const std::vector<TraceStep>& trace) {
    Model model(configuration, make_system(configuration));
    return check::replay(model, trace);
}
#endif

}  // namespace atp::check::ATP_VARIANT
