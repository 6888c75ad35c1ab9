/* The contract between the Go core and the process that loads it.
 *
 * Fixed-width integers, 64-bit handles, (pointer, length) into memory that the caller owns, and a
 * status code. No Go pointer crosses. Every call takes a veloc_error that is written only on failure
 * (status < 0). No call waits, except those that say so. A call that cannot finish at once returns VELOC_PENDING or
 * VELOC_AGAIN together with an operation, which the caller drives:
 *
 *     status = veloc_restore(history, &args, &out, &err);
 *     while (status == VELOC_PENDING || status == VELOC_AGAIN) {
 *         if (status == VELOC_PENDING) wait until event_fd is readable, read it, check for Ctrl-C and the timeout;
 *         status = veloc_step(out.op, &out, &err);          // VELOC_AGAIN: at once, check for Ctrl-C in between
 *     }
 *
 * An operation ends when a call returns VELOC_OK or an error, or by veloc_cancel. Until then the
 * core may write to its event_fd at any time, afterwards never; the memory named in the arguments
 * (sources, destinations) must stay alive until then. Argument structs themselves are read only
 * during the first call. One AGAIN slice takes a few tens of milliseconds at the most. Any thread may step or cancel: calls on one
 * operation are serialized, and a call after its end returns VELOC_E_STALE.
 */
#ifndef VELOCPY_ABI_H
#define VELOCPY_ABI_H

#include <stdint.h>

#define VELOC_ABI_VERSION 12

/* Status codes; errors are negative. Go (gocore/base/status) and Python (velocpy/errors.py) share the numbers; a test compares them. */
enum {
  VELOC_OK = 0,
  VELOC_PENDING = 1, /* wait on event_fd, then veloc_step */
  VELOC_AGAIN = 2,   /* more work at hand: veloc_step at once */

  VELOC_E_INVALID = -1,      /* an argument is wrong */
  VELOC_E_NOT_FOUND = -2,    /* no checkpoint of this key (never written, dropped, or consumed) */
  VELOC_E_CLOSED = -3,       /* the store is closed */
  VELOC_E_STALE = -4,        /* the handle refers to no object (any more) */
  VELOC_E_TIER_FULL = -5,    /* no room, and the engine cannot make room by itself */
  VELOC_E_IO = -6,           /* a tier failed; os_errno says how */
  VELOC_E_CORRUPT = -7,      /* checksum mismatch; region and tier say where */
  VELOC_E_DROPPED = -8,      /* the checkpoint was dropped, replaced or consumed while the operation ran */
  VELOC_E_CHANGED = -9,      /* the checkpoint's layout is not expected_layout: look up again */
  VELOC_E_POISONED = -10,    /* the core panicked earlier; text has the stacks */
  VELOC_E_FORKED = -11,      /* shim only: a forked child called */
  VELOC_E_TIMEOUT = -12,     /* shim only */
  VELOC_E_UNAVAILABLE = -13, /* the tier does not exist in this build or on this machine */
  VELOC_E_INTERNAL = -14,    /* an invariant of the engine broke */
  VELOC_E_DURABILITY = -15,  /* the bytes can never reach the tier asked for (its flush failed for good, or was cancelled) */
  VELOC_E_DEVICE_LOST = -16, /* the device's context is lost: checkpoints that were only on it are lost */
  VELOC_E_BELATED = -17,   /* this call had no effect. It reports a deferred verification: an earlier restore of the history returned bytes
                              before they were verified, and they differ from the captured ones. text is JSON: {"history": name, "key":
                              number or text, "layout": id, "unverified": why they could not be verified, or left out}; null stands
                              for a name that is too long or not UTF-8. close: the store is closed all the same */
  VELOC_E_LOCKED = -18,    /* the store is open for writing, here or in another process */
  VELOC_E_NO_STORE = -19,  /* the directory holds no store */
  VELOC_E_LATER = -20,     /* the store was written by a later version */
  VELOC_E_DAMAGED = -21,   /* acknowledged content is missing from the store, which can still be read and repaired */
  VELOC_E_READ_ONLY = -22, /* the store is open for reading only */
  VELOC_E_LOST = -23 /* the store's directory was removed while it was open, or another process took it over: nothing more is written */
};

enum { VELOC_TIER_NONE = -1, VELOC_TIER_DEVICE = 0, VELOC_TIER_HOST = 1, VELOC_TIER_DISK = 2, VELOC_TIER_ARCHIVE = 3 };

