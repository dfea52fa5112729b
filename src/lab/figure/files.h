// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files. The errors contain the path and the reason.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace atp::figure {

[[nodiscard]] tl::expected<void, std::string> write_file(const std::filesystem::path& path, std::string_view text);
[[nodiscard]] tl::expected<void, std::string> make_folder(const std::filesystem::path& folder);
// Empty if there is no such file.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace atp::figure
