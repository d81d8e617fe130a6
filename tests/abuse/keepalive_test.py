"""keepalive_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: pings on connections that are idle.

Routers forget silent connections, so clients ping each 10 s. That is allowed for as long as they
like; pinging without pause is not, and costs that connection alone.
"""
import sys
import time
import unittest

import grpc

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (AbusedServer, OVER_S, SERVICE, append_request, check_statuses, contract,  # noqa: E402
                   message, size)
from holdback import Stubs  # noqa: E402

INTERVAL_S = size(9.2, 10)  # 9 s is the least that the server allows
PINGS = size(4, 36)         # gRPC forgives two that come too early
HOUR_MS = 3600 * 1000


class KeepaliveTest(unittest.TestCase):

    def subscribe(self, connection):
        """Silent once it has caught up: a server that sends data forgives every ping."""
        request = message("SubscribeRequest", stream="default", at=1, progress_interval_ms=HOUR_MS)
        call = connection.open(SERVICE + "DeliveryService/Subscribe")
        return call.send(h2.message(request.SerializeToString())).end()

    def wait(self, connections, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            h2.step(connections, max(0, min(0.5, deadline - time.monotonic())))

    def test_pings_on_an_idle_subscription(self):
        with AbusedServer() as server:
            idle = h2.Connection(server.address)      # no call at all
            listening = h2.Connection(server.address)  # a silent subscription
            connections = [idle, listening]
            call = self.subscribe(listening)
            self.wait(connections, 1)
            for number in range(1, PINGS + 1):
                for connection in connections:
                    connection.ping()
                h2.run(connections, lambda n=number: all(c.pings == n for c in connections),
                       OVER_S, f"answers to ping {number}")
                if number < PINGS:
                    self.wait(connections, INTERVAL_S)
            self.assertEqual([c.going_away for c in connections], [None, None])
            seen = len(call.body)
            server.stubs().Append(append_request(1, 1), timeout=OVER_S)
            h2.run(connections, lambda: len(call.body) > seen, OVER_S, "the event")
            self.assertIsNone(call.status)
            for connection in connections:
                connection.close()

    def test_pings_without_pause(self):
        """Sent away with ENHANCE_YOUR_CALM; a connection beside it notices nothing."""
        with AbusedServer() as server:
            quiet, mad = h2.Connection(server.address), h2.Connection(server.address)
            connections = [quiet, mad]
            calls = [self.subscribe(c) for c in connections]
            self.wait(connections, 1)
            deadline = time.monotonic() + OVER_S
            while mad.going_away is None and mad.is_open and time.monotonic() < deadline:
                mad.ping()
                h2.step(connections, 0.05)
            check_statuses(connections, [calls[1]])
            self.assertEqual(mad.going_away[1], h2.ENHANCE_YOUR_CALM)
            seen = len(calls[0].body)
            server.stubs().Append(append_request(1, 1), timeout=OVER_S)
            h2.run(connections, lambda: len(calls[0].body) > seen, OVER_S, "the event")
            quiet.close()

    @unittest.skipUnless(size(False, True), "takes minutes: --full")
    def test_grpcio(self):
        """A real client with its keepalive set so."""
        options = [("grpc.keepalive_time_ms", 10000), ("grpc.keepalive_timeout_ms", 5000),
                   ("grpc.keepalive_permit_without_calls", 1),
                   ("grpc.http2.max_pings_without_data", 0)]
        with AbusedServer() as server:
            with grpc.insecure_channel(server.address, options=options) as channel:
                stubs = Stubs(contract, channel)
                request = message("SubscribeRequest", stream="default", at=1,
                                  progress_interval_ms=HOUR_MS)
                call = stubs.Subscribe(request)
                self.assertTrue(next(call).HasField("progress"))
                time.sleep(360)
                self.assertTrue(call.is_active())
                stubs.Append(append_request(1, 1), timeout=OVER_S)
                while not next(call).HasField("batch"):
                    pass
                call.cancel()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
