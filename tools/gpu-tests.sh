#!/bin/sh
# The tests of the driver and of the device that need a GPU, on a machine that need not have Go.
#
#   tools/gpu-tests.sh build            here: the test program, into build/gpu
#   tools/gpu-tests.sh run [OPTION...]  there, in a copy of the tree with build/gpu: run it; options are those of go test (-test.v)
#
# Kernels: those of an editable install (make install), or the file that KERNELS names; if there are none, nvcc compiles them there.
set -eu
cd "$(dirname "$0")/.."
program=build/gpu/libcuda.test
kernels=${KERNELS:-build/gpu/kernels.fatbin}

case "${1:-}" in
build)
  mkdir -p build/gpu
  go test -c -o "$program" ./gocore/device/cuda/libcuda
  installed=python/velocpy/velocpy_kernels.fatbin
  if [ -f "$installed" ]; then cp "$installed" build/gpu/kernels.fatbin; else rm -f build/gpu/kernels.fatbin; fi
  echo "$program: carry build/gpu along"
  ;;
run)
  shift
  if [ ! -f "$kernels" ]; then
    mkdir -p "$(dirname "$kernels")"
    nvcc -std=c++17 -O3 -fatbin -arch=native -o "$kernels" cuda/velocpy_kernels.cu
  fi
  kernels=$(realpath "$kernels")
  program=$(realpath "$program")
  cd gocore/device/cuda/libcuda
  exec "$program" -test.timeout=5m -gpu -kernels "$kernels" "$@"
  ;;
*)
  sed -n '2,7s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
