// The kernels, by the names that gocore/device/cuda/kernel launches. Each takes one struct of parameters.h; all but those of the codec take
// it in one of two sizes.
#include "codec.cuh"
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

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_bytes(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Bytes, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_bytes_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Bytes, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_decode_bytes(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Bytes>(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp16(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float16, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp16_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float16, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_decode_fp16(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Float16>(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_bf16(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<BFloat16, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_bf16_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<BFloat16, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_decode_bf16(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<BFloat16>(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp32(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float32, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp32_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float32, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_decode_fp32(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Float32>(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp64(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float64, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp64_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float64, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_decode_fp64(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Float64>(p); }
