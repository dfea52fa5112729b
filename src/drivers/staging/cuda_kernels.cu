// SPDX-License-Identifier: Apache-2.0
#include "staging/cuda_kernels.h"

#include "staging/element.h"

namespace atp::staging::cuda {
namespace {

constexpr unsigned threads_of_block = 256;

unsigned blocks_for(std::size_t count) {
    static_assert(elements_of_step <= std::size_t{threads_of_block} * 0x7FFFFFFF);
    return static_cast<unsigned>((count + threads_of_block - 1) / threads_of_block);
}

__device__ std::size_t element_of_thread() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }

template <class Format>
__global__ void load_integers_kernel(const typename Format::Element* elements, std::size_t count, float scale,
                                     std::uint32_t* lanes) {
    const std::size_t at = element_of_thread();
    if (at < count) lanes[at] = integer_lane<Format>(elements[at], scale);
}

template <class Format>
__global__ void load_floats_kernel(const typename Format::Element* elements, std::size_t count, std::uint32_t* lanes) {
    const std::size_t at = element_of_thread();
    if (at < count) lanes[at] = float_lane<Format>(elements[at]);
}

template <class Format>
__global__ void store_kernel(const std::uint32_t* lanes, std::size_t count, double factor,
                             typename Format::Element* elements) {
    const std::size_t at = element_of_thread();
    if (at < count) elements[at] = element_of<Format>(lanes[at], factor);
}

}  // namespace

cudaError_t load_integers(const Elements& from, float scale, std::uint32_t* lanes, cudaStream_t stream) {
    with_format(from.type, [&]<class Format>(Format) {
        const auto* elements = static_cast<const typename Format::Element*>(from.data);
        load_integers_kernel<Format>
            <<<blocks_for(from.count), threads_of_block, 0, stream>>>(elements, from.count, scale, lanes);
    });
    return cudaGetLastError();
}

cudaError_t load_floats(const Elements& from, std::uint32_t* lanes, cudaStream_t stream) {
    with_format(from.type, [&]<class Format>(Format) {
        const auto* elements = static_cast<const typename Format::Element*>(from.data);
        load_floats_kernel<Format>
            <<<blocks_for(from.count), threads_of_block, 0, stream>>>(elements, from.count, lanes);
    });
    return cudaGetLastError();
}

cudaError_t store(const std::uint32_t* lanes, double factor, const Elements& to, cudaStream_t stream) {
    with_format(to.type, [&]<class Format>(Format) {
        auto* elements = static_cast<typename Format::Element*>(to.data);
        store_kernel<Format><<<blocks_for(to.count), threads_of_block, 0, stream>>>(lanes, to.count, factor, elements);
    });
    return cudaGetLastError();
}

}  // namespace atp::staging::cuda
