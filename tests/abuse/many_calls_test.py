"""many_calls_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: calls opened and dropped by the
thousand, and as many open as there may be.
"""
import contextlib
import sys
import time
import unittest

import grpc

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (AbusedServer, Bystander, OVER_S, SERVICE, append_request,  # noqa: E402
                   check_statuses, contract, message, size)
from holdback import error_info  # noqa: E402

DROPPED = size(2000, 10000)
APPEND_STREAM = SERVICE + "IngestService/AppendStream"
SUBSCRIBE = SERVICE + "DeliveryService/Subscribe"
RESOURCE_EXHAUSTED = 8


class DroppedCallsTest(unittest.TestCase):

    def drop(self, server, prepare, drop):
        """DROPPED calls, 500 at a time. Returns what the second half cost in MiB: what a call
        leaves behind shows there, what an allocator keeps does not."""
        half_mib = 0
        for opened in range(0, DROPPED, 500):
            if opened == DROPPED // 2:
                half_mib = server.rss_mib()
            connection = h2.Connection(server.address)
            calls = [prepare(connection) for _ in range(500)]
            drop(connection, calls)
            connection.close()
        return server.rss_mib() - half_mib

    def dropped(self, prepare, drop):
        with AbusedServer() as server:
            bystander = Bystander(server, "bystander")
            bystander.wait_acks(3)
            grown = self.drop(server, prepare, drop)
            bystander.wait_acks(10)
            bystander.finish()
            print(f"{DROPPED} calls: RSS {server.rss_mib()} MiB, {grown} MiB more in the second "
                  "half", flush=True)
            server.check_rss(size(32, 64), grown_from=server.rss_mib() - grown)
            server.check_rss(300)

    @staticmethod
    def open_stream(connection):
        return connection.open(APPEND_STREAM)

    @staticmethod
    def open_subscription(connection):
        request = message("SubscribeRequest", stream="default", at=1)
        return connection.open(SUBSCRIBE).send(h2.message(request.SerializeToString())).end()

    @staticmethod
    def open_append(connection):
        request = append_request(5, 2)
        return connection.open(SERVICE + "IngestService/Append").send(
            h2.message(request.SerializeToString()))

    @staticmethod
    def reset(connection, calls):
        """At once, without waiting for the server to notice."""
        for call in calls:
            call.reset()
        h2.run([connection], lambda: not connection.output, OVER_S, "resets sent")

    @staticmethod
    def disconnect(connection, calls):
        del calls
        h2.run([connection], lambda: not connection.output, OVER_S, "calls sent")

    def test_reset_streams(self):
        self.dropped(self.open_stream, self.reset)

    def test_reset_subscriptions(self):
        self.dropped(self.open_subscription, self.reset)

    def test_disconnect_subscriptions(self):
        self.dropped(self.open_subscription, self.disconnect)

    def test_disconnect_appends(self):
        self.dropped(self.open_append, self.disconnect)


class TinyBatchesTest(unittest.TestCase):

    def test_history_again(self):
        """Hundreds of calls send history again, each in as many tiny batches as may be unanswered:
        each batch has to be compared with what is stored, and sends its call's others back to the
        queue. All are answered, and a bystander meanwhile."""
        calls_count, batches = size(400, 1000), 64
        with AbusedServer("--shared-blocks-max=1MiB") as server:
            bystander = Bystander(server, "bystander")
            stubs = server.stubs()
            stubs.Append(append_request(1, calls_count * batches), timeout=OVER_S)
            connections = [h2.Connection(server.address) for _ in range(8)]
            calls = []
            for i in range(calls_count):
                data = b"".join(
                    h2.message(append_request(1 + (j * calls_count + i * 7) % (
                        calls_count * batches), 1, stream_kind="Stream").SerializeToString())
                    for j in range(batches))
                calls.append(connections[i % 8].open(APPEND_STREAM).send(data).end())
            began = time.monotonic()
            bystander.wait_acks(3, connections)
            check_statuses(connections, calls, size(2, 8) * OVER_S)
            print(f"{calls_count * batches} batches took {time.monotonic() - began:.1f} s",
                  flush=True)
            self.assertEqual({c.status for c in calls}, {0})
            self.assertEqual({len(c.take_messages()) for c in calls}, {batches})
            bystander.wait_acks(3)
            bystander.finish()
            for connection in connections:
                connection.close()


