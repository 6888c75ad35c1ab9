// The kernels of de-duplication and those beside them, for benchmarks/device/dedup.py.
#include "../../cuda/velocpy_dedup.cu"
#include "beside_dedup.cuh"
