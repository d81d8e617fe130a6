/* Decides what is shown of the books, and how often. */
#include "examples/orderbook/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { ROWS = 16, REDRAW_MS = 100, CELL = 24 };

void ob_table_init(struct ob_table *table, uint32_t contracts, size_t total) {
  *table = (struct ob_table){.rows = hb_calloc(contracts, sizeof *table->rows),
                             .contracts = contracts,
                             .total = total,
                             .live = isatty(STDOUT_FILENO) == 1,
                             .begun_ms = hb_clock_mono_ms()};
  table->drawn_ms = table->begun_ms;
}

/* ---- drawing */

static const char *cell(int64_t number, bool present, char out[CELL]) {
  if (!present) return "-";
  (void)snprintf(out, CELL, "%" PRId64, number);
  return out;
}

static void draw_row(const struct ob_row *row, uint32_t contract) {
  char cells[5][CELL];
  bool bid = row->bid.quantity > 0;
  bool offer = row->offer.quantity > 0;
  (void)printf("  %8" PRIu32 " %9" PRId64 " %9s %7s | %-7s %-9s %7s\n", contract, row->events,
               cell(row->bid.quantity, bid, cells[0]), cell(row->bid.price, bid, cells[1]),
               cell(row->offer.price, offer, cells[2]), cell(row->offer.quantity, offer, cells[3]),
               cell(row->trade_price, row->trade_price > 0, cells[4]));
}

/* The last contracts: they are the busiest. */
static void draw(struct ob_table *table) {
  if (table->drawn) (void)printf("\033[%" PRIu32 "A\033[J", table->drawn);
  uint32_t from = table->contracts > ROWS ? table->contracts - ROWS : 0;
  uint64_t ms = hb_clock_mono_ms() - table->begun_ms;
  (void)printf("  contract    events       qty     bid | offer   qty         trade\n");
  for (uint32_t i = from; i < table->contracts; i++) draw_row(&table->rows[i], i + 1);
  (void)printf("  %zu of %zu events, %" PRIu64 " s", table->seen, table->total, ms / 1000);
  if (from > 0) (void)printf("; contracts 1 to %" PRIu32 " are not shown", from);
  (void)printf("\n");
  (void)fflush(stdout);
  table->drawn = table->contracts - from + 2;
  table->drawn_ms = hb_clock_mono_ms();
}

/* ---- taking */

static struct ob_level best(const struct ob_depth *depth, size_t index, uint16_t count) {
  return count ? ob_depth_level(depth, index) : (struct ob_level){0};
}

void ob_table_take(struct ob_table *table, const struct ob_depth *depth) {
  struct ob_row *row = &table->rows[depth->contract - 1];
  row->bid = best(depth, 0, depth->bids);
  row->offer = best(depth, depth->bids, depth->offers);
  if (depth->has_trade) row->trade_price = depth->trade_price;
  if (depth->final) return;
  row->events++;
  table->seen++;
  /* A clock costs less than a depth, a terminal more than thousands. */
  if (table->live && table->seen % 64 == 0 && hb_clock_mono_ms() - table->drawn_ms >= REDRAW_MS) {
    draw(table);
  }
}

void ob_table_finish(struct ob_table *table) { draw(table); }

void ob_table_done(struct ob_table *table) {
  free(table->rows);
  *table = (struct ob_table){0};
}
