"""Why bars are missed, by the pattern of their claim: facts from `docs/gpu-benchmarks.md` and the tables."""

from __future__ import annotations

REASONS = {
    r"sharded: (?!tensors that differ)": (
        "Beside DefaultStager with all options, which PyTorch 2.11 makes anew for each state, the state may be "
        "changed after a twentieth of the time. BlockingAsyncStager keeps its pinned memory. It needs 1.5 to 2 times "
        "as long as one copy over the link takes at its full rate, so half of its time is less than a copy. velocpy's "
        "Stager took 5 to 6 ms longer. It copies in a thread of its own; DCP's thread for the upload begins to "
        "compute when the copy has ended. That the caller then waits for Python's lock is likely, and was not "
        "measured. Files were loaded from the page cache, and velocpy's stores from the disk."
    ),
    r"compare: (?!.*(lacks|faults))": (
        "A timing is slower than before by more than 3 % and its noise. The tables say how many timings of each "
        "benchmark are slower, and by how much."
    ),
    r"codec: ": (
        "On an H200 random bytes are decoded at 0.9 of the rate of a copy, and encoded at a half of it, though both "
        "kernels only hash and store them. So what costs the encoder is measuring the modes and finding its place, "
        "and not the memory; no profile was taken. nvCOMP's ANS, which takes floats as such, makes weights about as "
        "small (bf16: 1.43, and velocpy 1.41), and is 1.1 to 1.5 times as fast; the tables have it and its other "
        "codecs."
    ),
    r"hacc: (.*rate by that of|steps)|bucket: .*rate by that of": (
        "Restarts and steps beside a push hold their bars. Of writing, 8 of 18 do. Nothing else ran on the machine, "
        "and one disk was read and written by all ways: a file for each rank by O_DIRECT came to 0.85 to 1.1 GB/s, "
        "the archive to 0.88 to 1.18. Into 8 files MPI-IO does not aggregate: each rank writes its own, at 0.90 to "
        "1.2 of the rate of a file for each rank, so 1.6 times its rate is more than this disk was seen to do. An "
        "earlier run, beside other work, had 1.3, 1.1 and 1.07 of MPI-IO's rate there, and 1.5 to 2.0 of ADIOS2's; "
        "the peers gained more from the quiet machine than the archive. Why uneven loads of an archive are slower "
        "than equal ones was not found. MPI-IO has calls of 16 MiB here; the benchmark `archive`, where it was "
        "slower, has 4 MiB. From memory, without a local disk, MPI-IO into 8 files has 2.1 to 2.9 times the rate of "
        "the archive. Of buckets, server and client share two processors, which restores keep busy: of 0.72 processor "
        "seconds for 512 MiB, the server took 0.25, the program that asks it 0.27, and the process that verifies and "
        "copies 0.18; minio-go alone and its server took 0.34 together. A push waits for the server at the end of "
        "each batch, while it puts the last pack together and takes the commit. The disk under the server was slow "
        "for a part of the rounds with one rank; an earlier run had 1.38 GB/s for its restores, and 0.81 for its "
        "push."
    ),
    r"aggregation: ": (
        "Simulated, not measured. While bytes are copied the archive is as fast as a file for each rank. The whole "
        "push has the lowest rank open the catalogs of all stores, plan, make the files and commit, while the others "
        "wait: that takes 0.39 s of 4.09 s, of checkpoints of 1 GiB, and would have to take less than 0.04 s. Of "
        "256 MiB, the whole push is ahead on a storage that makes 3,000 files a second in a directory, and not 29,000 "
        "(docs/archive.md)."
    ),
    r"reduced: (?!bytes that differ)": (
        "The reverse sweep over weights misses it. On this disk two processors read plain bytes faster than they "
        "decode, and 'auto' had encoded a few checkpoints to learn what that costs. Medians differ by some percent "
        "from run to run: an earlier one of 25 rounds had 1.05 for flushing weights and 1.08 for reading them."
    ),
    r"encoded: .*blocked time by": (
        "Late wavefields become smaller by a factor of 1.26 only, also when they are encoded with another, so encoding "
        "all of them saves a seventh of the time in calls. Each round begins new histories, in which 'auto' tries all "
        "ways first."
    ),
    r"(encoded|stored): (?!bytes that differ)": (
        "The application's loop beside flushes that encode took 1.02 to 1.05 of the time beside raw ones in six runs "
        "of that day, on several machines; why was not measured. Restores of fp32 weights with 'auto' took 1.02 to "
        "1.03: a new history tries all ways first, and 4 of these 24 checkpoints went as they are."
    ),
    r"scheduled: application": (
        "With checkpoints of 16 MiB, what is queued is at most 4 % behind the best, and plans 12 %; an earlier run of "
        "the same day had 8 % and 14 %. The model of a plan has one encoder and one link; the store has two workers "
        "that share both. With 4 MiB the time of 4096 calls counts as much as the link, also without an encoder, and "
        "fixed schedules differ by up to 29 %. Medians of a cell's runs differ by some 5 % themselves."
    ),
    r"dedup: (?!.*that differ)": (
        "Chunks of 128 B of which none has changed are scanned at 3.1 TB/s on an H200, and with the launches and the "
        "copy of what was found 2.9 TB/s are left; a kernel that only reads the region comes to 4.5 TB/s. A tree needs "
        "0.35 ms more than the 1.6 ms of its scan: 0.15 ms to join subtrees, also where none has changed, and the rest "
        "in launches that find little to do. With chunks of 512 B it misses the bars by less."
    ),
    r"vectors: ": (
        "The entries of a tree are nearly as many as those of a list where vectors change here and there, as those of "
        "these graphs do: both methods find the same chunks, and metadata are a small part of what is copied. The "
        "graphs are smaller than the paper's. nvCOMP was not there in this run."
    ),
    r"device: (host time of checkpoint|checkpoint\(\) in that loop|500 arrays: host|lease of)": (
        "The slow calls of one array follow a pause in which the host computes or waits. They find neither their code "
        "nor their data in the caches of the processor. After such a pause a C function that does nothing took 10 to "
        "15 µs, and 0.3 µs in a row. Of 500 tensors most of the time goes to looking at them, before anything is "
        "captured: a call on a closed store, which looks at them and fails, took 160 to 300 µs in a row, and 430 to "
        "600 µs after a pause. torch's own copy of as many tensors took 500 µs, and 620 to 680 after a pause, on the "
        "same machine. Timed step by step, single steps of the slow calls of one array took some 42 µs longer, any of "
        "them, whether it calls the driver, takes a lock or computes; why was not found."
    ),
    r"device: lease in a loop": (
        "A lease is two calls into the core, one of which consumes the checkpoint when its tensor is used first; the "
        "ring's get is Python alone. After a pause a Go function that does nothing took 22 to 31 µs, and 0.6 to 1.2 µs "
        "in a row."
    ),
    r"coldstart-bars: .*direct pinning": (
        "Four processes that start together miss it. They share the rate at which the machine touches and registers "
        "memory, which misses its own bar. That this is the cause was not measured separately."
    ),
    r"coldstart-.*touched and pinned": (
        "Touching alone came to 40 GB/s in this run, and registering alone to 37: both at once are slower. On another "
        "machine of the same day the store came to 34 to 36 GB/s, and without the pauses in which other threads get "
        "their turn in the driver to 34 to 42. Pages that a virtual machine has never used before are slower still."
    ),
    r"coldstart-.*(open|first)": (
        "One process and four that open their stores miss the bar of open(). On another machine of the same day the "
        "core's own part took 5 to 6 ms, and loading the core as long; the rest is Python, with the imports of "
        "velocpy's modules. Keeping all on the device, without a store, took 22 ms to begin."
    ),
    r"scale: .*by cost": (
        "Drops after restores in random order miss it. No processor cache holds their memory: a cycle of a Python dict "
        "of NumPy copies, in random order, cost 1.5 times as much among 10^6 as among the fewest."
    ),
    r"shot-(disk|paper).*bound": (
        "The bound takes the rates of plain transfers just before the shots, each direction by itself. A shared disk "
        "is faster or slower later. It is slower while it reads and writes at once, which the bound does not know."
    ),
    r"shot-(disk|link).*ring": (
        "With a disk, no engine can reach these bars: the bound has 0.47 to 0.99 of the better ring's time, and the "
        "bars ask for 0.4 and 0.25. Where the host holds everything, the ring's copies hide behind the computation. "
        "Keeping everything on the device has 0.75 to 0.95 of the ring's blocked time, so no engine that captures can "
        "have half of it. Without checksums, which the ring does not take, velocpy has 0.77 to 1.23 of the ring's time."
    ),
    r"shot-paper.*Unified": (
        "No engine can reach these bars: Unified Memory is blocked 2.7 to 6.1 times as long as the bound, and the bars "
        "ask for 10 and 25 times as long as velocpy."
    ),
    r"storages: .*storage by": (
        "A storage that keeps bytes takes one copy at least. Where pyrevolve's takes less than five times as long as "
        "one bare copy, no storage can be five times as fast; the table has the bare copy beside each."
    ),
    r"verification: ": (
        "Restores of 16 MiB from a disk into an array miss it: verification reads the bytes once more, and where no "
        "plan foresees the restore, only when it has come. The three runs differ by ten percent and more, in both "
        "directions. On one of the two kinds of processors copies out of host memory cost 7 to 13 % more, on the "
        "other none."
    ),
}
