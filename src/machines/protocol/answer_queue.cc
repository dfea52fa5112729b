// SPDX-License-Identifier: Apache-2.0
#include "protocol/answer_queue.h"

#include <bit>

namespace atp::protocol {
namespace {

std::size_t capacity_of(const ChannelConfig& channel, const Membership& membership) {
    // Room for the ACKs of 2W fragments, of which a fragment can have two, and for a few requests to every unit.
    return 4U * channel.window() + 8U * membership.units() + 64U;
}

}  // namespace

AnswerQueue::AnswerQueue(const ChannelConfig& channel, const Membership& membership)
    : channel_(channel), membership_(membership), answers_(capacity_of(channel, membership)) {}

bool AnswerQueue::is_current(const Answer& answer, const FragmentRecord& record) {
    const bool with_result = answer.type == ATP_TYPE_ACK;
    return record.seq == answer.seq && with_result == (record.state == FragmentRecord::State::complete);
}

atp_header AnswerQueue::header_of(const Answer& answer, const FragmentRecord& record) const {
    const bool with_result = answer.type == ATP_TYPE_ACK;
    std::uint16_t flags = answer.flags;
    std::uint32_t argument = with_result ? record.next_index : 0;
    if (answer.type == ATP_TYPE_WAIT && record.mismatched) argument = ATP_WAIT_MISMATCHED;
    if (with_result && record.plain) flags |= ATP_FLAG_PLAIN;
    if (with_result && record.ecn) flags |= ATP_FLAG_ECN;
    if (with_result && record.ecn_down) flags |= ATP_FLAG_ECN_DOWN;
    if (with_result && channel_.audit) flags |= ATP_FLAG_AUDIT;
    if (with_result && record.proves_result()) flags |= ATP_FLAG_PROOF;
    if (with_result && record.delivery.one_sender) flags |= ATP_FLAG_ONE_SENDER;
    const bool for_owner = with_result && !answer.without_lanes && record.delivery.adds_at_home(record.delivery.owner);
    if (for_owner && !record.without_owner) flags |= ATP_FLAG_WHOLE;
    const bool one_unit = std::has_single_bit(answer.units);
    const auto unit = static_cast<unsigned>(std::countr_zero(answer.units));
    atp_header header = channel_.header_of(answer.type, answer.seq);
    header.flags = flags;
    header.hop = answer.hop;
    header.lanes = !with_result ? answer.requested : answer.without_lanes ? std::uint8_t{0} : record.lanes_of_ack();
    header.scale = with_result ? record.scale : answer.scale;
    header.worker = answer.worker;
    header.index = record.index;
    header.argument = argument;
    header.peer = with_result && record.delivery.is_owned() ? record.delivery.owner : answer.cause.worker;
    header.sending = answer.cause.sending;
    header.bitmap0 = answer.members;
    header.mask0 = one_unit ? membership_.unit_mask(unit) : answer.members;
    header.bitmap1 = answer.units;
    header.mask1 = membership_.all_units();
    return header;
}

}  // namespace atp::protocol
