/* Decides what wakes a subscription: the stream that published, its timer, its own turn again. */
#include "server/rpc/container.h"
#include "server/rpc/lane.h"
#include "server/rpc/subscription.h"

static void changed_arrived(struct hb_post *post) {
  struct hb_subscription *self = HB_CONTAINER_OF(post, struct hb_subscription, changed_post);
  self->changed_posted = false;
  self->armed = false;
  if (self->release_when_changed) {
    hb_call_release(&self->call);
  } else {
    hb_subscription_go(self);
  }
}

/* Any thread. */
static void changed(struct hb_watch *watch) {
  struct hb_subscription *self = watch->context;
  self->changed_posted = true;
  hb_pump_post(self->call.lane->pump, &self->changed_post);
}

static void timer_fired(struct hb_timer *timer) {
  struct hb_subscription *self = HB_CONTAINER_OF(timer, struct hb_subscription, timer);
  self->progress_due = true;
  hb_subscription_go(self);
}

static void yield_ended(struct hb_post *post) {
  struct hb_subscription *self = HB_CONTAINER_OF(post, struct hb_subscription, yield_post);
  self->yielded = false;
  hb_subscription_go(self);
  hb_call_release(&self->call);
}

void hb_subscription_yield(struct hb_subscription *self) {
  self->yielded = true;
  hb_call_hold(&self->call);
  hb_pump_post(self->call.lane->pump, &self->yield_post);
}

bool hb_subscription_arm(struct hb_subscription *self) {
  if (self->armed) return false;
  bool news = hb_watch_arm(&self->watch);
  self->armed = !news;
  return news;
}

void hb_subscription_watch(struct hb_subscription *self) {
  self->timer.fire = timer_fired;
  self->changed_post.fire = changed_arrived;
  self->yield_post.fire = yield_ended;
  self->watch.changed = changed;
  self->watch.context = self;
  self->watching = true;
  self->armed = true;
  hb_watch_start(&self->watch, self->stream);
}

void hb_subscription_unwatch(struct hb_subscription *self) {
  if (!self->watching) return;
  hb_pump_clear_timer(self->call.lane->pump, &self->timer);
  self->watching = false;
  hb_watch_stop(&self->watch);
  if (self->changed_posted) { /* it is in the pump's mailbox still */
    self->release_when_changed = true;
    hb_call_hold(&self->call);
  }
}
