// SPDX-License-Identifier: Apache-2.0
#include "shm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace atp::shm {
namespace {

constexpr int fixed_size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Failure failed(int code, std::string text) {
    return fail_with_errno(Operation::open, code, "shared memory", std::move(text));
}

}  // namespace

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
    net::Descriptor descriptor(memfd_create("atp", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!descriptor.valid()) return failed(errno, {});
    const auto length = static_cast<off_t>(bytes);
    // Without allocated pages, the first access of any rank could end that rank.
    const int code = posix_fallocate(descriptor.number(), 0, length);
    if (code != 0) return failed(code, "no room for the memory that the ranks of this host share");
    if (fcntl(descriptor.number(), F_ADD_SEALS, fixed_size) != 0) return failed(errno, {});
    return map(std::move(descriptor), bytes);
}

Result<SharedMemory> SharedMemory::adopt(net::Descriptor descriptor, std::size_t bytes) {
    const int seals = fcntl(descriptor.number(), F_GET_SEALS);
    struct stat facts {};
    if (seals < 0 || (seals & fixed_size) != fixed_size || fstat(descriptor.number(), &facts) != 0 ||
        facts.st_size != static_cast<off_t>(bytes)) {
        return fail(Operation::open, Reason::rejected, "shared memory", "its owner may change its size");
    }
    return map(std::move(descriptor), bytes);
}

Result<SharedMemory> SharedMemory::map(net::Descriptor descriptor, std::size_t bytes) {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor.number(), 0);
    if (data == MAP_FAILED) return failed(errno, {});
    return SharedMemory(std::move(descriptor), static_cast<std::byte*>(data), bytes);
}

SharedMemory::~SharedMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

}  // namespace atp::shm
