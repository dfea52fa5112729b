// SPDX-License-Identifier: Apache-2.0
#include "xdp/link_rate.h"

#include <linux/ethtool.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "protocol/virtual_queue.h"
#include "xdp/ethtool.h"

namespace atp::xdp {
namespace {

// Three masks of words, of which the kernel says how many there are.
constexpr std::size_t most_mask_bytes = std::size_t{3} * 127 * sizeof(std::uint32_t);

bool is_hardware(const std::string& interface) {
    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    if (!ask_driver(interface, &driver)) return false;
    // Hardware, also that of a virtual machine, is on a bus. The driver of tun and tap names one, too.
    return driver.bus_info[0] != '\0' && std::string_view(driver.driver) != "tun";
}

// False if the driver does not answer. `words`: of a mask.
bool read_settings(const std::string& interface, int words, ethtool_link_settings& settings) {
    settings.cmd = ETHTOOL_GLINKSETTINGS;
    settings.link_mode_masks_nwords = static_cast<std::int8_t>(words);
    std::array<std::byte, sizeof settings + most_mask_bytes> buffer{};
    std::memcpy(buffer.data(), &settings, sizeof settings);
    const bool answers = ask_driver(interface, buffer.data());
    std::memcpy(&settings, buffer.data(), sizeof settings);
    return answers;
}

}  // namespace

std::optional<std::uint64_t> link_rate_of(const std::string& interface) {
    if (!is_hardware(interface)) return std::nullopt;
    ethtool_link_settings settings{};
    // The first answer is the number of words that it requires, negated.
    if (!read_settings(interface, 0, settings) || settings.link_mode_masks_nwords >= 0) return std::nullopt;
    if (!read_settings(interface, -settings.link_mode_masks_nwords, settings)) return std::nullopt;
    if (settings.speed == static_cast<std::uint32_t>(SPEED_UNKNOWN)) return std::nullopt;
    const std::uint64_t rate = settings.speed * std::uint64_t{1'000'000};
    return rate >= ATP_QUEUE_LEAST_RATE && rate <= ATP_QUEUE_MOST_RATE ? std::optional(rate) : std::nullopt;
}

}  // namespace atp::xdp
