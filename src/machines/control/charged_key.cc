// SPDX-License-Identifier: Apache-2.0
#include "control/charged_key.h"

#include <optional>

#include "control/session_code.h"
#include "wire/message_code.h"

namespace atp::control {

std::uint32_t charged_key(const Tenants& tenants, const wire::Joined& joined, std::span<const std::byte> bytes) {
    const auto coded = wire::code_of<wire::JoinedCode>(bytes);
    const auto found = coded ? tenants.find(coded->part.key) : std::nullopt;
    if (!found || !found->may_join_for(coded->part.charged) || !tenants.find(coded->part.charged)) return 0;
    const SessionCode code(found->key->key, joined.nonce, coded->part.boot, key_of(joined));
    return code.fits(*coded, Direction::down) ? coded->part.charged : 0;
}

}  // namespace atp::control