typedef struct veloc_error {
  int32_t status;
  int32_t os_errno; /* 0, or an errno */
  int32_t tier;     /* VELOC_TIER_*; NONE if no tier is involved */
  int32_t region;   /* index of the affected region, or -1 */
  int32_t text_len;
  char text[1004]; /* UTF-8, not NUL-terminated, cut to fit */
} veloc_error;     /* 1024 bytes */

enum { VELOC_KEY_INT = 0, VELOC_KEY_STR = 1, VELOC_KEY_AUTO = 2 /* checkpoint only: the store picks an unused integer */ };

typedef struct veloc_key {
  int64_t number;   /* KEY_INT */
  const char* text; /* KEY_STR: UTF-8 (surrogates as surrogatepass writes them), may hold NUL */
  int64_t text_len;
  int32_t kind;
  int32_t reserved;
} veloc_key;

enum { VELOC_PLACE_HOST = 0 };

/* One region, as source or destination. ndim == 0: nbytes contiguous bytes at data. Otherwise an array of elements of itemsize bytes,
 * shape[ndim], strides[ndim] in bytes (may be negative or zero), laid densely into the slot with the last axis fastest.
 * The shim collapses and orders the axes; product(shape) * itemsize == nbytes. */
typedef struct veloc_region {
  void* data;
  int64_t offset; /* of the region in the checkpoint's slot; sources: ascending, no overlap */
  int64_t nbytes;
  const int64_t* shape;
  const int64_t* strides;
  int32_t ndim;
  int32_t itemsize;
  int32_t place; /* VELOC_PLACE_HOST, or 1 + the number of the CUDA device in whose memory data lies */
  int32_t reserved;
} veloc_region;

enum {
  VELOC_CP_SOURCE_STAYS = 1, /* copy=False: the caller does not change the source until the ticket is captured */
  VELOC_CP_PATIENT = 2       /* wait also for room that only the application (another thread) can make; otherwise VELOC_E_TIER_FULL */
};

typedef struct veloc_checkpoint_args {
  veloc_key key;
  const veloc_region* regions;
  int64_t n_regions;
  const char* layout; /* bytes that describe names, dtypes, shapes; interned by the core, equal bytes give equal ids. For a store on disk
                         the core returns none that docs/format.md refuses: restore and veloc_layout fail with VELOC_E_CORRUPT then.
                         The same layout must always come with the same region offsets and sizes. */
  int64_t layout_len;
  int64_t slot_bytes; /* >= end of the last region */
  const char* meta;   /* opaque, small; returned by veloc_meta */
  int64_t meta_len;
  int32_t flags;
  int32_t tier;     /* VELOC_TIER_NONE, or the tier whose promise the caller wants kept first (a schedule's level):
                       VELOC_TIER_DISK = write down at once and free the faster tiers early */
  int32_t event_fd; /* eventfd, owned by the caller, not shared with another live operation */
  int32_t n_streams;
  /* The caller's CUDA streams, as 64-bit handles (0 and 1: the legacy default stream, 2: the calling thread's): regions on a device are
     read after all work that is queued in any of them, and work that is queued there later waits for that, without the host waiting. */
  const uint64_t* streams;
} veloc_checkpoint_args;

enum {
  VELOC_RS_LAST = 1,    /* the checkpoint is consumed by this restore; with a lease once that is taken, see veloc_lease_take */
  VELOC_RS_PEEK = 2,    /* does not advance the plan, and does not count as observed order */
  VELOC_RS_PATIENT = 4, /* as VELOC_CP_PATIENT */
  VELOC_RS_LOOPED = 8   /* does not consume the next restore of veloc_plan_next: a running loop over the plan restores that itself */
};

/* What of a region goes to its destination. Elements of itemsize bytes: that with all indices zero lies offset bytes behind the region's
 * first, and along each axis they are strides[] bytes apart, the last axis fastest. Each stride is at least what the axes behind it span,
 * so the bytes ascend. ndim == 0: itemsize contiguous bytes. Their number is the destination's nbytes, whose elements they become in the
 * same order; the two may have other axes and elements. A part without bytes is allowed. */
typedef struct veloc_part {
  int64_t offset;
  int64_t itemsize;
  const int64_t* shape;
  const int64_t* strides;
  int32_t ndim;
  int32_t reserved;
} veloc_part;

