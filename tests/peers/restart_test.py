"""Kills, restarts and retries, as other systems got them wrong. Each test is named after its row in
tests/README.md."""
import sys
import threading

import grpc

sys.path.insert(0, "tests/peers")
from rows import (BEFORE_FIRST, CALL_S, CONFLICT, DUPLICATE, OUT_OF_RANGE, STORED,  # noqa: E402
                  WINDOW_FULL, RowsTest, main)


class RestartTest(RowsTest):

    def test_g13_a_batch_that_is_refused_in_part(self):
        """Marten 5454: of a batch with good and bad events it is said of each whether it is stored;
        and that is what a kill leaves."""
        stream = self.new_stream(first=10, limits=self.message("StreamLimits", ahead_max=100))
        self.append(stream, [11])
        numbers = [10, 11, 9, 2**63 - 1, 15, 500]
        events = self.events(numbers) + self.events([11], payload=b"other")
        answered = [STORED, DUPLICATE, BEFORE_FIRST, OUT_OF_RANGE, STORED, WINDOW_FULL, CONFLICT]
        self.assertEqual(self.outcomes(self.append_events(stream, events)), answered)
        self.restart()
        again = [DUPLICATE if o == STORED else o for o in answered]
        self.assertEqual(self.outcomes(self.append_events(stream, events)), again)
        self.assertEqual(self.status(stream).stored_total, 3)

    def test_s18_a_start_shows_all_or_nothing(self):
        """Akka JDBC 124: who asks while the server starts is refused or sees everything; never an
        empty stream."""
        stream = self.new_stream()
        self.append(stream, list(range(1, 20001)) + [20002])
        up, answers = threading.Event(), []

        def ask():
            stubs, request = self.stubs, self.message("GetStreamRequest", stream=stream)
            while True:
                last = up.is_set()
                try:
                    answers.append(stubs.GetStream(request, timeout=CALL_S).status)
                    if last:
                        return
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)

        def start():
            try:
                self.server.kill()
                self.server.start()
            finally:
                up.set()

        self.run_all(ask, start)
        self.connect()
        for status in answers:
            self.assertEqual((status.frontier, status.held_events, status.highest),
                             (20001, 1, 20002))
        self.assertEqual(self.read(self.subscribe(stream), 20001)[0], list(range(1, 20001)))

    def test_t7_what_waits_is_what_was_stored_and_not_released(self):
        """NATS 4736: after kills, at several fillings: the number that waits is the number found
        by reading every key's list."""
        stream, sent = self.new_stream(), set()
        for piece in ([1, 2, 3], range(5, 300, 2), range(400, 450), [4, 6], range(8, 200, 2)):
            self.append(stream, piece)
            sent.update(piece)
            self.restart()
            status = self.status(stream)
            released = {s for s in sent if s < status.frontier}
            self.assertEqual(status.held_events, len(sent) - len(released))
            held = []
            for key in range(5):
                page = self.stubs.ReadKey(
                    self.message("ReadKeyRequest", stream=stream, key=b"k%d" % key,
                                 page_size=1000), timeout=CALL_S)
                self.assertEqual(page.next_page_token, "")
                held += [e.event.sequence for e in page.entries if e.state == 2]
            self.assertEqual(sorted(held), sorted(sent - released))

    def test_d9_a_retry_over_a_kill_is_a_duplicate(self):
        """NATS 3006: killed while answers were under way: what was answered is a duplicate; what
        was not is one or the other, and a duplicate from then on."""
        stream, answered, unknown = self.new_stream(), set(), set()

        def send():
            for at in range(1, 40001, 20):
                piece = range(at, at + 20)
                try:
                    self.append_once(stream, piece)
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
                    unknown.update(piece)
                    return
                answered.update(piece)
                if at > 1000:
                    under_way.set()

        under_way = threading.Event()
        thread = threading.Thread(target=send)
        thread.start()
        self.assertTrue(under_way.wait(CALL_S))
        self.server.kill()
        thread.join()
        self.server.start()
        self.connect()
        self.assertEqual(set(self.outcomes(self.append(stream, sorted(answered)))), {DUPLICATE})
        first = self.outcomes(self.append(stream, sorted(unknown)))
        self.assertEqual(len(set(first)), 1, "a batch is stored as a whole or not at all")
        self.assertLessEqual(set(first), {STORED, DUPLICATE})
        self.assertEqual(set(self.outcomes(self.append(stream, sorted(unknown)))), {DUPLICATE})

    def append_once(self, stream, sequences):
        batch = self.message("EventBatch", events=self.events(sequences))
        request = self.message("AppendRequest", stream=stream, batch=batch)
        return self.stubs.Append(request, timeout=CALL_S).result

    def test_m4_holes_do_not_make_answers_grow(self):
        """Parallel-consumer 647: 60,000 holes: answers stay small, a place is one number, and each
        survives a restart."""
        stream = self.new_stream()
        result = self.append(stream, range(2, 120001, 2))
        self.assertEqual((len(result.runs), len(result.lowest_gaps)), (1, 16))
        self.assertLess(result.ByteSize(), 1000)
        self.restart()
        status = self.status(stream)
        self.assertEqual((status.gaps_total, len(status.gaps)), (60000, 16))
        self.assertLess(status.ByteSize(), 4000)
        self.assertLess(next(self.subscribe(stream)).ByteSize(), 1000)
        self.append(stream, range(1, 120001, 2))
        sequences, progress = self.read(self.subscribe(stream), 120001)
        self.assertEqual((len(sequences), progress.next_position), (120000, 120001))

    def test_n2_a_gap_does_not_poison_the_next_life(self):
        """Eufy-security-client 256: numbers begin anew while one was missing: deleted and made again,
        the same numbers are new, and nothing of the old gap is left, over a restart too."""
        stream = self.new_stream()
        self.append(stream, [1, 2, 4, 5], payload=b"old")
        self.stubs.DeleteStream(self.message("DeleteStreamRequest", stream=stream), timeout=CALL_S)
        self.create(stream)
        result = self.append(stream, [1, 2, 5], payload=b"new")
        self.assertEqual(self.outcomes(result), [STORED] * 3)
        self.restart()
        status = self.status(stream)
        self.assertEqual([(g.start, g.end) for g in status.gaps], [(3, 5)])
        self.append(stream, [3, 4], payload=b"new")
        self.assertEqual(self.read(self.subscribe(stream), 6)[0], [1, 2, 3, 4, 5])


if __name__ == "__main__":
    main()
