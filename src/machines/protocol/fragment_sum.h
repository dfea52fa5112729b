// SPDX-License-Identifier: Apache-2.0
// Arithmetic of a server on the lanes of one fragment: the sums of a record, and its result in wire format. The server
// decides which packets are added.
//
// A packet of integers has lanes of the record's form or of a wider type. Its audit lane is no part of the sum. Its
// proof words are added modulo 2^32. The functions have no state of their own.
#pragma once

#include <cstddef>

#include "protocol/fragment_record.h"
#include "wire/packet.h"

namespace atp::protocol {

// The elements of a fragment that a packet carries.
struct PacketRange {
    std::size_t first = 0;
    std::size_t end = 0;   // one past the last element
    bool is_last = false;  // the packet tells that the fragment ends here. Only the last rank's last packet is named
};
[[nodiscard]] PacketRange range_of(const FragmentRecords& records, const wire::Packet& packet);
// True if the fragment can have the number of elements that earlier packets and this one tell.
[[nodiscard]] bool fits_size(const FragmentRecord& record, const PacketRange& range);
void note_size(FragmentRecord& record, const PacketRange& range);

// Makes the packet's integers the sum. `is_whole`: the packet has the sum of all workers, so the function writes the
// result at once, as floats sum * inverse_scale unless the result stays integers.
void assign_integers(FragmentRecords& records, FragmentRecord& record, const wire::Packet& packet, bool is_whole,
                     double inverse_scale);
void add_integers(FragmentRecords& records, FragmentRecord& record, const wire::Packet& packet);
// Adds the floats of one worker to the exact sum and, at `scale`, to the integer sums.
void add_floats(FragmentRecords& records, FragmentRecord& record, const wire::Packet& packet, double scale);

// True if a result can have the sums as integers of the fragment's form.
[[nodiscard]] bool sums_fit_form(FragmentRecords& records, const FragmentRecord& record);

// Writes the result of a complete set and sets its type. How the numbers travelled does not change it: an element that
// has an integer on all workers is the sum of integers, in mode floats too. Sums that do not fit the form of the
// fragment become floats; with proof words they become int32 if they fit.
void write_result(FragmentRecords& records, FragmentRecord& record, double inverse_scale);

}  // namespace atp::protocol
