// The kernels of de-duplication. They are not in the fatbin of the package yet: no store de-duplicates on a GPU. Each takes a struct of
// dedup_parameters.h, dedup_label_parameters.h or dedup_room_parameters.h.
#include "dedup.cuh"
#include "dedup_nodes.cuh"
#include "dedup_room.cuh"

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

// In this order. Those from velocpy_dedup_raise_firsts up to velocpy_dedup_raise_few_shifts are for trees: a launch for each level that may
// have many nodes, and one for all others, of one block of threads.
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_positions(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::list_positions(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_find(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::find_chunks(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_label(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::label_chunks(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_place(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::place_chunks(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_gather_firsts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::gather_firsts(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_raise_firsts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::raise_wave<true>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_raise_few_firsts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::raise_waves<true>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_put_nodes(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::put_nodes(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_raise_shifts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::raise_wave<false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_raise_few_shifts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::raise_waves<false>(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_list_firsts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::list_firsts(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_list_shifts(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::list_shifts(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_find_new_chunks(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::find_new_chunks(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_find_new_nodes(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::find_new_nodes(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_add_new(VELOCPY_PARAMETER(dedup::Labels) p) { dedup::add_new(p); }

// Before all of these, or behind velocpy_dedup_list_shifts.
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_sweep(VELOCPY_PARAMETER(dedup::Sweep) p) { dedup::sweep(p); }

// Before all others, for the memory that they need, and behind all others.
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_fill(VELOCPY_PARAMETER(dedup::Filling) p) { dedup::fill(p); }
VELOCPY_KERNEL(dedup::kThreads, 4) velocpy_dedup_consolidate(VELOCPY_PARAMETER(dedup::Consolidated) p) { dedup::consolidate(p); }