class CapsTest(unittest.TestCase):
    """Each cap of the server: so many are served, one more is told which limit it met, the others
    go on, and when one has gone there is room again."""

    @contextlib.contextmanager
    def refused(self, reason, *words):
        with self.assertRaises(grpc.RpcError) as caught:
            yield
        error = caught.exception
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error.details())
        self.assertEqual(error_info(contract, error), (reason, "holdback", error.details()))
        for word in words:
            self.assertIn(str(word), error.details())

    def status(self, stubs, stream="default"):
        return stubs.GetStream(message("GetStreamRequest", stream=stream), timeout=OVER_S)

    def subscribe(self, stubs):
        call = stubs.Subscribe(message("SubscribeRequest", stream="default", at=1),
                               timeout=2 * OVER_S)
        self.assertTrue(next(call).HasField("progress"))
        return call

    def until_served(self, call):
        """A place becomes free when the server has seen that a call went, not before."""
        for _ in range(500):
            with contextlib.suppress(grpc.RpcError):
                return call()
        self.fail("no place became free")

    def test_calls_max(self):
        with AbusedServer("--calls-max=16") as server:
            stubs = server.stubs()
            calls = [self.subscribe(stubs) for _ in range(15)]
            self.status(stubs)  # the 16th, and gone again
            calls.append(self.until_served(lambda: self.subscribe(stubs)))
            with self.refused("TOO_MANY_CALLS", "calls_max", 16):
                self.status(stubs)
            with self.refused("TOO_MANY_CALLS", "calls_max", 16):
                next(stubs.Subscribe(message("SubscribeRequest", stream="default", at=1)))
            with self.refused("TOO_MANY_CALLS", "calls_max", 16):
                next(stubs.AppendStream(iter([append_request(1, 1, stream_kind="Stream")])))
            self.assertTrue(next(calls[0]).HasField("progress"))  # it goes on
            calls.pop().cancel()
            self.until_served(lambda: self.status(stubs))
            for call in calls:
                call.cancel()

    def test_calls_max_flood(self):
        """Far more than calls_max on one connection: each gets its status, and just one (I9)."""
        with AbusedServer("--calls-max=16") as server:
            connections = [h2.Connection(server.address) for _ in range(2)]
            calls = [c.open(APPEND_STREAM) for c in connections for _ in range(size(200, 2000))]
            h2.run(connections, lambda: sum(c.statuses for c in calls) >= len(calls) - 32, OVER_S,
                   "refusals")
            over = [c for c in calls if c.statuses]
            check_statuses(connections, over)
            self.assertEqual({c.status for c in over}, {RESOURCE_EXHAUSTED})
            self.assertIn("calls_max is 16", over[0].message)
            for call in calls:
                if not call.statuses:
                    call.end()  # those that were let in end as they should
            check_statuses(connections, calls)
            self.assertEqual({c.status for c in calls} - {0}, {RESOURCE_EXHAUSTED})
            self.until_served(lambda: self.status(server.stubs()))
            for connection in connections:
                connection.close()

    def test_subscriptions_max(self):
        with AbusedServer("--subscriptions-max=3") as server:
            stubs = server.stubs()
            calls = [self.subscribe(stubs) for _ in range(3)]
            with self.refused("TOO_MANY_SUBSCRIPTIONS", "subscriptions_max", 3):
                next(stubs.Subscribe(message("SubscribeRequest", stream="default", at=1)))
            self.assertEqual(stubs.Append(append_request(1, 1), timeout=OVER_S).result.stored, 1)
            for call in calls:  # the others see it
                while not next(call).HasField("batch"):
                    pass
            calls.pop().cancel()
            calls.append(self.until_served(lambda: self.subscribe(stubs)))
            for call in calls:
                call.cancel()

    def test_streams_max(self):
        with AbusedServer("--streams-max=3") as server:
            stubs = server.stubs()

            def create(name):
                config = message("StreamConfig", name=name, mode=1, first_sequence=1)
                return stubs.CreateStream(message("CreateStreamRequest", config=config),
                                          timeout=OVER_S)
            for name in ("a", "b"):  # `default` is the third
                create(name)
            with self.refused("TOO_MANY_STREAMS", "streams_max", 3):
                create("c")
            create("a")  # it is there already: no new one
            self.assertEqual(stubs.Append(append_request(1, 1, "b"), timeout=OVER_S).result.stored,
                             1)
            stubs.DeleteStream(message("DeleteStreamRequest", stream="a"), timeout=OVER_S)
            create("c")
            with self.refused("TOO_MANY_STREAMS", "streams_max", 3):
                create("a")

    def test_message_max(self):
        """Far over batch_bytes_max: gRPC 1.51 refuses it once it is whole, and its quota ends a
        message of 4 GiB that goes on and on; either costs that call alone."""
        with AbusedServer() as server:
            bystander = Bystander(server, "bystander")
            connection = h2.Connection(server.address)
            whole, endless = (connection.open(APPEND_STREAM) for _ in range(2))
            whole.send(b"\0" + (33 << 20).to_bytes(4, "big")).send_zeros(33 << 20)
            check_statuses([connection], [whole])
            self.assertEqual(whole.status, RESOURCE_EXHAUSTED, whole.message)
            self.assertIn("larger than max", whole.message)
            endless.send(b"\0" + (2**32 - 1).to_bytes(4, "big")).send_zeros(2**31)
            check_statuses([connection], [endless], 2 * OVER_S)
            self.assertEqual(endless.status, f"reset {h2.ENHANCE_YOUR_CALM}")
            server.check_rss(450)
            print(f"{endless.sent >> 20} of 4096 MiB taken, RSS {server.rss_mib(True)} MiB")
            bystander.wait_acks(3, [connection])
            bystander.finish()
            connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
