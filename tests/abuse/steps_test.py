"""steps_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: a client goes at every step of a call.

Unary, AppendStream and Subscribe, each cut short after each thing that can happen to it: by a
cancel (RST_STREAM), by the connection's end, by a deadline that passes while the client is silent.
After all of them the server answers as before, what was stored is what was answered, and at its
end nothing lives.
"""
import itertools
import sys
import unittest

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (AbusedServer, Bystander, FULL, MIB, OVER_S, SERVICE, append_request,  # noqa: E402
                   check_statuses, is_over, message, size)

ROUNDS = size(2, 20)
DEADLINE_EXCEEDED = 4
# How a server may tell a client of its own deadline: the status, or a reset where it was writing.
DEADLINE_ENDS = {DEADLINE_EXCEEDED, f"reset {h2.CANCEL}"}

APPEND = SERVICE + "IngestService/Append"
APPEND_STREAM = SERVICE + "IngestService/AppendStream"
SUBSCRIBE = SERVICE + "DeliveryService/Subscribe"
READ_KEY = SERVICE + "DeliveryService/ReadKey"


class Steps:
    """Calls brought to a step, each on `connection`. A step is a generator: what it yields is a
    condition that must come true before the next step."""

    def __init__(self, connection, call, first):
        self.connection, self.call = connection, call
        stream = "Stream" if call.path == APPEND_STREAM else ""
        self.one = h2.message(append_request(first, 1, "s", stream_kind=stream).SerializeToString())
        self.big = h2.message(append_request(first, 3, "s", payload=b"p" * (MIB - 64),
                                             stream_kind=stream).SerializeToString())

    def answers(self, count):
        """So many messages came."""
        seen = []

        def came():
            seen.extend(self.call.take_messages())
            return len(seen) >= count or is_over(self.call)
        return came

    def sent(self):
        return lambda: not self.call.pending or is_over(self.call)

    def unary(self, request):
        yield None  # headers alone
        self.call.send(request[:3])  # part of the length
        yield self.sent()
        self.call.send(request[3:5])
        yield self.sent()
        self.call.send(request[5:len(request) // 2])
        yield self.sent()
        self.call.send(request[len(request) // 2:])  # whole, without the end
        yield self.sent()
        self.call.end()
        yield None
        yield self.answers(1)

    def append(self):
        yield from self.unary(self.one)

    def append_big(self):
        yield from self.unary(self.big)

    def append_stream(self):
        yield None
        self.call.send(self.one)
        yield self.sent()
        yield self.answers(1)
        self.call.send(self.big[:MIB])
        yield self.sent()
        self.call.send(self.big[MIB:])
        yield self.sent()
        for _ in range(80):  # more than may be unanswered
            self.call.send(self.one)
        yield self.sent()
        self.call.send(self.one[:7])
        yield self.sent()
        self.call.end()
        yield None

    def subscribe(self):
        request = message("SubscribeRequest", stream="s", at=1, progress_interval_ms=50)
        data = h2.message(request.SerializeToString())
        yield None
        self.call.send(data[:4])
        yield self.sent()
        self.call.send(data[4:])
        yield self.sent()
        self.call.end()
        yield None
        yield self.answers(1)
        yield self.answers(3)  # in the middle of events, then idle
        yield self.answers(6)

    def read_key(self):
        request = message("ReadKeyRequest", stream="s", key=b"k")
        yield from self.unary(h2.message(request.SerializeToString()))


KINDS = {"append": APPEND, "append_big": APPEND, "append_stream": APPEND_STREAM,
         "subscribe": SUBSCRIBE, "read_key": READ_KEY}


class StepsTest(unittest.TestCase):

    def setUp(self):
        self.server = self.enterContext(AbusedServer())
        self.bystander = Bystander(self.server, "s")
        self.bystander.wait_acks(20)
        self.bystander.finish()
        # Not of the steps: their events are beyond a gap, and never mix with the bystander's.
        self.first = itertools.count(1000, 10)

    def tearDown(self):
        after = Bystander(self.server, "after")
        after.wait_acks(5)
        after.finish()

    def open(self, kind, connection, timeout=None):
        call = connection.open(KINDS[kind], timeout)
        return call, getattr(Steps(connection, call, next(self.first)), kind)()

    def bring(self, connection, steps, number):
        """Up to the given step; False: there is no such step."""
        for at, condition in enumerate(steps):
            if condition is not None:
                h2.run([connection], condition, OVER_S, f"step {at}")
            if at == number:
                h2.step([connection], 0)
                return True
        return False

    def every_step(self, kind, cut):
        cuts = 0
        for number in range(100):
            reached = False
            for _ in range(ROUNDS):
                reached = cut(kind, number) or reached
                cuts += 1
            if not reached:
                break
        self.assertGreater(cuts, 5)
        return cuts

    def test_cancel(self):
        """RST_STREAM; the connection goes on and serves the next call."""
        connection = h2.Connection(self.server.address)

        def cut(kind, number):
            call, steps = self.open(kind, connection)
            reached = self.bring(connection, steps, number)
            if not is_over(call):
                call.reset()
            h2.step([connection], 0)
            self.assertTrue(connection.is_open)
            return reached
        for kind in KINDS:
            with self.subTest(kind):
                print("cancel", kind, self.every_step(kind, cut), flush=True)
        connection.close()

    def test_disconnect(self):
        """The connection ends without a word."""

        def cut(kind, number):
            connection = h2.Connection(self.server.address)
            call, steps = self.open(kind, connection)
            reached = self.bring(connection, steps, number)
            connection.close()
            self.assertEqual(call.statuses, 1)
            return reached
        for kind in KINDS:
            with self.subTest(kind):
                print("disconnect", kind, self.every_step(kind, cut), flush=True)

    def test_deadline(self):
        """The server ends the call by itself when its time is over, at whatever step it stands."""
        connection = h2.Connection(self.server.address)
        waiting = []

        def cut(kind, number):
            call, steps = self.open(kind, connection, timeout="2S" if number else "1m")
            if number == 0:
                waiting.append(call)
                return True
            reached = self.bring(connection, steps, number)
            waiting.append(call)
            return reached
        for kind in KINDS:
            self.every_step(kind, cut)
        check_statuses([connection], waiting)
        ends = {call.status for call in waiting}
        # Some were answered before their time was over; of those that the client left unfinished
        # each must have run into it.
        self.assertLessEqual(ends, DEADLINE_ENDS | {0})
        unfinished = {c.status for c in waiting if not c.ended}
        self.assertLessEqual(unfinished, DEADLINE_ENDS | {0})
        self.assertTrue(unfinished & DEADLINE_ENDS)
        subscriptions = {c.status for c in waiting if c.path == SUBSCRIBE}
        self.assertLessEqual(subscriptions, DEADLINE_ENDS)
        connection.close()

    def test_reset_while_not_reading(self):
        """Subscribers whose window is used up are cancelled, or go away."""
        for reads in (False, True):
            connection = h2.Connection(self.server.address, reads=False, window=100)
            calls = [self.open("subscribe", connection)[0] for _ in range(20)]
            request = message("SubscribeRequest", stream="s", at=1, progress_interval_ms=50)
            for call in calls:
                call.send(h2.message(request.SerializeToString())).end()
            h2.run([connection], lambda: all(len(c.body) == 100 for c in calls), OVER_S,
                   "windows used up")
            if reads:
                for call in calls:
                    call.reset()
                h2.step([connection], 0)
            connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
