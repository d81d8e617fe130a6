/* holdbackd: decides the order of start and stop, and the exit code.
 *
 *   settings -> signals blocked -> parts started one after another -> ready -> a signal ->
 *   drain -> parts stopped in reverse -> stopped
 *
 * Each refusal is one line on stderr with cause and way out. */
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/live.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/version.h"
#include "server/config.h"
#include "server/engine/engine.h"
#include "server/locks.h"
#include "server/memory.h"
#include "server/options.h"
#include "server/rpc/listener.h"
#include "server/rpc/rpc.h"
#include "server/signals.h"
#include "server/verify_folder.h"

#ifdef HB_PLANTED_BUGS
#error "planted bugs are for tests of the tests: holdbackd is never built with them"
#endif

enum { EXIT_STOPPED = 0, EXIT_ABORTED = 1, EXIT_USAGE_ERROR = 64 };

/* How long cancelled calls may take to go before the process ends without them. */
enum { CANCEL_WAIT_MS = 1000 };

struct server {
  struct hb_config config;
  struct hb_signals signals;
  struct hb_engine *engine;
  struct hb_rpc *rpc;
  uint64_t drain_started_ms;
};

/* ---- parts: started in this order, stopped in reverse; one more is one more row */

static void on_fatal(void *context, const struct hb_err *err) {
  (void)context;
  char quoted[HB_ERR_MESSAGE_SIZE];
  hb_log(HB_LOG_ERROR, "fatal",
         "exit=%d cause=%s advice=\"see that the disk is well, then start again: what was "
         "acknowledged is there\"",
         hb_code_exit(err->code), hb_log_quote(err->message, quoted, sizeof quoted));
  _exit(hb_code_exit(err->code)); /* nothing may be acknowledged any more (I6) */
}

/* Before the store is opened, or even made: a wrong address should cost nothing. */
static enum hb_code probe_addresses(struct server *server, struct hb_err *err) {
  enum hb_code code = HB_OK;
  for (size_t i = 0; !code && i < server->config.listen_count; i++) {
    code = hb_listener_probe(server->config.listen[i], err);
  }
  return code;
}

static enum hb_code start_engine(struct server *server, struct hb_err *err) {
  struct hb_engine_options options = {.data_dir = server->config.data_dir,
                                      .processor_dir = server->config.processor_dir,
                                      .limits = server->config.limits,
                                      .on_fatal = on_fatal,
                                      .context = server};
  return hb_engine_open(&options, &server->engine, err);
}

static void stop_engine(struct server *server) {
  hb_engine_stop(server->engine);
  hb_engine_close(server->engine);
}

static enum hb_code start_rpc(struct server *server, struct hb_err *err) {
  struct hb_rpc_options options = {.engine = server->engine,
                                   .listen = (const char *const *)server->config.listen,
                                   .listen_count = server->config.listen_count,
                                   .drained = hb_signals_notify,
                                   .context = &server->signals};
  return hb_rpc_start(&options, &server->rpc, err);
}

static void stop_rpc(struct server *server) { hb_rpc_stop(server->rpc); }

static const struct part {
  const char *name;
  enum hb_code (*start)(struct server *server, struct hb_err *err);
  void (*stop)(struct server *server); /* NULL: nothing to stop */
} parts[] = {{"addresses", probe_addresses, NULL},
             {"engine", start_engine, stop_engine},
             {"rpc", start_rpc, stop_rpc}};

enum { PARTS = sizeof parts / sizeof parts[0] };

static void stop_parts(struct server *server, size_t count) {
  while (count > 0) {
    if (parts[--count].stop) parts[count].stop(server);
  }
}

static const char *advice(enum hb_code code) {
  switch (hb_code_exit(code)) {
    case 64:
      return "correct the setting; holdbackd --help lists them";
    case 65:
      return "nothing was changed; restore a backup, or copy the folder and ask for help";
    case 69:
      return "stop the other process, or choose another --listen";
    case 73:
      return "give this user the right to write there, or choose another --data-dir";
    case 74:
      return "see that the disk is well and has room, then start again";
    case 75:
      return "stop the other server, or choose another --data-dir";
    case 76:
      return "use the version that wrote it, or choose another --data-dir";
    default:
      return "start again; if it comes back, report it";
  }
}

static int refuse(const char *part, const struct hb_err *err) {
  char quoted[HB_ERR_MESSAGE_SIZE];
  hb_log(HB_LOG_ERROR, "refused", "part=%s exit=%d reason=%s cause=%s advice=\"%s\"", part,
         hb_code_exit(err->code), err->reason ? err->reason : hb_code_reason(err->code),
         hb_log_quote(err->message, quoted, sizeof quoted), advice(err->code));
  return hb_code_exit(err->code);
}

/* 0, or the exit code. */
static int start_parts(struct server *server) {
  for (size_t i = 0; i < PARTS; i++) {
    struct hb_err err;
    if (parts[i].start(server, &err) == HB_OK) continue;
    int code = refuse(parts[i].name, &err);
    stop_parts(server, i);
    return code;
  }
  return 0;
}

/* ---- serving */

/* gRPC's own lines: only for who looks closely, and in the shape of ours. */
static void log_of_grpc(gpr_log_func_args *args) {
  char quoted[512];
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  hb_log(HB_LOG_DEBUG, "grpc", "message=%s", hb_log_quote(args->message, quoted, sizeof quoted));
}

