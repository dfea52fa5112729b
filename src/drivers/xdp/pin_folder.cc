// SPDX-License-Identifier: Apache-2.0
#include "xdp/pin_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace atp::xdp {
namespace {

constexpr const char* usual_bpffs = "/sys/fs/bpf";

bool is_bpffs(const std::string& folder) {
    struct statfs found {};
    return statfs(folder.c_str(), &found) == 0 && static_cast<std::uint32_t>(found.f_type) == BPF_FS_MAGIC;
}

Result<void> make_folder(const std::string& path) {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    if (code) return fail_with_errno(Operation::open, code.value(), path);
    return {};
}

Result<void> mount_where_missing(const std::string& path) {
    if (auto made = make_folder(path); !made) return made;
    if (is_bpffs(path)) return {};
    std::error_code code;
    if (path != usual_bpffs && !std::filesystem::is_empty(path, code)) {
        return fail(Operation::open, Reason::in_use, path,
                    // errors.md, starts, in use: `--xdp-pins` names it
                    "this folder has files and is not on a bpffs: name an empty folder");
    }
    if (mount("bpf", path.c_str(), "bpf", 0, "mode=0700") == 0) return {};
    return fail_with_errno(Operation::open, errno, path,
                           // errors.md, starts, denied
                           "this folder is not on a bpffs, and mounting one needs CAP_SYS_ADMIN: run as root");
}

}  // namespace

Result<PinFolder> PinFolder::open(const std::string& path) {
    if (auto mounted = mount_where_missing(path.starts_with(usual_bpffs) ? usual_bpffs : path); !mounted) {
        return tl::unexpected(mounted.error());
    }
    if (auto made = make_folder(path); !made) return tl::unexpected(made.error());
    net::Descriptor lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock.valid()) return fail_with_errno(Operation::open, errno, path);
    if (flock(lock.number(), LOCK_EX | LOCK_NB) == 0) return PinFolder(std::move(lock));
    if (errno != EWOULDBLOCK) return fail_with_errno(Operation::open, errno, path);
    return fail(Operation::open, Reason::in_use, path,
                // errors.md, starts, in use: `--xdp-pins` names it
                "another switch uses this folder: stop it, or name another folder");
}

}  // namespace atp::xdp
