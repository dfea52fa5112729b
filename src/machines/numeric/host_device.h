// SPDX-License-Identifier: Apache-2.0
// Marks a function of one element that also runs on graphics processors.
#pragma once

#ifdef __CUDACC__
#define ATP_HOST_DEVICE __host__ __device__
#else
#define ATP_HOST_DEVICE
#endif
