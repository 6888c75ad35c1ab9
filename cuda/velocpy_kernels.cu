// The kernels, by the names that gocore/device/cuda/kernel launches. Each takes one struct of parameters.h, in one of two sizes.
#include "pack.cuh"
#include "parameters.h"
#include "strided.cuh"
#include "sums.cuh"

using namespace velocpy;  // NOLINT: this file is nothing but entries

VELOCPY_KERNEL(kPackThreads, 4) velocpy_pack(VELOCPY_PARAMETER(ManyPieces) p) { pack(p); }
VELOCPY_KERNEL(kPackThreads, 4) velocpy_pack_few(VELOCPY_PARAMETER(FewPieces) p) { pack(p); }

VELOCPY_KERNEL(kSumThreads, 4) velocpy_pack_sums(VELOCPY_PARAMETER(ManyPieces) p) { leaf_sums<true>(p); }
VELOCPY_KERNEL(kSumThreads, 4) velocpy_pack_sums_few(VELOCPY_PARAMETER(FewPieces) p) { leaf_sums<true>(p); }

VELOCPY_KERNEL(kSumThreads, 4) velocpy_hash(VELOCPY_PARAMETER(ManyPieces) p) { leaf_sums<false>(p); }
VELOCPY_KERNEL(kSumThreads, 4) velocpy_hash_few(VELOCPY_PARAMETER(FewPieces) p) { leaf_sums<false>(p); }

VELOCPY_KERNEL(kStridedThreads, 4) velocpy_gather(VELOCPY_PARAMETER(ManyArrays) p) { strided<false>(p); }
VELOCPY_KERNEL(kStridedThreads, 4) velocpy_gather_few(VELOCPY_PARAMETER(FewArrays) p) { strided<false>(p); }

VELOCPY_KERNEL(kStridedThreads, 4) velocpy_scatter(VELOCPY_PARAMETER(ManyArrays) p) { strided<true>(p); }
VELOCPY_KERNEL(kStridedThreads, 4) velocpy_scatter_few(VELOCPY_PARAMETER(FewArrays) p) { strided<true>(p); }
