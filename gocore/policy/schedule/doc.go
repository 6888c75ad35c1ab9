// Package schedule decides, for each checkpoint of a run, whether it is flushed as it is (U), encoded alone (C), or accumulated in the device's cache
// (A) until a successor's capture encodes all of them in one call (X). It follows Maurya et al., HiPC'23, "Towards Efficient I/O Pipelines using
// Accumulated Compression", sections II and III. The aim is that the application ends as early as possible, and among such plans that the last flush
// does.
//
// # Model
//
// Run simulates it; Exact and Bounded search in it. Times are whole nanoseconds, sizes are bytes.
//
//   - The application works for a checkpoint's interval, and then captures it. Copying into the cache takes no time.
//   - U takes the checkpoint's bytes of the cache until its transfer has ended. A takes them until its X has encoded them.
//   - C and X need the temporary buffer of one call, and the input, or the output where that is larger, until the call ends. The input of X includes
//     what A has taken. Then only the encoded bytes are left in the cache (with Keeps: all that the call held), until their transfer has ended; they go over
//     the link in one transfer.
//   - A capture waits until the cache has room for all that it needs. It takes all of it at once, before its call of the encoder begins.
//   - The link carries one transfer at a time, in the order of the captures. A transfer takes a fixed time and the time for its bytes. It begins once
//     its bytes are ready and the one before has ended: it waits behind a call of the encoder, as on a CUDA stream of its own. The room of a transfer
//     becomes free when it ends, all at once.
//   - Blocking (the paper's model): the application waits until the encoder has ended. Overlap: it continues, at the speed 1/Slowdown while the encoder
//     runs. Calls of the encoder run one at a time in the order of the captures. A call that waits has its temporary buffer already: a buffer taken
//     later could come too late, and the room would have to be promised.
//   - A checkpoint larger than the cache can only be U. It passes by the cache: the capture returns when its transfer has ended.
//   - The bytes of a run may be bounded.
//   - A plan is refused if a capture would not fit with everything else flushed. The plan of U alone always fits.
//
// # The paper's listing
//
// Algorithm 1 of the paper is not executed as printed. What it says, and what is done here:
//
//   - Lines 11, 17 and 26 drain the cache by min(0, ug - P*(t' - t)), which is never above 0; max is meant. Even so, the whole interval would count
//     as if the link were busy, and room would become free in the middle of a transfer. Here each transfer frees its room at its end.
//   - ug is computed but never compared with g: no capture waits for room. Here it does, which is the reason why accumulation can cost time.
//   - Line 8 takes j = min(i-1, 0): -1 for i = 0, and 0 for all others, so every checkpoint is appended to the empty plan. max(i-1, 0) would still
//     confuse the empty plan with the first checkpoint. Here states are kept after 0, 1, ... n checkpoints.
//   - Lines 13, 18 and 28 compare with an array a, which does not exist; dp is meant. A key that is absent has to count as infinite.
//   - Lines 14, 20 and 29 replace dp[i] by dp[j] with one more entry. Here the new state is inserted, and states of dp[j] are not states of dp[i].
//   - Lines 29 and 30 store a run that ends with checkpoint l at i; it belongs to l.
//   - The map keeps one state for each time of the last flush, that with the least application time, whatever its use of the cache. A state that is
//     left out can be better later. Here a state is left out only if another one is no worse in all respects (dominates, with the proof).
//   - Line 31 selects the least flush time. The aim is the application's time (section I), which is compared first here.
//   - Line 5 returns U alone if one of the intervals is longer than a flush (max(d)); that every one is (min(d)) is meant. It does so as well if one
//     checkpoint cannot be encoded within the cache. With different sizes both tests would be wrong: here there is no shortcut.
//   - Line 22 bounds a run by g/(u+r) with the r of one checkpoint; here the temporary buffer of the whole run decides.
//   - Line 11 counts input, temporary buffer and output at once. The input is not needed once the output is in the temporary buffer: here only the
//     larger of input and output counts beside the buffer.
//   - Equation 1 has no time of flushes for encoded checkpoints and takes f on both sides for different things. Nothing here derives from it.
//   - The paper has one size for all checkpoints. Here each has its own.
//
// # Searches
//
// Exact is optimal for any number of checkpoints, and can need very many states: transfers of different lengths make states incomparable. Bounded keeps
// a fixed number of states, ranked by a smaller model (guide), and follows the best baselines. It is a heuristic: TestBoundedLoss has what it loses
// where the optimum is known. For long runs with a large cache no such bound is known; it is never worse than a baseline.
package schedule
