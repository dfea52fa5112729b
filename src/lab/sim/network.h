// SPDX-License-Identifier: Apache-2.0
// Carries packets over the links of a fabric and applies the faults of the scenario. It reads the contents of packets
// only for Faults::interfere, a hook of tests, and for the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "random/random.h"
#include "sim/event_queue.h"
#include "sim/fabric.h"
#include "sim/link.h"
#include "sim/packet_pool.h"
#include "sim/scenario.h"
#include "sim/trace.h"

namespace atp::sim {

class Program;

// Ownership: owns links and packets. Borrows the scenario, the fabric, the event queue, the programs (to describe their
//   packets) and the trace; all of them must outlive it.
// Calling order: send() for each packet that a state machine emits. If the top of the event queue is of kind path or
//   loose, take_arrival() removes it and returns the packet and the node; the caller then holds the reference.
class Network {
  public:
    using Programs = std::vector<std::unique_ptr<Program>>;

    Network(const Scenario& scenario, const Fabric& fabric, EventQueue& events, const Programs& programs, Trace* trace);

    // What travels with a packet to the end of its path.
    struct Onward {
        bool congested = false;  // the packet already carries CE
        bool is_report = false;  // it reports that the port of a process is closed
        ProcessId process = no_process;
    };
    // Takes over one reference to the packet in every case.
    void send(LinkId link, PacketId packet, const Onward& onward, Time now);
    void send(LinkId link, PacketId packet, bool congested, Time now) {
        send(link, packet, Onward{.congested = congested}, now);
    }
    // As send(), between two processes of one node: takes no time.
    void deliver_here(NodeId at, PacketId packet, const Onward& onward, Time now);

    [[nodiscard]] Arrival take_arrival(const Event& event);
    // Delivers the packet again at `when`, because the node at the end of the link is paused.
    void defer(const Arrival& arrival, Time when);

    // Delivers the copies that Faults::replay kept, each at a random time shortly after `now`.
    void replay_kept(Time now);
    void drop_kept();

    // While a link is cut, it loses all packets.
    void cut(LinkId link, bool is_cut) { links_[link].cut(is_cut); }

    // Sets the time that a host spends on each packet of this program. The default is none.
    void charge(ProgramId program, const HostCost& cost);

    // Writes a line about a packet at a node to the trace.
    void notify(NodeId at, std::string_view what, PacketId packet, Time now) {
        if (trace_ != nullptr) write_trace(fabric_.nodes[at].name, packet, what, now);
    }

    [[nodiscard]] PacketPool& pool() { return pool_; }
    [[nodiscard]] const Link& link(LinkId id) const { return links_[id]; }
    [[nodiscard]] std::size_t links() const { return links_.size(); }
    [[nodiscard]] std::uint64_t hops() const { return hops_; }

  private:
    void harm_and_carry(LinkId id, Arrival arrival, Time now);
    void carry(LinkId id, Arrival arrival);
    void carry_loose(const Arrival& arrival);
    void keep(const Arrival& arrival);
    Disposition disposition_of(const Link& link, PacketId packet, Time now);
    void notify(const Link& link, PacketId packet, std::string_view what, Time now) {
        if (trace_ != nullptr) write_trace(name_of(link), packet, what, now);
    }
    [[nodiscard]] Link::Service service_of(const Link& link, PacketId packet) const;
    [[nodiscard]] std::string name_of(const Link& link) const;
    void write_trace(std::string_view where, PacketId packet, std::string_view what, Time now);

    const Scenario& scenario_;
    const Fabric& fabric_;
    EventQueue& events_;
    const Programs& programs_;
    Trace* trace_;
    bool harmful_;  // the scenario has faults
    Random random_;
    PacketPool pool_;
    struct Charge {
        std::int64_t packet_ps = 0;
        std::int64_t byte_ps = 0;
    };
    std::vector<Charge> charges_;  // by program
    std::vector<Link> links_;
    unsigned paths_each_;             // event target of path p of link l: l * paths_each_ + p
    std::vector<ArrivalRing> paths_;  // by event target
    std::vector<Arrival> loose_;      // out of order, by event target
    std::vector<std::uint32_t> free_loose_;
    std::vector<Arrival> kept_;  // copies for replay_kept(); bounded
    std::uint64_t hops_ = 0;
};

}  // namespace atp::sim
