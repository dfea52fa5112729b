// SPDX-License-Identifier: Apache-2.0
// Figures as files, and the page that shows them all.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "figure/figure.h"

namespace atp::figure {

struct Drawn {
    const Figure* figure = nullptr;
    Drawing drawing;
};

// The command that repeats a figure.
[[nodiscard]] std::string command_of(std::string_view id, const LabOptions& options);
// Markdown. Pictures and points lie in `folder`, beside the page.
[[nodiscard]] std::string page_of(std::span<const Drawn> drawn, const LabOptions& options, std::string_view folder);

// Writes ID.csv and ID.svg, into a folder that is made where there is none; nothing of what was skipped. The error
// names the file and the reason.
[[nodiscard]] tl::expected<void, std::string> write_files(const Drawn& drawn, const std::filesystem::path& folder);
[[nodiscard]] tl::expected<void, std::string> write_file(const std::filesystem::path& path, std::string_view text);
[[nodiscard]] tl::expected<void, std::string> make_folder(const std::filesystem::path& folder);

}  // namespace atp::figure
