"""stalled_messages_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: peers that send 15 of 16 MiB.

gRPC keeps what has come of a message until it is whole. Many peers that never finish theirs must
cost a bounded amount of memory, others must get their acknowledgements all the time, and the
memory must come back without the peers' help.
"""
import collections
import struct
import sys
import time
import unittest

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (FULL, MIB, OVER_S, SERVICE, AbusedServer, Bystander,  # noqa: E402
                   append_request, check_statuses, is_over, size, varint)

RSS_MAX_MIB = 600
# Nobody stands still here: gRPC's memory, the mailbox, a commit being decided and one being written,
# shared blocks, RocksDB's buffers and cache may all be full at once: 256 + 64 + 32 + 64 + 160 MiB.
RSS_WHOLE_MAX_MIB = 700
MEMORY = size(64, 256)  # grpc_memory_max, MiB
CALLS = size(200, 2000)
PATIENCE_S = 10  # of server/rpc/pressure.c
WHOLE = 16 * MIB


def stall(connection, method, sent=15 * MIB):
    """A call that sends `sent` bytes of a message of 16 MiB and then nothing."""
    call = connection.open(SERVICE + "IngestService/" + method)
    head = b"\x0a\x07default\x12" + varint(WHOLE - 20)
    call.send(struct.pack(">BI", 0, WHOLE - 20 + len(head)) + head)
    return call.send_zeros(sent - 5 - len(head))


class StalledMessagesTest(unittest.TestCase):

    def stalled(self, method, connections_count):
        flag = f"--grpc-memory-max={MEMORY}MiB"
        with AbusedServer(flag) as server:
            bystander = Bystander(server, "bystander")
            bystander.wait_acks(3)
            connections = [h2.Connection(server.address) for _ in range(connections_count)]
            calls = [stall(c, method) for c in connections
                     for _ in range(CALLS // connections_count)]
            began = time.monotonic()
            h2.settle(connections, quiet_s=2, timeout_s=60)
            bystander.wait_acks(10, connections)
            # Whoever is left at a standstill is ended by the server, who needs no help for it.
            left = [c for c in calls if not is_over(c)]
            print(f"{method}: {sum(c.sent for c in calls) // MIB} MiB sent on {len(calls)} calls in "
                  f"{time.monotonic() - began:.1f} s, {len(left)} stand, RSS "
                  f"{server.rss_mib()} MiB", flush=True)
            self.assertGreater(len(left), 0)
            check_statuses(connections, left, PATIENCE_S + OVER_S)
            print(collections.Counter(c.status for c in calls), flush=True)
            self.assertLessEqual({c.status for c in calls},
                                 {14, "gone", f"reset {h2.ENHANCE_YOUR_CALM}"})
            said = [c.message for c in calls if c.status == 14]
            self.assertGreater(len(said), 0)
            self.assertIn("grpc_memory_max", said[0])
            bystander.wait_acks(10, connections)
            server.check_rss(RSS_MAX_MIB)
            # New connections are served as on the first day.
            Bystander(server, "afterwards").finish()
            bystander.finish()
            for connection in connections:
                connection.close()

    def test_append_stream(self):
        """Few connections, many calls each."""
        self.stalled("AppendStream", 4)

    @unittest.skipUnless(FULL, "the same with many connections: --full")
    def test_append(self):
        """Many connections."""
        self.stalled("Append", 200)

    def test_idle_calls_are_left_alone(self):
        """Without pressure nobody has to hurry: what is open and silent stays open."""
        with AbusedServer(f"--grpc-memory-max={MEMORY}MiB") as server:
            connection = h2.Connection(server.address)
            calls = [stall(connection, "AppendStream", sent) for sent in (6, 100 * 1024, MIB)]
            calls.append(connection.open(SERVICE + "IngestService/AppendStream"))
            deadline = time.monotonic() + PATIENCE_S + 3
            while time.monotonic() < deadline:
                h2.step([connection])
            self.assertEqual([c.status for c in calls], [None] * 4)
            for call in calls:
                call.reset()
            h2.step([connection])
            connection.close()

    def test_small_batches_under_pressure(self):
        """Batches that are small and whole come and go, while others fill the memory again and
        again: gRPC frees the one and resets the other at the same time."""
        with AbusedServer(f"--grpc-memory-max={MEMORY}MiB") as server:
            bystander = Bystander(server, "bystander")
            request = append_request(1, 3, stream_kind="Stream").SerializeToString()
            batches = h2.message(request) * 200
            producers, attackers = [], []
            waves, answered = 0, 0
            deadline = time.monotonic() + size(4, 40)
            while time.monotonic() < deadline or answered == 0:
                self.assertLess(time.monotonic(), deadline + OVER_S)
                producers = [c for c in producers if c.is_open and c.streams]
                while len(producers) < 4:
                    connection = h2.Connection(server.address)
                    connection.open(SERVICE + "IngestService/AppendStream")
                    producers.append(connection)
                attackers = [c for c in attackers if c.is_open and c.streams]
                while len(attackers) < 4:
                    attackers.append(h2.Connection(server.address))
                    for _ in range(8):
                        stall(attackers[-1], "AppendStream")
                    waves += 1
                for connection in producers:
                    for call in connection.streams.values():
                        answered += len(call.take_messages())
                        if not call.pending:
                            call.send(batches)
                h2.step(producers + attackers, 0.01)
                if waves % 5 == 0:  # others take their place
                    attackers.pop().close()
            print(f"{answered} batches answered beside {waves} waves", flush=True)
            for connection in producers + attackers:
                connection.close()
            bystander.wait_acks(3)
            bystander.finish()

    def test_whole_messages(self):
        """All at once send a whole batch of 15 MiB: each is answered or told to come again."""
        request = append_request(1, 15, payload=b"p" * (MIB - 64)).SerializeToString()
        data = h2.message(request)
        with AbusedServer() as server:
            bystander = Bystander(server, "bystander")
            connections = [h2.Connection(server.address) for _ in range(4)]
            calls = [c.open(SERVICE + "IngestService/Append").send(data).end()
                     for c in connections for _ in range(size(10, 100))]
            check_statuses(connections, calls, 6 * OVER_S)
            print(collections.Counter(c.status for c in calls), "RSS", server.rss_mib(True), "MiB",
                  flush=True)
            # 14: on a machine that is slow enough to stand still for PATIENCE_S in the middle of one.
            self.assertLessEqual({c.status for c in calls},
                                 {0, 14, "gone", f"reset {h2.ENHANCE_YOUR_CALM}"})
            self.assertIn(0, {c.status for c in calls})
            bystander.wait_acks(3, connections)
            bystander.finish()
            server.check_rss(RSS_WHOLE_MAX_MIB)
            for connection in connections:
                connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
