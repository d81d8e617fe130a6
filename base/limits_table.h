/* Every limit of Holdback, one row each. Flags, configuration, GetServer and docs come from here.
 *
 *   X(name, default, min, max, unit, settable, help)
 *
 * settable: SERVER = a flag and a configuration key (as --name-with-dashes);
 *           STREAM = the same, and it is the default of a stream that does not state its own;
 *           FIXED  = part of the contract, shown but not settable.
 * The reason for a number stands in its help. */
#define HB_KIB UINT64_C(1024)
#define HB_MIB (1024 * HB_KIB)
#define HB_GIB (1024 * HB_MIB)
#define HB_TIB (1024 * HB_GIB)

#define HB_LIMITS_TABLE(X)                                                                       \
  X(ahead_max, UINT64_C(1) << 62, 1, UINT64_C(1) << 62, "sequences", STREAM,                     \
    "how far above complete_to a sequence may be; memory does not depend on it")                 \
  X(held_bytes_max, 4 * HB_GIB, 1 * HB_MIB, 1 * HB_TIB, "bytes", STREAM,                         \
    "held bundles on disk per stream; bounds what a gap that never fills can cost")              \
  X(held_events_max, 20000000, 1000, 1000000000, "events", STREAM,                               \
    "events held per stream; each scattered one costs 24 bytes of index")                        \
  X(gaps_max, 1000000, 1, 10000000, "gaps", STREAM,                                              \
    "gaps per stream; each costs 24 bytes of memory")                                            \
  X(event_bytes_max, 1 * HB_MIB, 1 * HB_KIB, 3 * HB_MIB, "bytes", STREAM,                        \
    "one encoded event; 3 MiB still fits the 4 MiB that gRPC clients receive by default")        \
  X(held_memory_max, 128 * HB_MIB, 16 * HB_MIB, 1 * HB_TIB, "bytes", SERVER,                     \
    "held frames kept in memory, all streams; the rest is read back from its bundle")            \
  X(held_index_max, 512 * HB_MIB, 16 * HB_MIB, 1 * HB_TIB, "bytes", SERVER,                      \
    "memory for the index of held events and gaps, all streams; beyond it WINDOW_FULL, "         \
    "SERVER_MEMORY")                                                                             \
  X(key_held_memory_max, 128 * HB_MIB, 1 * HB_MIB, 1 * HB_TIB, "bytes", SERVER,                  \
    "held frames of PER_KEY streams kept in memory, all streams; the rest is read back from "    \
    "its bundle")                                                                                \
  X(key_cache_max, 64 * HB_MIB, 1 * HB_MIB, 1 * HB_TIB, "bytes", SERVER,                         \
    "records of PER_KEY keys without held events, kept in memory; others are read when needed")  \
  X(batch_events_max, 65536, 65536, 65536, "events", FIXED,                                      \
    "events in one batch; an answer of as many runs stays under 2 MiB")                          \
  X(batch_bytes_max, 16 * HB_MIB, 16 * HB_MIB, 16 * HB_MIB, "bytes", FIXED,                      \
    "one append request; as much as one commit takes")                                           \
  X(key_bytes_max, 64 * HB_KIB, 64 * HB_KIB, 64 * HB_KIB, "bytes", FIXED,                        \
    "one key; it is part of a row's key in the index")                                           \
  X(headers_max, 64, 64, 64, "headers", FIXED, "headers of one event")                           \
  X(header_name_bytes_max, 256, 256, 256, "bytes", FIXED, "one header's name")                   \
  X(headers_bytes_max, 16 * HB_KIB, 16 * HB_KIB, 16 * HB_KIB, "bytes", FIXED,                    \
    "all headers of one event, names and values")                                                \
  X(ingest_mailbox_max, 64 * HB_MIB, 16 * HB_MIB, 4 * HB_GIB, "bytes", SERVER,                   \
    "batches that wait for a commit, all calls; beyond it calls are not read")                   \
  X(waiting_bytes_max, 16 * HB_MIB, 16 * HB_MIB, 1 * HB_GIB, "bytes", SERVER,                    \
    "batches that wait for stored content to be compared; beyond it calls are not read")         \
  X(shared_blocks_max, 64 * HB_MIB, 1 * HB_MIB, 16 * HB_GIB, "bytes", SERVER,                    \
    "recent log blocks in memory that subscribers share; behind them they read from disk")       \
  X(answers_in_flight_max, 256 * HB_MIB, 16 * HB_MIB, 16 * HB_GIB, "bytes", SERVER,              \
    "answers to subscribers on their way; beyond it one block per answer")                       \
  X(disk_reserve, 256 * HB_MIB, 1 * HB_MIB, 1 * HB_TIB, "bytes", SERVER,                         \
    "free disk space below which, plus twice what is held, nothing more is held; counts as 64 "  \
    "MiB above the floor (64 MiB + wal_bytes_max, where writing stops) where it is set lower")   \
  X(wal_bytes_max, 256 * HB_MIB, 1 * HB_MIB, 64 * HB_GIB, "bytes", SERVER,                       \
    "RocksDB's write-ahead log; bounds what a start has to replay, and to find room for")        \
  X(grpc_memory_max, 256 * HB_MIB, 64 * HB_MIB, 16 * HB_GIB, "bytes", SERVER,                    \
    "gRPC's resource quota: messages being received")                                            \
  X(filter_keys_max, 1000, 1000, 1000, "keys", FIXED,                                            \
    "keys and prefixes in one filter; each event is tested against them")                        \
  X(filter_bytes_max, 64 * HB_KIB, 64 * HB_KIB, 64 * HB_KIB, "bytes", FIXED,                     \
    "all keys and prefixes in one filter")                                                       \
  X(peers_max, 100000, 100000, 100000, "peers", FIXED,                                           \
    "senders remembered by name in receipts; later ones are 'other'")                            \
  X(calls_max, 10000, 16, 100000, "calls", SERVER, "open calls")                                 \
  X(streams_max, 10000, 1, 100000, "streams", SERVER, "streams; each costs a few KiB of memory") \
  X(subscriptions_max, 10000, 1, 100000, "subscriptions", SERVER, "open subscriptions")          \
  X(processors_max, 64, 1, 1000, "processors", SERVER,                                           \
    "attached processors, all streams; each has a thread and 64 MiB of state in memory at most") \
  X(blocked_keys_max, 10000, 1, 1000000, "keys", SERVER,                                         \
    "keys of one processor that wait at an event that failed; each costs 1 KiB and its name in " \
    "memory, and beyond it the processor is suspended")                                          \
  X(page_size_max, 1000, 1000, 1000, "entries", FIXED, "entries in one page of a list")          \
  X(unprocessed_bytes_max, 64 * HB_MIB, 64 * HB_MIB, 64 * HB_MIB, "bytes", FIXED,                \
    "kept copies of refused events per stream; beyond it they are answered, reason QUOTA")       \
  X(producer_bytes_max, 256, 256, 256, "bytes", FIXED, "a producer's name")
