// The kernels as a CPU program: it reads commands from standard input and writes their answers to standard output, all numbers
// little-endian. The tests of gocore/device/cuda/kernel drive it.
//
//   1 hash:   u64 n, n bytes             -> u64 XXH3-64 of them, computed with xxh3.h
//   2 memory: u64 address, u64 n, n bytes -> nothing: sets the memory at the address
//   3 launch: u32 n, name; u32 blocks, u32 threads; u32 n, parameter -> nothing
//   4 read:                              -> all bytes of the memory
//   5 share: u64 address, u64 n; u32 n, path of a file -> nothing: the file's bytes are the memory at the address
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>

#include "../velocpy_codec.cu"
#include "../velocpy_dedup.cu"
#include "../velocpy_kernels.cu"
#include "../velocpy_reduction.cu"

namespace {

void get(void* into, size_t n) {
  if (n > 0 && fread(into, 1, n, stdin) != n) {
    fprintf(stderr, "the input ends in a command\n");
    exit(2);
  }
}

void put(const void* from, size_t n) {
  if (fwrite(from, 1, n, stdout) != n || fflush(stdout) != 0) exit(2);
}

template <typename T>
T number() {
  T value;
  get(&value, sizeof value);
  return value;
}

using Kernel = std::function<void(const std::vector<char>&)>;

template <typename P>
Kernel kernel(void (*entry)(const P&)) {
  return [entry](const std::vector<char>& parameter) {
    if (parameter.size() != sizeof(P)) {
      fprintf(stderr, "a parameter of %zu bytes for %zu\n", parameter.size(), sizeof(P));
      exit(2);
    }
    P p;
    memcpy(&p, parameter.data(), sizeof p);
    entry(p);
  };
}

std::map<std::string, Kernel> kernels = {
    {"velocpy_dedup_scan_32", kernel(velocpy_dedup_scan_32)},
    {"velocpy_dedup_scan_64", kernel(velocpy_dedup_scan_64)},
    {"velocpy_dedup_scan_128", kernel(velocpy_dedup_scan_128)},
    {"velocpy_dedup_scan_256", kernel(velocpy_dedup_scan_256)},
    {"velocpy_dedup_scan_512", kernel(velocpy_dedup_scan_512)},
    {"velocpy_dedup_scan_1024", kernel(velocpy_dedup_scan_1024)},
    {"velocpy_dedup_scan_2048", kernel(velocpy_dedup_scan_2048)},
    {"velocpy_dedup_scan_4096", kernel(velocpy_dedup_scan_4096)},
    {"velocpy_dedup_scan_blocks_32", kernel(velocpy_dedup_scan_blocks_32)},
    {"velocpy_dedup_scan_blocks_64", kernel(velocpy_dedup_scan_blocks_64)},
    {"velocpy_dedup_scan_blocks_128", kernel(velocpy_dedup_scan_blocks_128)},
    {"velocpy_dedup_scan_blocks_256", kernel(velocpy_dedup_scan_blocks_256)},
    {"velocpy_dedup_scan_blocks_512", kernel(velocpy_dedup_scan_blocks_512)},
    {"velocpy_dedup_list", kernel(velocpy_dedup_list)},
    {"velocpy_dedup_gather", kernel(velocpy_dedup_gather)},
    {"velocpy_dedup_positions", kernel(velocpy_dedup_positions)},
    {"velocpy_dedup_find", kernel(velocpy_dedup_find)},
    {"velocpy_dedup_label", kernel(velocpy_dedup_label)},
    {"velocpy_dedup_place", kernel(velocpy_dedup_place)},
    {"velocpy_dedup_gather_firsts", kernel(velocpy_dedup_gather_firsts)},
    {"velocpy_dedup_raise_firsts", kernel(velocpy_dedup_raise_firsts)},
    {"velocpy_dedup_raise_few_firsts", kernel(velocpy_dedup_raise_few_firsts)},
    {"velocpy_dedup_put_nodes", kernel(velocpy_dedup_put_nodes)},
    {"velocpy_dedup_raise_shifts", kernel(velocpy_dedup_raise_shifts)},
    {"velocpy_dedup_raise_few_shifts", kernel(velocpy_dedup_raise_few_shifts)},
    {"velocpy_dedup_list_firsts", kernel(velocpy_dedup_list_firsts)},
    {"velocpy_dedup_list_shifts", kernel(velocpy_dedup_list_shifts)},
    {"velocpy_dedup_find_new_chunks", kernel(velocpy_dedup_find_new_chunks)},
    {"velocpy_dedup_find_new_nodes", kernel(velocpy_dedup_find_new_nodes)},
    {"velocpy_dedup_add_new", kernel(velocpy_dedup_add_new)},
    {"velocpy_dedup_sweep", kernel(velocpy_dedup_sweep)},
    {"velocpy_dedup_fill", kernel(velocpy_dedup_fill)},
    {"velocpy_dedup_consolidate", kernel(velocpy_dedup_consolidate)},
    {"velocpy_pack", kernel(velocpy_pack)},
    {"velocpy_pack_few", kernel(velocpy_pack_few)},
    {"velocpy_pack_sums", kernel(velocpy_pack_sums)},
    {"velocpy_pack_sums_few", kernel(velocpy_pack_sums_few)},
    {"velocpy_hash", kernel(velocpy_hash)},
    {"velocpy_hash_few", kernel(velocpy_hash_few)},
    {"velocpy_gather", kernel(velocpy_gather)},
    {"velocpy_gather_few", kernel(velocpy_gather_few)},
    {"velocpy_scatter", kernel(velocpy_scatter)},
    {"velocpy_scatter_few", kernel(velocpy_scatter_few)},
    {"velocpy_encode_bytes", kernel(velocpy_encode_bytes)},
    {"velocpy_encode_bytes_reference", kernel(velocpy_encode_bytes_reference)},
    {"velocpy_decode_bytes", kernel(velocpy_decode_bytes)},
    {"velocpy_encode_fp16", kernel(velocpy_encode_fp16)},
    {"velocpy_encode_fp16_reference", kernel(velocpy_encode_fp16_reference)},
    {"velocpy_decode_fp16", kernel(velocpy_decode_fp16)},
    {"velocpy_encode_bf16", kernel(velocpy_encode_bf16)},
    {"velocpy_encode_bf16_reference", kernel(velocpy_encode_bf16_reference)},
    {"velocpy_decode_bf16", kernel(velocpy_decode_bf16)},
    {"velocpy_encode_fp32", kernel(velocpy_encode_fp32)},
    {"velocpy_encode_fp32_reference", kernel(velocpy_encode_fp32_reference)},
    {"velocpy_decode_fp32", kernel(velocpy_decode_fp32)},
    {"velocpy_encode_fp64", kernel(velocpy_encode_fp64)},
    {"velocpy_encode_fp64_reference", kernel(velocpy_encode_fp64_reference)},
    {"velocpy_decode_fp64", kernel(velocpy_decode_fp64)},
    {"velocpy_locate", kernel(velocpy_locate)},
    {"velocpy_codec_encode_bytes", kernel(velocpy_codec_encode_bytes)},
    {"velocpy_codec_encode_bytes_reference", kernel(velocpy_codec_encode_bytes_reference)},
    {"velocpy_codec_decode_bytes", kernel(velocpy_codec_decode_bytes)},
    {"velocpy_codec_decode_bytes_reference", kernel(velocpy_codec_decode_bytes_reference)},
    {"velocpy_codec_encode_fp16", kernel(velocpy_codec_encode_fp16)},
    {"velocpy_codec_encode_fp16_reference", kernel(velocpy_codec_encode_fp16_reference)},
    {"velocpy_codec_decode_fp16", kernel(velocpy_codec_decode_fp16)},
    {"velocpy_codec_decode_fp16_reference", kernel(velocpy_codec_decode_fp16_reference)},
    {"velocpy_codec_encode_bf16", kernel(velocpy_codec_encode_bf16)},
    {"velocpy_codec_encode_bf16_reference", kernel(velocpy_codec_encode_bf16_reference)},
    {"velocpy_codec_decode_bf16", kernel(velocpy_codec_decode_bf16)},
    {"velocpy_codec_decode_bf16_reference", kernel(velocpy_codec_decode_bf16_reference)},
    {"velocpy_codec_encode_fp32", kernel(velocpy_codec_encode_fp32)},
    {"velocpy_codec_encode_fp32_reference", kernel(velocpy_codec_encode_fp32_reference)},
    {"velocpy_codec_decode_fp32", kernel(velocpy_codec_decode_fp32)},
    {"velocpy_codec_decode_fp32_reference", kernel(velocpy_codec_decode_fp32_reference)},
    {"velocpy_codec_encode_fp64", kernel(velocpy_codec_encode_fp64)},
    {"velocpy_codec_encode_fp64_reference", kernel(velocpy_codec_encode_fp64_reference)},
    {"velocpy_codec_decode_fp64", kernel(velocpy_codec_decode_fp64)},
    {"velocpy_codec_decode_fp64_reference", kernel(velocpy_codec_decode_fp64_reference)},
    {"velocpy_codec_locate", kernel(velocpy_codec_locate)},
    {"velocpy_codec_clear", kernel(velocpy_codec_clear)},
};

uint64_t hash_long(const uint8_t* p, uint32_t n) {
  using namespace velocpy::xxh3;
  uint64_t state[kLanes];
  memcpy(state, kStart, sizeof state);
  for (uint32_t b = 0; b < scrambled_blocks(n); b++) {
    for (uint32_t s = 0; s < kBlock / kStripe; s++) {
      for (uint32_t i = 0; i < kLanes; i += 2) {
        const uint8_t* at = p + b * kBlock + s * kStripe + 8 * i;
        add_pair(state[i], state[i + 1], read64(at), read64(at + 8), kSecret[s + i], kSecret[s + i + 1]);
      }
    }
    for (uint32_t i = 0; i < kLanes; i++) state[i] = scramble(state[i], i);
  }
  uint64_t merged = 0;
  for (uint32_t i = 0; i < kLanes; i++)
    for (uint32_t worker = 0; worker < 4; worker++) state[i] += tail_lane(p, n, i, worker, 4);
  for (uint32_t pair = 0; pair < kLanes / 2; pair++) merged += merge_pair(state[2 * pair], state[2 * pair + 1], pair);
  return finish(merged, n);
}

void hash() {
  std::vector<uint8_t> text(number<uint64_t>());
  get(text.data(), text.size());
  auto n = static_cast<uint32_t>(text.size());
  uint64_t h = n <= xxh3::kShort ? xxh3::hash_short(text.data(), n) : hash_long(text.data(), n);
  put(&h, sizeof h);
}

struct {
  void* at = nullptr;
  size_t bytes = 0;
} memory;

// Maps memory at the address, which must be free but for the memory before.
void map(void* at, size_t bytes, int flags, int file) {
  if (memory.at != nullptr) munmap(memory.at, memory.bytes);
  memory.bytes = bytes;
  memory.at = mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, file, 0);
  if (memory.at != at) {
    fprintf(stderr, "no memory at %p\n", at);
    exit(2);
  }
}

