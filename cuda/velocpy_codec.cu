// The kernels of the codec that lanes launch (gocore/device/cuda), in a fatbin of their own: most processes encode nothing. Each takes one
// struct of parameters.h.
#include "codec.cuh"
#include "codec_locate.cuh"
#include "parameters.h"

using namespace velocpy;  // NOLINT: this file is nothing but entries

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_encode_bytes(VELOCPY_PARAMETER(Containers) p) { encode_containers<Bytes>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_bytes(VELOCPY_PARAMETER(Containers) p) { decode_containers<Bytes>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_encode_bytes_reference(VELOCPY_PARAMETER(Referenced) p) { encode_containers<Bytes>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_bytes_reference(VELOCPY_PARAMETER(Referenced) p) { decode_containers<Bytes>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_encode_fp16(VELOCPY_PARAMETER(Containers) p) { encode_containers<Float16>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_fp16(VELOCPY_PARAMETER(Containers) p) { decode_containers<Float16>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_encode_fp16_reference(VELOCPY_PARAMETER(Referenced) p) { encode_containers<Float16>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_fp16_reference(VELOCPY_PARAMETER(Referenced) p) { decode_containers<Float16>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_encode_bf16(VELOCPY_PARAMETER(Containers) p) { encode_containers<BFloat16>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_bf16(VELOCPY_PARAMETER(Containers) p) { decode_containers<BFloat16>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_encode_bf16_reference(VELOCPY_PARAMETER(Referenced) p) { encode_containers<BFloat16>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_bf16_reference(VELOCPY_PARAMETER(Referenced) p) { decode_containers<BFloat16>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_encode_fp32(VELOCPY_PARAMETER(Containers) p) { encode_containers<Float32>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_fp32(VELOCPY_PARAMETER(Containers) p) { decode_containers<Float32>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_encode_fp32_reference(VELOCPY_PARAMETER(Referenced) p) { encode_containers<Float32>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_fp32_reference(VELOCPY_PARAMETER(Referenced) p) { decode_containers<Float32>(p); }

VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_encode_fp64(VELOCPY_PARAMETER(Containers) p) { encode_containers<Float64>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_fp64(VELOCPY_PARAMETER(Containers) p) { decode_containers<Float64>(p); }
VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_encode_fp64_reference(VELOCPY_PARAMETER(Referenced) p) { encode_containers<Float64>(p); }
VELOCPY_KERNEL(kCodecThreads, 5) velocpy_codec_decode_fp64_reference(VELOCPY_PARAMETER(Referenced) p) { decode_containers<Float64>(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_locate(VELOCPY_PARAMETER(Containers) p) { locate_containers(p); }

VELOCPY_KERNEL(kCodecThreads, 4) velocpy_codec_clear(VELOCPY_PARAMETER(Clearing) p) {
  for (uint32_t i = thread_index(); i < kClearWords; i += kCodecThreads) {
    uint64_t word = static_cast<uint64_t>(block_index()) * kClearWords + i;
    if (word < p.words) reinterpret_cast<uint64_t*>(p.at)[word] = 0;
  }
}