typedef struct veloc_restore_args {
  veloc_key key;
  const int32_t* select; /* indices of the regions wanted, ascending; NULL with n_select 0: all */
  int64_t n_select;
  const veloc_region* into; /* destinations, one per region wanted (offset is ignored); NULL: a lease */
  int64_t n_into;
  uint64_t expected_layout; /* 0: any; otherwise VELOC_E_CHANGED when the checkpoint has another one */
  int32_t flags;
  int32_t event_fd;
  const uint64_t* streams; /* as for a checkpoint: destinations on a device are written, and leases there are readable, in their order */
  int32_t n_streams;
  int32_t reserved;
  const veloc_part* parts; /* one per destination; NULL: whole regions. From a disk only the leaves of the checksum that the parts touch are
                              read, and verified; where their hashes are not known, the whole region is. Not for a lease */
} veloc_restore_args;

enum {
  VELOC_OUT_HIT = 1,      /* the bytes were in the fastest tier at the time of the call */
  VELOC_OUT_WRITABLE = 2, /* the lease belongs to the caller alone */
  VELOC_OUT_LAST = 4      /* the lease is of a restore for the last time: veloc_lease_take before its bytes are used */
};

typedef struct veloc_outcome {
  uint64_t op;     /* set with PENDING and AGAIN */
  uint64_t ticket; /* checkpoint: names this version for veloc_ticket and veloc_wait */
  uint64_t lease;  /* restore without into: give back by veloc_lease_release */
  uint64_t layout; /* layout id */
  void* base;      /* lease: address of slot byte 0. With a selection only the bytes of the regions selected are valid.
                      Not NULL for an empty slot. Valid until the lease is released, also after close. */
  int64_t slot_bytes;
  int64_t meta_len;
  int64_t hints_left; /* how far ahead the history's plan is known, in restores: refill when low */
  int64_t key_number; /* checkpoint with KEY_AUTO: the key chosen */
  int64_t waited_ns;  /* time this operation spent waiting, so far */
  int32_t flags;      /* VELOC_OUT_* */
  int32_t place;      /* lease: where base lies, as in veloc_region */
} veloc_outcome;

typedef struct veloc_info {
  uint64_t ticket; /* 0: the checkpoint is durable, and this process has not used it yet */
  uint64_t layout;
  int64_t slot_bytes;
  int64_t payload_bytes; /* sum of the regions */
  int64_t meta_len;
  int32_t tiers;       /* bit t set: complete copy in tier t */
  int32_t ready;       /* 1: a restore would find it in the fastest tier */
  int64_t captured_ns; /* time of the checkpoint call, since 1970 (UTC); 0: unknown */
} veloc_info;

/* A checkpoint stays if any of these rules keeps it. The best are those with the smallest, or the largest, number at one place of their
 * meta, which must be JSON then: by is the path to it, as names of members, KEY_STR, from the meta's object inward; at least one, and none
 * without best. Of equal checkpoints the earlier is better. A checkpoint without such a number, or with one that is not finite, is never
 * among the best. */
typedef struct veloc_retention {
  int64_t last;          /* number of latest checkpoints that stay */
  int64_t every;         /* keeps those whose number is a multiple of this */
  const veloc_key* keys; /* keeps these */
  int64_t n_keys;
  int64_t best; /* number of best checkpoints that stay */
  const veloc_key* by;
  int64_t n_by;
  int32_t named;   /* not 0: keeps those with text keys */
  int32_t largest; /* not 0: the largest numbers are the best */
} veloc_retention;

enum { VELOC_HINT_RESTORE = 0, VELOC_HINT_LAST = 1, VELOC_HINT_DROP = 2, VELOC_HINT_ADVANCE = 3 };

typedef struct veloc_hint_item {
  veloc_key key; /* ADVANCE: number = restore intervals that pass */
  int32_t op;    /* VELOC_HINT_* */
  int32_t reserved;
} veloc_hint_item;

typedef struct veloc_plan_restore {
  int64_t number; /* its position in the plan */
  int32_t last;   /* 1: hinted as the last one of its key */
  int32_t reserved;
} veloc_plan_restore;

enum {
  VELOC_TICKET_CAPTURED = 1,
  VELOC_TICKET_GONE = 2 /* dropped, replaced, consumed, or never captured (failed is set then): no flush is pending */
  /* With either, no transfer reads the source any more. */
};

