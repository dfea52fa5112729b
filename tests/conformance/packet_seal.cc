// SPDX-License-Identifier: Apache-2.0
#include "packet_seal.h"

#include <array>

#include "crypto/linear_code.h"
#include "seal_vectors.h"
#include "wire/packet.h"

namespace atp::conformance {
namespace {

using crypto::code_prime;
__extension__ using Wide = __int128;

constexpr unsigned limb_bits = 16;
constexpr std::size_t limbs = 4;

std::uint64_t residue(Wide value) {
    const Wide rest = value % Wide{code_prime};
    return static_cast<std::uint64_t>(rest < 0 ? rest + Wide{code_prime} : rest);
}

unsigned bits_of(std::uint64_t form) { return form == ATP_DTYPE_INT16 ? 16 : form == ATP_DTYPE_INT8 ? 8 : 32; }

// The first element has the most weight.
std::int64_t number_of_digits(std::uint64_t form, std::uint32_t word) {
    const unsigned bits = bits_of(form);
    std::int64_t number = 0;
    for (unsigned shift = 32; shift != 0;) {
        shift -= bits;
        const auto digit = static_cast<std::int64_t>(std::uint64_t{word >> shift} << (64 - bits)) >> (64 - bits);
        number = (number << bits) + digit;
    }
    return number;
}

}  // namespace

std::uint64_t mask_of(const PacketSeal& seal, std::uint32_t x) {
    std::array<std::byte, 16> message{};
    wire::store_u16(message.data(), static_cast<std::uint16_t>(seal.channel));
    wire::store_u64(message.data() + 2, seal.number);
    message[10] = static_cast<std::byte>(seal.form);
    message[11] = static_cast<std::byte>(seal.scale);
    wire::store_u16(message.data() + 12, static_cast<std::uint16_t>(seal.purpose));
    wire::store_u16(message.data() + 14, static_cast<std::uint16_t>(x));
    const auto code = crypto::code16(seal_after({}).key("packet masks"), {message});
    return wire::load_u64(code.data()) % code_prime;
}

std::uint64_t code_of_packet(const PacketSeal& seal, const std::vector<std::uint32_t>& words) {
    const crypto::LinearCode code(seal_after({}).key("packet factors"), seal.channel);
    crypto::LinearCode::Factors factors;
    code.read(0, words.size(), factors);
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::uint64_t product = residue(Wide{factors.of[at]} * number_of_digits(seal.form, words[at]));
        sum = crypto::code_sum(sum, product);
    }
    return sum;
}

std::vector<std::uint32_t> proof_of(const PacketSeal& seal, std::uint32_t worker, std::uint32_t workers,
                                    const std::vector<std::uint32_t>& words) {
    const std::uint64_t next = worker + 1 == workers ? 0 : mask_of(seal, worker + 1);
    const std::uint64_t mask = residue(Wide{mask_of(seal, worker)} - Wide{next});
    const std::uint64_t tag = crypto::code_sum(code_of_packet(seal, words), mask);
    std::vector<std::uint32_t> proof;
    for (std::size_t limb = 0; limb < limbs; ++limb) {
        proof.push_back(static_cast<std::uint32_t>(tag >> limb * limb_bits & 0xFFFFU));
    }
    return proof;
}

void add_elements(std::uint64_t form, const std::vector<std::uint32_t>& words, std::vector<std::uint32_t>& sum) {
    const unsigned bits = bits_of(form);
    sum.resize(words.size());
    for (std::size_t at = 0; at < words.size(); ++at) {
        std::uint32_t added = 0;
        for (unsigned shift = 0; shift < 32; shift += bits) {
            const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
            added |= static_cast<std::uint32_t>((((sum[at] >> shift) + (words[at] >> shift)) & mask) << shift);
        }
        sum[at] = added;
    }
}

bool proves(const PacketSeal& seal, const std::vector<std::uint32_t>& sum, const std::vector<std::uint32_t>& proof) {
    Wide tag = 0;
    for (std::size_t limb = 0; limb < limbs; ++limb) tag += Wide{proof[limb]} << limb * limb_bits;
    return residue(tag) == crypto::code_sum(code_of_packet(seal, sum), mask_of(seal, 0));
}

}  // namespace atp::conformance
