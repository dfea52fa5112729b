// SPDX-License-Identifier: Apache-2.0
// Writes figures to files, and a page with all of them.
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

// The command line that reproduces a figure.
[[nodiscard]] std::string command_of(std::string_view id, const LabOptions& options);
// Markdown. The page refers to pictures and points in `folder`, beside the page. `provenance` is the line that
// tools/provenance.py prints.
[[nodiscard]] std::string page_of(std::span<const Drawn> drawn, const LabOptions& options, std::string_view folder,
                                  std::string_view provenance);

// The name of a figure's files without their endings: its id, and with --real another one.
[[nodiscard]] std::string file_of(const Figure& figure, const LabOptions& options);
// The page of all figures, without its folder.
[[nodiscard]] std::string page_name(const LabOptions& options);

// Writes the points (csv) and the picture (svg) to a folder, which is created if missing. A skipped figure writes
// nothing. The error contains the file and the reason.
[[nodiscard]] tl::expected<void, std::string> write_files(const Drawn& drawn, const LabOptions& options,
                                                          const std::filesystem::path& folder);

}  // namespace atp::figure
