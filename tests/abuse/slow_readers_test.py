"""slow_readers_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: what a subscriber that never reads
costs: at most 1 MiB beyond the shared blocks.

The shared blocks are made as small as they may be, and the subscribers stall far behind them: each
holds what it read for itself. Beside them one reads, and gets everything.
"""
import sys
import unittest

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (KIB, MIB, OVER_S, SERVICE, AbusedServer, append_request, message,  # noqa: E402
                   size)

SUBSCRIBERS = size(100, 500)
EACH_MIB = 1
FIXED_MIB = 24  # the log's tables and the allocator, whoever reads


class SlowReadersTest(unittest.TestCase):

    def subscribe(self, connection):
        request = message("SubscribeRequest", stream="default", at=1, progress_interval_ms=100)
        call = connection.open(SERVICE + "DeliveryService/Subscribe")
        return call.send(h2.message(request.SerializeToString())).end()

    def read_all(self, server, count):
        """Whoever reads gets each event, in order, and no other; the call stays open."""
        due = 1
        call = server.stubs().Subscribe(message("SubscribeRequest", stream="default", at=1),
                                        timeout=2 * OVER_S)
        for answer in call:
            for event in answer.batch.events:
                self.assertEqual(event.sequence, due)
                due += 1
            if due == count + 1:
                break
        call.cancel()

    def stalled(self, per_batch, batches, payload):
        count = per_batch * batches
        with AbusedServer("--shared-blocks-max=1MiB", "--drain-timeout=4s") as server:
            stubs = server.stubs()
            for batch in range(batches):
                stubs.Append(append_request(1 + batch * per_batch, per_batch, payload=payload),
                             timeout=OVER_S)
            self.read_all(server, count)  # what reading costs by itself is counted before
            before = server.rss_mib()
            connections = [h2.Connection(server.address, reads=False, window=70000)
                           for _ in range(SUBSCRIBERS)]
            calls = [self.subscribe(c) for c in connections]
            h2.run(connections, lambda: all(len(c.body) >= 65535 for c in calls), OVER_S,
                   "windows used up")
            self.read_all(server, count)
            grown = server.rss_mib() - before
            print(f"{SUBSCRIBERS} that never read cost {grown} MiB", flush=True)
            server.check_rss(SUBSCRIBERS * EACH_MIB + FIXED_MIB, grown_from=before)
            self.assertEqual(stubs.Append(append_request(count + 1, 1), timeout=OVER_S)
                             .result.stored, 1)
            self.assertEqual({c.status for c in calls}, {None})
            # One that begins to read again goes on where it was.
            first = connections[0]
            first.reads = True
            update = (1 << 24).to_bytes(4, "big")
            first.put(h2.frame(h2.WINDOW_UPDATE, 0, 0, update))
            first.put(h2.frame(h2.WINDOW_UPDATE, 0, calls[0].number, update))
            due = 1

            def caught_up():
                nonlocal due
                for data in calls[0].take_messages():
                    for event in message("SubscribeResponse").FromString(data).batch.events:
                        self.assertEqual(event.sequence, due)
                        due += 1
                return due > count
            h2.run(connections, caught_up, 2 * OVER_S, "the rest")
            # They are still there, and read nothing, when the server stops.
            server.stop_clean()
            for connection in connections:
                connection.close()

    def answer_sizes(self, server, count):
        """Of all answers that have events, to one that reads them all from the disk."""
        sizes, due = [], 1
        call = server.stubs().Subscribe(message("SubscribeRequest", stream="default", at=1),
                                        timeout=2 * OVER_S)
        for answer in call:
            due += len(answer.batch.events)
            if answer.batch.events:
                sizes.append(answer.ByteSize())
            if due == count + 1:
                break
        call.cancel()
        return sizes

    def test_answers_in_flight_max(self):
        """Blocks are joined into one answer until all subscribers together have so much on its
        way; from then on each answer is one block, and all goes on."""
        count, block = 100_000, 64 * KIB
        with AbusedServer("--shared-blocks-max=1MiB", "--answers-in-flight-max=16MiB",
                          "--drain-timeout=4s") as server:
            stubs = server.stubs()
            for first in range(1, count, 20000):
                stubs.Append(append_request(first, 20000, payload=b"p" * 100), timeout=OVER_S)
            self.assertGreater(max(self.answer_sizes(server, count)), 2 * block)
            connections = [h2.Connection(server.address, reads=False, window=70000)
                           for _ in range(90)]  # each has one answer of 256 KiB that it doesn't take
            calls = [self.subscribe(c) for c in connections]
            h2.run(connections, lambda: all(len(c.body) >= 65535 for c in calls), OVER_S,
                   "windows used up")
            sizes = self.answer_sizes(server, count)
            print(f"answers of {min(sizes)} to {max(sizes)} bytes under pressure", flush=True)
            self.assertLess(max(sizes), 2 * block)
            for connection in connections:
                connection.close()
            server.stop_clean()

    def test_large_events(self):
        """An answer is one event of almost 1 MiB."""
        self.stalled(8, 4, b"p" * (MIB - KIB))

    def test_small_events(self):
        """An answer is many blocks together."""
        self.stalled(20000, 6, b"p" * 100)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
