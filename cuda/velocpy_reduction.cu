// The kernels of the codec for one region, with and without a reference. They are not in the package, whose lanes launch those of
// velocpy_codec.cu; benchmarks/device/codec.py measures them. Each takes one struct of parameters.h.
#include "codec.cuh"
#include "codec_locate.cuh"
#include "parameters.h"

using namespace velocpy;  // NOLINT: this file is nothing but entries

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_encode_bytes(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Bytes, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_bytes_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Bytes, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_decode_bytes(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Bytes>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_encode_fp16(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float16, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp16_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float16, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_decode_fp16(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Float16>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_encode_bf16(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<BFloat16, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_bf16_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<BFloat16, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_decode_bf16(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<BFloat16>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_encode_fp32(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float32, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp32_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float32, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_decode_fp32(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Float32>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_encode_fp64(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float64, false>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_encode_fp64_reference(VELOCPY_PARAMETER(Encoding) p) { encode_chunk<Float64, true>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_decode_fp64(VELOCPY_PARAMETER(Decoding) p) { decode_chunk<Float64>(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_locate(VELOCPY_PARAMETER(Locating) p) { locate_payloads(p); }
