#!/bin/sh
# The tests of the driver and of the device that need a GPU, on a machine that need not have Go.
#
#   tools/gpu-tests.sh build            here: the test program, into build/gpu
#   tools/gpu-tests.sh run [OPTION...]  there, in a copy of the tree with build/gpu: run it; options are those of go test (-test.v)
#
# Kernels: those of an editable install (make install), or the files that KERNELS, CODEC and DEDUP name; if there are none, nvcc compiles them there.
set -eu
cd "$(dirname "$0")/.."
program=build/gpu/libcuda.test
kernels=${KERNELS:-build/gpu/kernels.fatbin}
codec=${CODEC:-build/gpu/codec.fatbin}
dedup=${DEDUP:-build/gpu/dedup.fatbin}

# compile makes a file of kernels for the GPU of this machine, unless it is there.
compile() {
  [ ! -f "$1" ] || return 0
  mkdir -p "$(dirname "$1")"
  nvcc -std=c++17 -O3 -fatbin -arch=native -o "$1" "$2"
}

case "${1:-}" in
build)
  mkdir -p build/gpu
  go test -c -o "$program" ./gocore/device/cuda/libcuda
  for name in kernels codec dedup; do
    installed=python/velocpy/velocpy_$name.fatbin
    if [ -f "$installed" ]; then cp "$installed" build/gpu/$name.fatbin; else rm -f build/gpu/$name.fatbin; fi
  done
  echo "$program: carry build/gpu along"
  ;;
run)
  shift
  compile "$kernels" cuda/velocpy_kernels.cu
  compile "$codec" cuda/velocpy_codec.cu
  compile "$dedup" cuda/velocpy_dedup.cu
  kernels=$(realpath "$kernels")
  codec=$(realpath "$codec")
  dedup=$(realpath "$dedup")
  program=$(realpath "$program")
  cd gocore/device/cuda/libcuda
  exec "$program" -test.timeout=5m -gpu -kernels "$kernels" -codec "$codec" -dedup "$dedup" "$@"
  ;;
*)
  sed -n '2,7s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
