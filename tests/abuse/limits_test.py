"""limits_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: limits of memory and of quotas.

What an event, a batch, a filter or a stream may be is in bad_input_test.py; the server's caps on
calls are in many_calls_test.py. Here is what fills up: at the limit taken, one over it refused
with its reason, everything else goes on.
"""
import sys
import threading
import unittest

import grpc

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (FULL, KIB, MIB, OUTCOMES, OVER_S, SERVICE, AbusedServer,  # noqa: E402
                   Bystander, append_request, check_statuses, contract, message)

REASONS = contract.enum("holdback.v1.OutcomeReason")


class LimitsTest(unittest.TestCase):

    def create(self, stubs, name, **limits):
        config = message("StreamConfig", name=name, mode=1, first_sequence=1,
                         limits=message("StreamLimits", **limits))
        stubs.CreateStream(message("CreateStreamRequest", config=config), timeout=OVER_S)

    def append(self, stubs, stream, sequences, **fields):
        batch = message("EventBatch")
        for sequence in sequences:
            batch.events.add(sequence=sequence, **fields)
        request = message("AppendRequest", stream=stream, batch=batch)
        runs = stubs.Append(request, timeout=OVER_S).result.runs
        return [(run.count, run.outcome, run.reason) for run in runs]

    def status(self, stubs, stream):
        return stubs.GetStream(message("GetStreamRequest", stream=stream), timeout=OVER_S).status

    def until_released(self, stubs, stream, frontier):
        """An answer does not wait for what its commit can't release at once."""
        call = stubs.Subscribe(message("SubscribeRequest", stream=stream, at=2,
                                       progress_interval_ms=50), timeout=OVER_S)
        for answer in call:
            if answer.HasField("progress") and answer.progress.frontier >= frontier:
                break
        call.cancel()
        self.assertEqual(self.status(stubs, stream).frontier, frontier)

    def stored(self, count):
        return (count, OUTCOMES["OUTCOME_STORED"], 0)

    def full(self, count, reason):
        return (count, OUTCOMES["OUTCOME_WINDOW_FULL"], REASONS["OUTCOME_REASON_" + reason])

    def test_held_index_max(self):
        """Scattered events fill the server's index of what is held: SERVER_MEMORY per event, on
        every stream; what can be released at once is still taken, and makes room again."""
        with AbusedServer("--held-index-max=16MiB") as server:
            stubs = server.stubs()
            self.create(stubs, "other")
            held, refused = 0, 0
            while refused == 0 and held < 2_000_000:
                first = 2 + 2 * held
                runs = self.append(stubs, "default", range(first, first + 2 * 65536, 2))
                self.assertEqual(runs[0][1:], self.stored(0)[1:])
                held += runs[0][0]
                refused = 65536 - runs[0][0]
                if refused:
                    self.assertEqual(runs[1:], [self.full(refused, "SERVER_MEMORY")])
            print(f"{held} scattered events in 16 MiB of index", flush=True)
            self.assertGreater(held, 16 * MIB // 64)
            self.assertEqual(self.append(stubs, "other", [5]), [self.full(1, "SERVER_MEMORY")])
            self.assertEqual(self.append(stubs, "other", [1, 2]), [self.stored(2)])
            self.assertEqual(self.append(stubs, "default", range(1, 60001, 2)),
                             [self.stored(30000)])
            self.until_released(stubs, "default", 60001)
            self.assertEqual(self.append(stubs, "other", [5]), [self.stored(1)])
            server.check_rss(400)

    def test_unprocessed_bytes_max(self):
        """Copies of conflicting events are kept up to 64 MiB per stream; then QUOTA, and the
        answer is still CONFLICT."""
        with AbusedServer() as server:
            stubs = server.stubs()
            payload = b"p" * (MIB - KIB)
            self.create(stubs, "other")
            self.assertEqual(self.append(stubs, "default", range(1, 76)), [self.stored(75)])
            reasons = []
            for first in range(1, 76, 15):
                runs = self.append(stubs, "default", range(first, first + 15), payload=payload)
                self.assertEqual({run[1] for run in runs}, {OUTCOMES["OUTCOME_CONFLICT"]})
                reasons += [run[2] for run in runs for _ in range(run[0])]
            kept = reasons.index(REASONS["OUTCOME_REASON_QUOTA"])
            self.assertEqual(reasons[kept:], [REASONS["OUTCOME_REASON_QUOTA"]] * (75 - kept))
            self.assertIn(kept, range(60, 66))
            # The same refusal again is the same row: it needs no room.
            again = self.append(stubs, "default", [1], payload=payload)
            self.assertEqual(again, [(1, OUTCOMES["OUTCOME_CONFLICT"], 0)])
            self.assertEqual(self.append(stubs, "other", [1, 2]), [self.stored(2)])
            self.assertEqual(self.append(stubs, "default", [76]), [self.stored(1)])

    def test_ingest_mailbox_max(self):
        """More batches than the mailbox takes: the calls are slowed, none is refused, and none of
        what they sent is lost."""
        calls, batches = 8, 4 if FULL else 2
        with AbusedServer("--ingest-mailbox-max=16MiB") as server:
            stubs = server.stubs()
            bystander = Bystander(server, "bystander")
            errors = []

            def produce(lane):
                try:
                    requests = [append_request(1 + (lane * batches + i) * 15, 15,
                                               payload=b"p" * (MIB - KIB), stream_kind="Stream")
                                for i in range(batches)]
                    answers = list(server.stubs().AppendStream(iter(requests), timeout=3 * OVER_S))
                    stored = sum(answer.result.stored for answer in answers)
                    if len(answers) != batches or stored != 15 * batches:
                        errors.append(answers)
                except BaseException as error:  # shown below
                    errors.append(error)
            threads = [threading.Thread(target=produce, args=(lane,)) for lane in range(calls)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(errors, [])
            self.until_released(stubs, "default", 1 + 15 * calls * batches)
            bystander.wait_acks(3)
            bystander.finish()
            print(f"RSS {server.rss_mib(peak=True)} MiB", flush=True)
            server.check_rss(600)

    def test_page_size_max(self):
        """1,000 entries in a page; one more is refused by name."""
        with AbusedServer() as server:
            stubs = server.stubs()
            batch = message("EventBatch")
            for sequence in range(1, 1502):
                batch.events.add(sequence=sequence, key=b"k")
            stubs.Append(message("AppendRequest", stream="default", batch=batch), timeout=OVER_S)
            for method, more in (("ReadKey", {"stream": "default", "key": b"k"}),
                                 ("ListKeys", {"stream": "default"}), ("ListStreams", {})):
                with self.subTest(method):
                    request = message(method + "Request", page_size=1000, **more)
                    stubs[method](request, timeout=OVER_S)
                    request.page_size = 1001
                    with self.assertRaises(grpc.RpcError) as caught:
                        stubs[method](request, timeout=OVER_S)
                    error = caught.exception
                    self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
                    self.assertEqual(error.details(), "page_size is 1001, page_size_max is 1000")
            page = stubs.ReadKey(message("ReadKeyRequest", stream="default", key=b"k",
                                         page_size=1000), timeout=OVER_S)
            self.assertEqual(len(page.entries), 1000)
            self.assertTrue(page.next_page_token)

    @unittest.skipUnless(FULL, "100,000 calls: --full")
    def test_peers_max(self):
        """100,000 producers are remembered by name, the next ones are 'other': all are served."""
        with AbusedServer() as server:
            stubs = server.stubs()
            count, each = 100_010, 500
            before = server.rss_mib()
            for first in range(0, count, each):
                connection = h2.Connection(server.address)
                calls = []
                for i in range(first, min(first + each, count)):
                    request = message("AppendRequest", stream="default", producer=f"producer-{i}",
                                      batch=message("EventBatch",
                                                    events=[message("Event", sequence=1 + i)]))
                    calls.append(connection.open(SERVICE + "IngestService/Append").send(
                        h2.message(request.SerializeToString())).end())
                check_statuses([connection], calls)
                self.assertEqual({call.status for call in calls}, {0})
                connection.close()
            self.assertEqual(self.status(stubs, "default").stored_total, count)
            server.check_rss(200, grown_from=before)
            server.stop_clean()
            server.start()  # the names are read back
            self.assertEqual(self.append(server.stubs(), "default", [100_011]), [self.stored(1)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