static void say_ready(const struct server *server) {
  for (size_t i = 0; i < server->config.listen_count; i++) {
    if (hb_listener_is_local(server->config.listen[i])) continue;
    hb_log(HB_LOG_WARN, "exposed",
           "listen=%s advice=\"anyone who reaches this address can read and write: use a trusted "
           "network\"",
           server->config.listen[i]);
  }
  const struct hb_engine_info *info = hb_engine_info(server->engine);
  if (info->damaged) {
    hb_log(HB_LOG_WARN, "damaged",
           "compaction=off advice=\"holdback verify tells what can't be read; restore a backup, or "
           "take the file DAMAGED away once the store is sound\"");
  }
  char quoted[4096];
  hb_log(HB_LOG_INFO, "ready",
         "listen=%s recovery_ms=%" PRIu32 " streams=%" PRIu64 " held_events=%" PRIu64 " store=%s",
         hb_log_quote(hb_rpc_bound(server->rpc), quoted, sizeof quoted), info->recovery_ms,
         info->streams, info->held_events, info->created ? "new" : "opened");
}

static int abort_now(struct server *server, const char *cause) {
  hb_rpc_cancel(server->rpc);
  int ignored;
  if (hb_signals_wait(&server->signals, CANCEL_WAIT_MS, &ignored) == HB_WAKE_NOTIFIED) {
    stop_parts(server, PARTS);
  }
  hb_log(HB_LOG_ERROR, "aborted", "cause=%s", cause);
  _exit(EXIT_ABORTED); /* where calls did not go, threads still hold what a return would free */
}

static int serve(struct server *server) {
  int signal_number = 0;
  while (hb_signals_wait(&server->signals, UINT64_MAX, &signal_number) != HB_WAKE_SIGNAL) continue;
  uint64_t timeout_ms = server->config.drain_timeout_ms;
  hb_log(HB_LOG_INFO, "drain", "signal=%s timeout_ms=%" PRIu64, sigabbrev_np(signal_number),
         timeout_ms);
  server->drain_started_ms = hb_clock_mono_ms();
  hb_rpc_drain(server->rpc, timeout_ms);
  switch (hb_signals_wait(&server->signals, timeout_ms, &signal_number)) {
    case HB_WAKE_SIGNAL:
      return abort_now(server, "second_signal");
    case HB_WAKE_TIMEOUT:
      return abort_now(server, "drain_timeout");
    case HB_WAKE_NOTIFIED:
      break;
  }
  stop_parts(server, PARTS);
  return EXIT_STOPPED;
}

/* 0, or the exit code. */
static int require_folder(const struct server *server) {
  if (server->config.data_dir) return 0;
  struct hb_err err;
  hb_err_set(&err, HB_INVALID, "FOLDER_MISSING", "--data-dir is not set");
  return refuse("settings", &err);
}

static int verify(const struct server *server, bool json) {
  struct hb_err err;
  bool sound = false;
  hb_log_set_level(server->config.log_level);
  int code = require_folder(server);
  if (code) return code;
  struct hb_verify_folder_options options = {.path = server->config.data_dir,
                                             .json = json,
                                             .out = stdout,
                                             .bar = isatty(STDERR_FILENO) == 1 ? stderr : NULL};
  if (hb_verify_folder(&options, &sound, &err)) return refuse("store", &err);
  return sound ? EXIT_STOPPED : hb_code_exit(HB_CORRUPT);
}

/* Last of all, for gRPC lets go of what it sends when it pleases: `live_calls=0 live_reads=0 ...`.
 * What is not 0 was forgotten, and is said as an error. */
static void say_stopped(const struct server *server) {
  struct hb_buf text = {0};
  bool clean = true;
  for (int i = 0; i < HB_LIVE_COUNT; i++) {
    char field[64];
    int64_t count = hb_live_get((enum hb_live)i);
    int size =
        snprintf(field, sizeof field, " live_%s=%" PRId64, hb_live_name((enum hb_live)i), count);
    hb_buf_append(&text, field, (size_t)size);
    clean = clean && count == 0;
  }
  hb_log(clean ? HB_LOG_INFO : HB_LOG_ERROR, "stopped", "drain_ms=%" PRIu64 "%.*s",
         hb_clock_mono_ms() - server->drain_started_ms, (int)text.size, (const char *)text.data);
  hb_buf_done(&text);
}

static int run(struct server *server) {
  hb_log_set_level(server->config.log_level);
  int missing = require_folder(server);
  if (missing) return missing;
  char quoted[512];
  hb_log(HB_LOG_INFO, "start", "version=%s pid=%d data_dir=%s", HB_VERSION_TEXT, (int)getpid(),
         hb_log_quote(server->config.data_dir, quoted, sizeof quoted));
  gpr_set_log_function(log_of_grpc);
  grpc_init();
  int code = start_parts(server);
  bool served = code == 0;
  if (served) {
    say_ready(server);
    code = serve(server);
  }
  if (served) say_stopped(server);
  /* Not grpc_shutdown: a thread of C core 1.51 that helps blocked writes sleeps up to 10 s in it,
   * and all that matters is closed by now. */
  _exit(code);
}

int main(int argc, char **argv) {
  struct server server = {.engine = NULL};
  struct hb_err err;
  struct hb_options_wish wish = {.print = false};
  hb_memory_tune();
  hb_locks_tune();
  if (hb_options_parse(argc, argv, &server.config, &wish, &err)) {
    (void)fprintf(stderr, "holdbackd: %s\n", err.message);
    return EXIT_USAGE_ERROR;
  }
  int code = EXIT_STOPPED;
  if (wish.print) {
    hb_config_print(&server.config, stdout);
  } else if (wish.verify) {
    code = verify(&server, wish.json); /* a signal just ends it: nothing is written */
  } else {
    hb_signals_init(&server.signals); /* before there is a second thread */
    code = run(&server);
    hb_signals_done(&server.signals);
  }
  hb_config_done(&server.config);
  return code;
}
