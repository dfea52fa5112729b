// SPDX-License-Identifier: Apache-2.0
#include "figure/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

namespace atp::figure {
namespace {

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

tl::unexpected<std::string> cannot_write(const std::filesystem::path& path, const std::string& reason) {
    return tl::unexpected(fmt::format("cannot write {}: {}", path.string(), reason));
}

}  // namespace

tl::expected<void, std::string> make_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return cannot_write(folder, error.message());
    return {};
}

tl::expected<void, std::string> write_file(const std::filesystem::path& path, std::string_view text) {
    std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "w"));
    if (!file) return cannot_write(path, std::strerror(errno));
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    // A full disk may cause an error at the last bytes only.
    if (std::fclose(file.release()) != 0 || !written) return cannot_write(path, std::strerror(errno));
    return {};
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace atp::figure
