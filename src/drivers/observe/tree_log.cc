// SPDX-License-Identifier: Apache-2.0
#include "observe/tree_log.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.h"

namespace atp::observe {
namespace {

using Kind = control::TreeNotice::Kind;

// A member without a rank is a switch.
void write_member(Log& log, LogEvent of_worker, LogEvent of_leaf, const control::TreeNotice& notice) {
    const LogEvent event = notice.rank ? of_worker : of_leaf;
    const LogField name = notice.rank ? LogField("rank", *notice.rank) : LogField("unit", notice.unit);
    if (notice.reason.empty()) {
        log.write(event, {job_field(notice.job), {"channel", notice.channel}, name, {"address", notice.address}});
    } else {
        log.write(event, {job_field(notice.job),
                          {"channel", notice.channel},
                          name,
                          {"address", notice.address},
                          {"reason", notice.reason}});
    }
}

// A host has many ports.
std::uint64_t source_of(const wire::Address& address) {
    return std::max<std::uint64_t>(address.with_port(0).hash(), 1);
}

// `address`: of no family if this switch itself is the reason.
void write_failure(Log& log, LogEvent event, const control::TreeNotice& notice) {
    if (notice.address.family() == wire::Family::none) {
        log.write(event, {job_field(notice.job), {"channel", notice.channel}, {"reason", notice.reason}});
    } else {
        log.write(event,
                  {job_field(notice.job),
                   {"channel", notice.channel},
                   {"address", notice.address},
                   {"reason", notice.reason}},
                  source_of(notice.address));
    }
}

// A tenant has lines of its own: neither hosts without a key nor other tenants hide them.
std::uint64_t source_of_tenant(const std::string& name) {
    std::uint64_t hash = 0;
    for (const char c : name) hash = mix64(hash + static_cast<unsigned char>(c));
    return std::max<std::uint64_t>(hash, 1);
}

// The two below are the audit of a switch with tenants.
void write_formed(Log& log, const control::TreeNotice& notice) {
    std::vector<LogField> fields{
        job_field(notice.job), {"channel", notice.channel}, {"level", notice.level}, {"address", notice.address}};
    if (!notice.job_name.empty()) fields.emplace_back("job_name", notice.job_name);
    if (notice.tenant.empty()) return log.write(LogEvent::job_formed, fields, source_of(notice.address));
    fields.insert(fields.end(), {{"tenant", notice.tenant}, {"key", notice.key}, {"channels", notice.channels}});
    log.write(LogEvent::job_formed, fields, source_of_tenant(notice.tenant));
}

void write_refused(Log& log, const control::TreeNotice& notice) {
    if (notice.tenant.empty()) return write_failure(log, LogEvent::job_refused, notice);
    log.write(LogEvent::job_refused,
              {job_field(notice.job),
               {"channel", notice.channel},
               {"address", notice.address},
               {"tenant", notice.tenant},
               {"key", notice.key},
               {"reason", notice.reason}},
              source_of_tenant(notice.tenant));
}

}  // namespace

void write_notice(Log& log, const control::TreeNotice& notice) {
    switch (notice.kind) {
        case Kind::job_formed: write_formed(log, notice); break;
        case Kind::job_ready:
            log.write(LogEvent::job_ready,
                      {job_field(notice.job), {"channel", notice.channel}, {"members", notice.members}});
            break;
        case Kind::job_left: log.write(LogEvent::job_left, {job_field(notice.job), {"channel", notice.channel}}); break;
        case Kind::job_failed: write_failure(log, LogEvent::job_failed, notice); break;
        case Kind::job_refused: write_refused(log, notice); break;
        case Kind::member_joined: write_member(log, LogEvent::member_joined, LogEvent::leaf_joined, notice); break;
        case Kind::member_left: write_member(log, LogEvent::member_left, LogEvent::leaf_left, notice); break;
        case Kind::member_lost: write_member(log, LogEvent::member_lost, LogEvent::leaf_lost, notice); break;
        case Kind::parent_ready:
            log.write(LogEvent::parent_ready,
                      {job_field(notice.job), {"channel", notice.channel}, {"address", notice.address}});
            break;
        case Kind::parent_lost: write_failure(log, LogEvent::parent_lost, notice); break;
    }
}

}  // namespace atp::observe