typedef struct veloc_ticket_state {
  int32_t flags;
  int32_t durable; /* bit t set: the bytes are in tier t or below it */
  int32_t failed;  /* bit t set: the flush to tier t failed; veloc_wait tells why */
  int32_t reserved;
} veloc_ticket_state;

#ifdef __cplusplus
extern "C" {
#endif

/* Process. */
uint32_t veloc_abi_version(void);
/* Idempotent; another configuration than the first one's is VELOC_E_INVALID. JSON object, all optional:
 * {"max_procs": int, "gc_percent": int, "memory_limit": bytes, "test_hooks": bool; with these "kill_point": "place:n", at which the
 * process kills itself (see gocore/base/killpoint), and "catalog_slack", "segment_bytes" of new stores} */
int32_t veloc_init(const char* json, int64_t json_len, veloc_error* err);
/* JSON object with version, go version, revision, build tags, modules. *len = bytes needed; written when they fit in cap. */
int32_t veloc_build_info(char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* JSON object with the counts of the process's objects in the core: mapped_bytes, stores, histories, operations, leases, goroutines, and
 * "goroutine NAME" for those of each name. For tests of leaks: goroutines end a moment after the call that ends their work. */
int32_t veloc_in_use(char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* Takes log records (JSON lines {"level","message","time_ns"}) out of the core's ring. */
int32_t veloc_drain_log(char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* Runs a shot on the engine's simulator: JSON in (see gocore/policy/sim/request.go), JSON out. */
int32_t veloc_simulate(const char* json, int64_t json_len, char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* Probes the conditions for the device tier on this machine: JSON in (see gocore/doctor/request.go), JSON out. It waits, a second or
 * two for each GPU: call it without locks. An answer needs a buffer of 1 MiB; with a smaller one it does nothing. */
int32_t veloc_doctor(const char* json, int64_t json_len, char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* Inspects stores without opening them, and maintains them: JSON in (see gocore/inspect/request.go). The answer is a line of JSON
 * and, for some requests, a body after it (lines, or bytes); it is never longer than cap, as the caller requests longer content page by
 * page. It needs a buffer of 1 MiB at least; with a smaller one it does nothing. "step", "collect" and "repair" wait for disks: call it
 * without locks. A view that "open" returned stays until it is closed. Some requests read data, or fill it: bytes that are too many for
 * JSON. */
int32_t veloc_inspect(const char* json, int64_t json_len, void* data, int64_t data_len, char* buf, int64_t cap, int64_t* len,
                      veloc_error* err);
/* Test hooks; VELOC_E_UNAVAILABLE unless veloc_init had test_hooks. where: 0 in the call, 1 in a goroutine. */
int32_t veloc_test_panic(int32_t where, veloc_error* err);
/* Flips one bit of the checkpoint's bytes in a tier. */
int32_t veloc_test_corrupt(uint64_t history, const veloc_key* key, int32_t tier, int64_t slot_offset, veloc_error* err);

/* Stores. JSON: {"devices": [{"ordinal": int, "bytes": budget, or "share": of the free memory}], "kernels": path of velocpy_kernels.fatbin,
 * beside velocpy_codec.fatbin and velocpy_dedup.fatbin, "pinning": "auto"|"pipeline"|"concurrent"|"sequential"|"direct"|"off", "host":
 * bytes|null, "disk": bytes|null, "path": str|null, "flush": "lazy"|"eager", "policy": "score"|"lru"|"fifo", "verify":
 * "moved"|"first"|"always"|"off", "checksum": bool, "prefetch": bool, "guess": bool, "debug": bool, "workers": int, "copiers": int,
 * "direct": bool, "timeline": int events kept (0: none), "durable": bool: the disk tier outlives the store, "read_only": bool: … and is
 * only read, "idle": seconds after which free memory of the host tier is returned (0: never)} */
int32_t veloc_open(const char* json, int64_t json_len, uint64_t* store, veloc_error* err);
/* Refuses further work at once, lets transfers in flight end, frees memory that no lease holds. Safe to call twice: a second call, after
 * the first has ended, releases the handles of the store and its histories, which are stale from then on. */
int32_t veloc_close(uint64_t store, int32_t event_fd, veloc_outcome* out, veloc_error* err);
/* After veloc_close, for a caller that will not use these handles again: releases them as soon as the store has ended. Never waits. */
int32_t veloc_abandon(uint64_t store, veloc_error* err);
/* Changes the budgets of tiers: {"devices": [{"ordinal": int, "bytes": budget, which may be 0, or "share": of the memory that would be free
 * without the store}], "host": bytes, "disk": bytes, "trim": bool: returns the free memory of the host tier}; budgets left out stay.
 * Devices and host are limited to the budgets that the store was opened with. New checkpoints keep to the new budgets at once. Operation
 * that ends when the memory beyond them has been returned. Memory that leases hold, or that no tier below can take, follows later.
 * slot_bytes is the size of the named tiers then, and the bytes that a trim returned. If a host tier keeps checkpoints that no tier below
 * takes, the operation ends with the code of a full tier: the budget is in force, and nothing is lost. Cancelling stops only the wait. */
int32_t veloc_resize(uint64_t store, const char* json, int64_t json_len, int32_t event_fd, veloc_outcome* out, veloc_error* err);
/* JSON: tiers, histories, counters, waits by reason, bandwidths. */
int32_t veloc_stats(uint64_t store, char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* JSON array of the events recorded since the store was opened (or last cleared): for plots. */
int32_t veloc_timeline(uint64_t store, int32_t clear, char* buf, int64_t cap, int64_t* len, veloc_error* err);

/* Histories: the same name gives the same handle. */
int32_t veloc_history(uint64_t store, const char* name, int64_t name_len, uint64_t* history, veloc_error* err);
int32_t veloc_history_clear(uint64_t history, veloc_error* err); /* drops every checkpoint and the plan */
/* Sets which checkpoints stay once others are there (durable, in a durable store). Checkpoints that no rule keeps are dropped. All zero:
 * all stay. It is applied at once, and a durable store stores it. */
int32_t veloc_retain(uint64_t history, const veloc_retention* rule, veloc_error* err);
/* Sets how the checkpoints that are written from now on are reduced on their way down: {"method": str, "chunk": bytes, "digest":
 * str, "compressor": str}. Methods: "raw" (as they are), "codec" (what becomes smaller is encoded), "auto" (as codec, or for host
 * memory as runs, unless it takes longer), and, with chunk and digest ("xxh3" or "murmur3"), which are 0 and "" otherwise or by default,
 * de-duplication: "full", "basic", "list", "tree", "runs". A compressor is "zstd", "s2" or "huff0", of codec and of de-duplication; "":
 * none. It holds for this store until it is closed. "schedule": null, or {"profile": a profile or null, "repeat": letters}, of codec. */
int32_t veloc_reduce(uint64_t history, const char* json, int64_t json_len, veloc_error* err);
/* What the schedule of a history has come to: {"letters": str, "plans": int, "profile": a profile}; null if it has none. */
int32_t veloc_course(uint64_t history, char* buf, int64_t cap, int64_t* len, veloc_error* err);
int32_t veloc_history_len(uint64_t history, int64_t* n, veloc_error* err);
/* Keys in the order of their latest write: per key int32 kind, int32 text_len, int64 number, text. */
int32_t veloc_keys(uint64_t history, char* buf, int64_t cap, int64_t* len, veloc_error* err);
int32_t veloc_lookup(uint64_t history, const veloc_key* key, veloc_info* info, veloc_error* err);
/* The current version of a checkpoint, without its bytes. Six uint64: its ticket, as in veloc_info; its serial, which no other version of
 * the store ever has, 0 if it has none yet; layout; slot_bytes; the number of checksums, 0 or that of the regions; meta_len. Then per
 * checksum uint64 checksum, uint64 number of hashes, and as many uint64 hashes of leaves: none if the region has one leaf at most, or they
 * are not known. Then the meta. Checksums and leaves are defined in docs/format.md; those of the captured bytes, in every tier. */
int32_t veloc_describe(uint64_t history, const veloc_key* key, char* buf, int64_t cap, int64_t* len, veloc_error* err);

/* Checkpoints. */
int32_t veloc_checkpoint(uint64_t history, const veloc_checkpoint_args* args, veloc_outcome* out, veloc_error* err);
/* Captures n checkpoints in their order, as n calls of veloc_checkpoint would, until one of them needs its caller, or a slice of time is
 * over. *done is how many were captured; out[0] to out[*done - 1] are their outcomes. VELOC_OK with *done < n: call again for the rest.
 * VELOC_PENDING, VELOC_AGAIN: args[*done] has begun, and out[*done].op is its operation, which the caller drives to its end before it calls
 * again for those behind it. An error is that of args[*done]; those before stand, those behind it were not begun. If an argument of any of
 * them cannot be read, *done is 0, and nothing was begun. One event_fd may serve all of them. */
int32_t veloc_checkpoint_many(uint64_t history, const veloc_checkpoint_args* args, int64_t n, veloc_outcome* out, int64_t* done,
                              veloc_error* err);
int32_t veloc_restore(uint64_t history, const veloc_restore_args* args, veloc_outcome* out, veloc_error* err);
int32_t veloc_drop(uint64_t history, const veloc_key* key, veloc_error* err);
int32_t veloc_layout(uint64_t store, uint64_t layout, char* buf, int64_t cap, int64_t* len, veloc_error* err);
int32_t veloc_lease_meta(uint64_t lease, char* buf, int64_t cap, int64_t* len, veloc_error* err);
/* The caller uses a lease: the checkpoint of a last restore (VELOC_OUT_LAST) is consumed. Until then it is hidden from all callers;
 * releasing the lease first restores it. No effect on other leases, on a lease taken before, and after veloc_close. */
int32_t veloc_lease_take(uint64_t lease, veloc_error* err);
/* Never waits, any thread, also after veloc_close. In debug mode: VELOC_E_CORRUPT when the holder wrote into a shared lease; for one on a
 * device that needs the work queued in the streams to be done, so the call waits for them; while one of them is being captured into a
 * graph it does not wait, and the log has the result later.
 * streams: every stream that reads a lease on a device; its memory is not overwritten before the work queued in them is done. */
int32_t veloc_lease_release(uint64_t lease, const uint64_t* streams, int32_t n_streams, veloc_error* err);
/* Lets one more stream read a lease on a device: later work in it waits for the transfer of the bytes. Pass it to the release, too. */
int32_t veloc_lease_use(uint64_t lease, uint64_t stream, veloc_error* err);
/* Copies bytes of a lease's slot to host memory; the one call that waits, for that copy. */
int32_t veloc_lease_read(uint64_t lease, int64_t offset, int64_t nbytes, void* to, veloc_error* err);

/* Plans: appends to the history's restore order. On return *queued is how far ahead it is known now, as hints_left. */
int32_t veloc_hint(uint64_t history, const veloc_hint_item* items, int64_t n, int64_t* queued, veloc_error* err);
int32_t veloc_hint_clear(uint64_t history, veloc_error* err);
/* The next restore of the plan, for a loop over it: one key as in veloc_keys. *len is 0 when there is none. It is taken when it fits
 * in cap, and is not due again unless veloc_plan_undo reports that it did not happen. Restores without VELOC_RS_LOOPED take theirs out as
 * well. */
int32_t veloc_plan_next(uint64_t history, char* buf, int64_t cap, int64_t* len, veloc_plan_restore* out, veloc_error* err);
/* The restore of key did not happen: it is due again, before later ones. number and last are those of veloc_plan_next. No effect if the
 * plan was withdrawn meanwhile. */
int32_t veloc_plan_undo(uint64_t history, const veloc_key* key, int64_t number, int32_t last, veloc_error* err);
int32_t veloc_prefetch(uint64_t history, veloc_error* err);

/* Tickets. */
int32_t veloc_ticket(uint64_t store, uint64_t ticket, veloc_ticket_state* state, veloc_error* err);
/* Operation that ends when the ticket's bytes are captured (tier NONE) or durable in tier. ticket 0: all of the history (history != 0) or
 * the store. The call makes a lazy flush urgent. */
int32_t veloc_wait(uint64_t store, uint64_t history, uint64_t ticket, int32_t tier, int32_t event_fd, veloc_outcome* out, veloc_error* err);

/* Operations. */
int32_t veloc_step(uint64_t op, veloc_outcome* out, veloc_error* err);
/* Undoes a checkpoint or restore that has not ended; the store stays usable. A checkpoint that can no longer be undone, as its record
 * is being written to the catalog, has succeeded: then *out, which may be null, is written as if a step had returned VELOC_OK (its ticket
 * is not 0). After VELOC_E_POISONED from this call or veloc_step the operation has ended, too: the core no longer reads its sources or
 * writes to its event_fd. */
int32_t veloc_cancel(uint64_t op, veloc_outcome* out, veloc_error* err);

#ifdef __cplusplus
}
#endif
#endif
