// The kernels of de-duplication. They are not in the fatbin of the package yet: no store de-duplicates on a GPU. Each takes the struct of
// dedup_parameters.h.
#include "dedup.cuh"

using namespace velocpy;  // NOLINT: this file is nothing but entries

// By chunk length.
VELOCPY_KERNEL(dedup::kThreads, 5) velocpy_dedup_scan_32(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<32, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 5) velocpy_dedup_scan_64(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<64, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 5) velocpy_dedup_scan_128(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<128, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_256(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<256, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_512(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<512, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_1024(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<1024, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_2048(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<2048, false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_4096(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<4096, false>(p); }

// The same with digests of blocks, for chunks that are short against a block.
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_blocks_32(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<32, true>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_blocks_64(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<64, true>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_blocks_128(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<128, true>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_blocks_256(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<256, true>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_scan_blocks_512(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::scan<512, true>(p); }

VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_list(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::list_changed(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_gather(VELOCPY_PARAMETER(dedup::Regions) p) { dedup::gather_changed(p); }
