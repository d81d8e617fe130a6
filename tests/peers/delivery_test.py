"""Subscriptions, as other systems got them wrong: events that were passed, readers that got stuck,
order that broke. Each test is named after its row in tests/README.md."""
import random
import sys
import threading

import grpc

sys.path.insert(0, "tests/peers")
from rows import CALL_S, RowsTest, main  # noqa: E402


class Prefix:
    """Numbers from 1 in any order; end() = the lowest one that is not there."""

    def __init__(self):
        self.lock, self.numbers, self.to = threading.Lock(), set(), 1

    def add(self, numbers):
        with self.lock:
            self.numbers.update(numbers)

    def end(self):
        with self.lock:
            while self.to in self.numbers:
                self.to += 1
            return self.to


class DeliveryTest(RowsTest):
    FLAGS = ("--shared-blocks-max", "1MiB")  # readers fall behind soon

    def test_s1_the_frontier_is_the_longest_prefix(self):
        """Marten 1629: writers side by side, in any order: at each look, complete_to lies between
        what was answered before the question and what was sent before the answer."""
        stream, sent, answered = self.new_stream(), Prefix(), Prefix()
        numbers = list(range(1, 6401))
        random.Random(1).shuffle(numbers)

        def write(mine):
            for at in range(0, len(mine), 25):
                piece, least = mine[at:at + 25], answered.end()
                sent.add(piece)
                result = self.append(stream, piece)
                self.assertLessEqual(least, result.complete_to)
                self.assertLessEqual(result.frontier, result.complete_to)
                self.assertLessEqual(result.complete_to, sent.end())
                answered.add(piece)

        def look():
            next_one = 1
            for answer in self.subscribe(stream, progress_interval_ms=1):
                for event in answer.batch.events:
                    self.assertEqual(event.sequence, next_one)
                    next_one += 1
                self.assertLessEqual(next_one, sent.end())
                if answer.HasField("progress"):
                    self.assertLessEqual(answer.progress.frontier, sent.end())
                if next_one == 6401:
                    return

        self.run_all(look, *[lambda i=i: write(numbers[i::16]) for i in range(16)])

    def test_s6_a_sparse_filter_is_passed_in_steps(self):
        """Marten 5239: next_position tells what was scanned and no more: wherever it stands, what
        came before is all below it, and going on there gives all the rest."""
        stream, rare = self.new_stream(), [10, 4500, 8999]
        self.append(stream, range(1, 9001), payload=b"x" * 400,
                    key=lambda s: b"rare" if s in rare else b"k%d" % (s % 50))
        only = self.message("Filter", keys=[b"rare"])
        call, seen, places = self.subscribe(stream, filter=only), [], []
        for answer in call:
            seen += [e.sequence for e in answer.batch.events]
            part = answer.batch if answer.HasField("batch") else answer.progress
            places.append((part.next_position, list(seen)))
            if answer.progress.caught_up and answer.progress.frontier == 9001:
                break
        for place, before in places:
            self.assertEqual(before, [s for s in rare if s < place])
        for place, before in places[::max(1, len(places) // 8)]:
            rest, _ = self.read(self.subscribe(stream, filter=only, position=place), 9001)
            self.assertEqual(before + rest, rare)
        token, listed = "", []
        while True:
            page = self.stubs.ReadKey(self.message("ReadKeyRequest", stream=stream, key=b"rare",
                                                   page_size=1, page_token=token), timeout=CALL_S)
            listed += [e.event.sequence for e in page.entries]
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(listed, rare)

    def test_s7_what_waits_is_counted(self):
        """Eventuous 222 and others: caught up with all that is out is not "nothing missing"."""
        stream = self.new_stream()
        self.append(stream, [1] + list(range(3, 13)))
        _, progress = self.read(self.subscribe(stream), 2)
        self.assertEqual((progress.held_events, progress.highest, progress.complete_to), (10, 12, 2))
        self.assertEqual((progress.blocked_by.start, progress.blocked_by.end), (2, 3))
        self.assertEqual(self.status(stream).held_events, 10)

    def test_s10_progress_by_time_changes_nothing(self):
        """Commanded 327: a timer that fires during catch-up does not make the reader live."""
        stream = self.new_stream()
        for at in range(1, 40001, 10000):
            self.append(stream, range(at, at + 10000), payload=b"x" * 100)
        next_one, told = 1, 0
        for answer in self.subscribe(stream, progress_interval_ms=1):
            for event in answer.batch.events:
                self.assertEqual(event.sequence, next_one)
                next_one += 1
            if answer.HasField("progress"):
                told += 1
                self.assertEqual(answer.progress.next_position, next_one)
                self.assertEqual(answer.progress.caught_up, next_one >= answer.progress.frontier)
            if next_one == 40001 and answer.progress.caught_up:
                break
        self.assertGreater(told, 1)

    def test_s15_resume_is_exact(self):
        """Eventuous 291: resumed at c the first one is c: for the first, each, and the next one."""
        for number, first in enumerate((0, 1, -3, -2**63, 2**63 - 10)):
            stream = f"s15-{number}"
            self.create(stream, first)
            self.append(stream, range(first, first + 5))
            calls = [self.subscribe(stream, position=first + i) for i in range(6)]
            for call in calls:
                next(call)
            self.append(stream, [first + 5])
            for i, position in enumerate(range(first, first + 6)):
                again, progress = self.read(self.subscribe(stream, position=position), first + 6)
                self.assertEqual(again, list(range(position, first + 6)), (first, i))
                self.assertEqual(progress.next_position, first + 6)

    def test_s16_a_place_that_is_not_there(self):
        """Debezium 3620: who starts at a place without an event starts at the next one, waits for
        one above the frontier, and is told at once about one below the first."""
        stream = self.new_stream(first=100)
        events = self.events(range(100, 110))
        for event in events:
            event.event_time.seconds = 10 * event.sequence
        self.append_events(stream, events)
        time = self.contract["google.protobuf.Timestamp"](seconds=1033)  # between 103 and 104
        self.assertEqual(self.read(self.subscribe(stream, event_time=time), 110)[0],
                         list(range(104, 110)))
        call = self.subscribe(stream, position=113)
        next(call)
        self.append(stream, range(110, 116))
        self.assertEqual(self.read(call, 116)[0], [113, 114, 115])
        with self.assertRaises(grpc.RpcError) as caught:
            next(self.subscribe(stream, position=99))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.OUT_OF_RANGE)

    def test_t3_a_reader_far_behind_misses_nothing(self):
        """KurrentDB 2544: ten times the shared memory comes while it does not read: it goes on from
        the disk, without loss, repetition or a word too early that it has caught up."""
        stream = self.new_stream()
        call = self.subscribe(stream)
        next(call)
        for at in range(1, 5001, 500):
            self.append(stream, range(at, at + 500), payload=b"x" * 2000)
        self.assertEqual(self.read(call, 5001)[0], list(range(1, 5001)))

    def test_t4_two_writers_and_a_reader_reach_the_head(self):
        """KurrentDB 891 and 815: catching up while two write, one of them many keys slowly: the
        head is reached, and no key is out of order where history ends and live begins."""
        stream = self.new_stream()
        self.append(stream, range(1, 5001), payload=b"x" * 500)

        def write(parity, each, key):
            numbers = range(5001 + parity, 9001, 2)
            for at in range(0, len(numbers), each):
                self.append(stream, numbers[at:at + each], payload=b"x" * 500, key=key)

        def read():
            self.assertEqual(self.read(self.subscribe(stream), 9001)[0], list(range(1, 9001)))

        self.run_all(read, lambda: write(0, 20, lambda s: b"key-%d" % s),
                     lambda: write(1, 200, lambda s: b"k"))

    def test_t6_a_filter_without_matches_gets_on(self):
        """Eventuous 559: nothing passes the filter, on an empty stream, an idle one and a busy one:
        the place is told by time, and can be resumed at."""
        stream, nobody = self.new_stream(), self.message("Filter", keys=[b"nobody"])
        call = self.subscribe(stream, filter=nobody)
        for _ in range(3):  # by time alone
            self.assertEqual(next(call).progress.next_position, 1)
        self.append(stream, range(1, 1001))
        _, progress = self.read(call, 1001)
        self.assertEqual(progress.next_position, 1001)
        self.assertEqual(next(call).progress.next_position, 1001)
        call = self.subscribe(stream, position=progress.next_position)
        next(call)
        self.append(stream, [1001])
        self.assertEqual(self.read(call, 1002)[0], [1001])

    def test_t10_one_that_is_stuck_stops_nobody(self):
        """Pulsar 8115: a subscriber that never reads: all others go on, those that come as well."""
        stream = self.new_stream()
        stuck = self.subscribe(stream)
        next(stuck)
        before = self.subscribe(stream)
        for at in range(1, 3001, 500):
            self.append(stream, range(at, at + 500), payload=b"x" * 2000)
        self.assertEqual(self.read(before, 3001)[0], list(range(1, 3001)))
        self.assertEqual(self.read(self.subscribe(stream), 3001)[0], list(range(1, 3001)))

    def test_t13_reading_to_the_head_ends(self):
        """Kafka-python 1707 and RisingWave 24717: the head can't be delivered yet: who reads up to
        what is out comes to an end, and is told what waits behind it."""
        stream = self.new_stream()
        self.append(stream, [1, 2, 3, 7])
        sequences, progress = self.read(self.subscribe(stream), 4)
        self.assertEqual((sequences, progress.next_position, progress.frontier), ([1, 2, 3], 4, 4))
        self.assertEqual((progress.highest, progress.held_events), (7, 1))

    def test_m10_readers_that_stop_cost_little(self):
        """Elixir-grpc 496 and others: 40 subscribers that do not read 20 MB each: the server keeps
        an answer and gRPC's window for each, not what it has for them."""
        stream = self.new_stream()
        for at in range(1, 10001, 1000):
            self.append(stream, range(at, at + 1000), payload=b"x" * 2000)
        before = self.memory()
        calls = [self.subscribe(stream, self.own_stubs()) for _ in range(40)]
        for call in calls:
            next(call)
        live = self.subscribe(stream)
        self.append(stream, range(10001, 11001), payload=b"x" * 2000)
        self.assertEqual(len(self.read(live, 11001)[0]), 11000)
        grown = self.memory() - before
        print(f"40 that do not read: {grown >> 10} KiB")
        if not self.is_sanitized():
            self.assertLess(grown, 40 * 2 << 20)

    def test_o4_coming_and_going_breaks_no_order(self):
        """Pulsar 7553 and 8292: subscribers join and leave all the time while events come: each
        sees consecutive numbers from where it began, so each key in order."""
        stream, done = self.new_stream(), threading.Event()

        def write():
            try:
                order = list(range(1, 8001))
                for at in range(0, 8000, 50):  # each piece backwards
                    self.append(stream, order[at:at + 50][::-1])
            finally:
                done.set()

        def come_and_go(seed):
            rng = random.Random(seed)
            while not done.is_set():
                start = rng.randrange(1, 1 + self.status(stream).frontier)
                call, next_one = self.subscribe(stream, position=start), start
                for _ in range(rng.randrange(1, 6)):
                    for event in next(call).batch.events:
                        self.assertEqual(event.sequence, next_one)
                        next_one += 1
                call.cancel()

        self.run_all(write, *[lambda i=i: come_and_go(i) for i in range(8)])


if __name__ == "__main__":
    main()
