// Package codec encodes and decodes arrays of floats and integers without loss, in chunks that stand alone.
//
// A region is cut into chunks of ChunkBytes. Each chunk is encoded in the mode that makes its payload smallest. A container holds the payloads of a
// region, and tables with the mode, the length and the hash of each chunk. The format is docs/reduction-format.md.
//
// Every step is a ballot, a prefix sum or a histogram over groups of 32 words, so that a GPU can write the same bytes with one thread block a chunk.
// The bytes depend only on the plain bytes, the reference, the kind and the allowed modes.
//
// With a compressor of the host, containers have sections in place of chunks: a compressor needs more bytes to find what repeats. Devices neither write nor read
// them, and what a compressor writes may change with its version.
//
// On amd64 assembly replaces the loops: for encoding and decoding with AVX-512, else for decoding with AVX2. `python -m benchmarks twins` measures how fast one core
// decodes.
//
// A reference is the same region in an earlier checkpoint. It allows two more modes. Decoding then needs the same reference.
package codec