void remember() {
  auto* at = reinterpret_cast<void*>(number<uint64_t>());
  map(at, number<uint64_t>(), MAP_PRIVATE | MAP_ANONYMOUS, -1);
  get(memory.at, memory.bytes);
}

void share() {
  auto* at = reinterpret_cast<void*>(number<uint64_t>());
  auto bytes = number<uint64_t>();
  std::string path(number<uint32_t>(), ' ');
  get(path.data(), path.size());
  int file = open(path.c_str(), O_RDWR);
  map(at, bytes, MAP_SHARED, file);
  close(file);
}

void launch() {
  std::string name(number<uint32_t>(), ' ');
  get(name.data(), name.size());
  auto blocks = number<uint32_t>(), threads = number<uint32_t>();
  std::vector<char> parameter(number<uint32_t>());
  get(parameter.data(), parameter.size());
  auto found = kernels.find(name);
  if (found == kernels.end()) {
    fprintf(stderr, "no kernel %s\n", name.c_str());
    exit(2);
  }
  auto& block = emulated::Block::running();
  block.threads.clear();
  block.threads.resize(threads);
  block.body = [&] { found->second(parameter); };
  for (uint32_t b = 0; b < blocks; b++) block.run(b, threads);
}

}  // namespace

int main() {
  for (uint32_t command; fread(&command, sizeof command, 1, stdin) == 1;) {
    switch (command) {
      case 1:
        hash();
        break;
      case 2:
        remember();
        break;
      case 3:
        launch();
        break;
      case 4:
        put(memory.at, memory.bytes);
        break;
      case 5:
        share();
        break;
      default:
        fprintf(stderr, "no command %u\n", command);
        return 2;
    }
  }
}
