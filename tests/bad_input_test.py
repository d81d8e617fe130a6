"""bad_input_test.py HOLDBACKD DESCRIPTORS: what a server answers to input that it can't take.

Each refusal is checked for the same things: the status, one ErrorInfo of domain holdback with an
UPPER_SNAKE reason, and a message that names field, value and limit. After each test the streams
are as they were, and the calls that were open all the time, on the same connection, go on.
"""
import queue
import re
import sys
import threading
import time
import unittest

import grpc

sys.path.insert(0, "tests/lib")
from holdback import CALL_S, Contract, Server, Stubs, error_info, load_descriptors  # noqa: E402

HOLDBACKD, DESCRIPTORS = sys.argv[1:3]
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
KIB, MIB = 1024, 1024 * 1024
LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, payload):
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


class BadInputTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = Server(HOLDBACKD).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.contract = Contract(load_descriptors(DESCRIPTORS))
        cls.channel = cls.server.channel()
        cls.addClassCleanup(cls.channel.close)
        cls.stubs = Stubs(cls.contract, cls.channel)
        cls.outcomes = cls.contract.enum("holdback.v1.Outcome")
        cls.reasons = cls.contract.enum("holdback.v1.OutcomeReason")
        cls.create("s")
        cls.open_companion()

    @classmethod
    def open_companion(cls):
        """A producer and a subscriber, there before the first bad input and after the last."""
        cls.create("companion")
        cls.batches = queue.Queue()
        cls.addClassCleanup(cls.batches.put, None)
        cls.answers = cls.stubs.AppendStream(iter(cls.batches.get, None))
        cls.subscription = cls.stubs.Subscribe(
            cls.message("SubscribeRequest", stream="companion", at=1))
        cls.companion_next = 1

    def setUp(self):
        self.before = self.status("s")

    def tearDown(self):
        self.assertEqual(self.status("s"), self.before, "something was stored")
        number = type(self).companion_next
        type(self).companion_next += 1
        self.batches.put(self.message("AppendStreamRequest", stream="companion",
                                      batch=self.batch(sequence=number)))
        self.assertEqual(next(self.answers).result.frontier, number + 1)
        for answer in self.subscription:
            if answer.batch.events:
                self.assertEqual([e.sequence for e in answer.batch.events], [number])
                break

    # ---- helpers

    @classmethod
    def message(cls, name, /, **fields):
        return cls.contract["holdback.v1." + name](**fields)

    @classmethod
    def create(cls, name, **fields):
        config = cls.message("StreamConfig", name=name,
                             **{"mode": 1, "first_sequence": 1, **fields})
        request = cls.message("CreateStreamRequest", config=config)
        return cls.stubs.CreateStream(request, timeout=CALL_S)

    def status(self, stream):
        request = self.message("GetStreamRequest", stream=stream)
        return self.stubs.GetStream(request, timeout=CALL_S).status

    def batch(self, **fields):
        return self.message("EventBatch", events=[self.message("Event", **fields)])

    def append(self, stream="s", **fields):
        """One event into a stream of its own: what is right must be stored."""
        request = self.message("AppendRequest", stream=stream, batch=self.batch(**fields))
        return self.stubs.Append(request, timeout=CALL_S).result

    def refuse(self, call, code, *words):
        """`call` fails with `code`, and its message has each of `words`."""
        with self.assertRaises(grpc.RpcError) as caught:
            answer = call()
            if not hasattr(answer, "SerializeToString"):
                list(answer)
        error = caught.exception
        self.assertEqual(error.code(), code, error.details())
        info = error_info(self.contract, error)
        self.assertIsNotNone(info, f"no details: {error.details()}")
        reason, domain, message = info
        self.assertEqual(domain, "holdback")
        self.assertRegex(reason, re.compile(r"^[A-Z][A-Z0-9_]+[A-Z0-9]$"))
        self.assertEqual(message, error.details())
        for word in words:
            self.assertIn(str(word), message)

    def refuse_call(self, method, request, code, *words):
        self.refuse(lambda: self.stubs[method](request, timeout=CALL_S), code, *words)

    def refuse_event(self, *words, code=INVALID, **fields):
        fields.setdefault("sequence", 1)
        self.refuse(lambda: self.append(**fields), code, *words)

    def refuse_bytes(self, method, data, *words):
        self.refuse_call(method, data, INVALID, *words)

    def runs(self, result):
        return [(run.count, run.outcome, run.reason) for run in result.runs]

    # ---- bytes that are no message

    def test_malformed_protobuf(self):
        """Truncated fields, groups, endless varints: at every depth."""
        name = field(1, b"s")
        events = {
            "length past the end": b"\x0a\x7f\x08\x01",
            "event's field past its end": field(1, b"\x08\x01\x2a\x7fabc"),
            "group": field(1, b"\x08\x01\x0b\x0c"),
            "varint of 11 bytes": field(1, b"\x08" + b"\xff" * 10 + b"\x01"),
            "timestamp": field(1, b"\x08\x01" + field(3, b"\x08")),
            "header": field(1, b"\x08\x01" + field(4, b"\x0a\x7f")),
            "field number 0": field(1, b"\x00\x00"),
        }
        for what, batch in events.items():
            with self.subTest(what):
                self.refuse_bytes("Append", name + field(2, batch))
        for method in ("Append", "CreateStream", "GetStream", "ReadKey", "Subscribe"):
            with self.subTest(method):
                self.refuse_bytes(method, b"\x0a\xff\xff")

    def test_strings_are_utf8(self):
        """protobuf strings that are none."""
        self.refuse_bytes("Append", field(1, b"\xff\xfe") + field(2, field(1, b"\x08\x01")))
        self.refuse_bytes("Append", field(1, b"s") + field(2, field(1, b"\x08\x01")) +
                          field(3, b"\xc3"), "producer")
        header = field(4, field(1, b"\xed\xa0\x80"))
        event = field(1, b"\x08\x01" + header)
        self.refuse_bytes("Append", field(1, b"s") + field(2, event), "name")

    # ---- streams

    def test_missing_and_unknown_stream(self):
        """Each method that names a stream."""
        for method, more in [("Append", {"batch": self.batch(sequence=1)}), ("GetStream", {}),
                             ("UpdateStream", {}), ("DeleteStream", {}), ("Subscribe", {"at": 1}),
                             ("ReadKey", {"key": b"k"}), ("ListKeys", {})]:
            def call(stream, method=method, more=more):
                request = self.message(method + "Request", stream=stream, **more)
                return self.stubs[method](request, timeout=CALL_S)
            with self.subTest(method):
                self.refuse(lambda: call(""), INVALID, "stream")
                self.refuse(lambda: call("nobody"), NOT_FOUND, "stream", "nobody")

    def test_append_stream_missing_and_unknown(self):
        def call(stream):
            request = self.message("AppendStreamRequest", stream=stream,
                                   batch=self.batch(sequence=1))
            return self.stubs.AppendStream(iter([request]), timeout=CALL_S)
        self.refuse(lambda: call(""), INVALID, "stream")
        self.refuse(lambda: call("nobody"), NOT_FOUND, "nobody")

    def test_stream_names(self):
        """[a-z0-9][a-z0-9._-]{0,127}: at the limit it is taken, one over it is not."""
        for name in ("a" * 128, "0", "a._-9"):
            self.create(name)
        for name in ("", "A", "-a", ".a", "_a", "a/b", "a b", "a\0", "\u00e4", "a" * 129):
            with self.subTest(name):
                self.refuse(lambda: self.create(name), INVALID, "name")
        self.refuse(lambda: self.create("a" * 129), INVALID, 129, 128)

    def test_create_again(self):
        """The same settings: fine. Others: refused, and the first ones stay."""
        first = self.create("again", first_sequence=7)
        self.assertEqual(self.create("again", first_sequence=7).incarnation, first.incarnation)
        exists = grpc.StatusCode.ALREADY_EXISTS
        limits = self.message("StreamLimits", gaps_max=5)
        self.refuse(lambda: self.create("again", first_sequence=8), exists, "again")
        self.refuse(lambda: self.create("again", first_sequence=7, limits=limits), exists, "again")
        self.refuse(lambda: self.create("again", first_sequence=7, ack_mode=2), exists, "again")
        self.assertEqual(self.status("again").first_sequence, 7)

    def test_first_sequence(self):
        """It is always stated; INT64_MAX has no end, INT64_MIN is valid."""
        config = self.message("StreamConfig", name="first", mode=1)
        create = self.message("CreateStreamRequest", config=config)
        self.refuse_call("CreateStream", create, INVALID,
                    "first_sequence")
        create.config.first_seen = False
        self.refuse_call("CreateStream", create, INVALID, "first_seen")
        self.refuse(lambda: self.create("first", first_sequence=2**63 - 1), INVALID,
                    "first_sequence", 2**63 - 1)
        self.create("first", first_sequence=-2**63)
        self.assertEqual(self.append("first", sequence=-2**63).frontier, -2**63 + 1)

    def test_stream_limits(self):
        """Each limit of a stream: at its bounds taken, one beyond refused, name and bound said."""
        for name, low, high in [("ahead_max", 1, 2**62), ("held_bytes_max", MIB, 2**40),
                                ("held_events_max", 1000, 10**9), ("gaps_max", 1, 10**7),
                                ("event_bytes_max", KIB, 3 * MIB)]:
            for i, value in enumerate((low, high)):
                stream = f"{name.replace('_', '-')}-{i}"
                limits = self.message("StreamLimits", **{name: value})
                answer = self.create(stream, limits=limits)
                self.assertEqual(getattr(answer.config.limits, name), value)
            for value, bound in ((low - 1, low), (high + 1, high)):
                if value == 0:
                    continue  # 0 is "not given"
                with self.subTest(name=name, value=value):
                    limits = self.message("StreamLimits", **{name: value})
                    self.refuse(lambda: self.create("no", limits=limits), INVALID, name, value,
                                bound)
                    update = self.message("UpdateStreamRequest", stream="s", limits=limits)
                    self.refuse_call("UpdateStream", update, INVALID,
                                name, value, bound)

    def test_enums(self):
        """Numbers that no name stands for."""
        self.refuse(lambda: self.create("no", mode=0), INVALID, "mode")
        self.refuse(lambda: self.create("no", mode=77), INVALID, "mode", 77)
        self.refuse(lambda: self.create("no", ack_mode=77), INVALID, "ack_mode", 77)
        self.refuse(lambda: self.stubs.Subscribe(
            self.message("SubscribeRequest", stream="s", at=77), timeout=CALL_S), INVALID, 77)

    # ---- events

    def test_empty_batch(self):
        """No batch, and a batch of nothing."""
        empty = self.message("EventBatch")
        for request in (self.message("AppendRequest", stream="s"),
                        self.message("AppendRequest", stream="s", batch=empty)):
            self.refuse_call("Append", request, INVALID, "batch")

    def test_key_bytes(self):
        """64 KiB."""
        self.create("key-bytes")
        self.assertEqual(self.append("key-bytes", sequence=1, key=b"k" * 64 * KIB).stored, 1)
        self.refuse_event("key", 64 * KIB + 1, 64 * KIB, key=b"k" * (64 * KIB + 1))

    def test_headers(self):
        """64 of them, names of 256 bytes, 16 KiB in all."""
        self.create("headers")
        header = lambda **fields: self.message("Header", **fields)  # noqa: E731
        rows = [
            ([header(name=f"h{i}") for i in range(64)], [header(name=f"h{i}") for i in range(65)],
             ("headers", 65, 64)),
            ([header(name="n" * 256)], [header(name="n" * 257)], ("name", 257, 256)),
            ([header(name="n", value=b"v" * (16 * KIB - 1))],
             [header(name="n", value=b"v" * (16 * KIB))], ("headers", 16 * KIB + 1, 16 * KIB)),
        ]
        for sequence, (good, bad, words) in enumerate(rows, 1):
            with self.subTest(words):
                self.assertEqual(
                    self.append("headers", sequence=sequence, headers=good).stored, 1)
                self.refuse_event(*words, headers=bad)
        self.refuse_event("name", headers=[header(name="a\0b")])

    def test_event_bytes(self):
        """1 MiB of encoded event by default, and what the stream says instead."""
        self.create("event-bytes")
        self.create("event-kib", limits=self.message("StreamLimits", event_bytes_max=KIB))
        for stream, limit in (("event-bytes", MIB), ("event-kib", KIB)):
            with self.subTest(stream):
                empty = self.message("Event", sequence=1, payload=b"p" * (limit // 2)).ByteSize()
                fits = limit // 2 + limit - empty
                event = dict(sequence=1, payload=b"p" * fits)
                self.assertEqual(self.message("Event", **event).ByteSize(), limit)
                self.assertEqual(self.append(stream, **event).stored, 1)
                self.refuse_event("event", limit + 1, limit, stream=stream, sequence=1,
                                  payload=b"p" * (fits + 1))
                self.assertEqual(self.status(stream).frontier, 2)

    def test_events_per_batch(self):
        """65,536."""
        batch = self.message("EventBatch")
        for sequence in range(1, 65538):
            batch.events.add(sequence=sequence)
        request = self.message("AppendRequest", stream="s", batch=batch)
        self.refuse_call("Append", request, INVALID, "batch_events_max", "events[65536]", 65536)

    def test_batch_bytes(self):
        """16 MiB of events."""
        self.create("batch-bytes", limits=self.message("StreamLimits", event_bytes_max=3 * MIB))
        batch = self.message("EventBatch")
        for sequence in range(1, 7):
            batch.events.add(sequence=sequence, payload=b"p" * (2700 * KIB))
        batch.events[5].payload += b"p" * (16 * MIB - batch.ByteSize())
        self.assertEqual(batch.ByteSize(), 16 * MIB)
        request = self.message("AppendRequest", stream="batch-bytes", batch=batch)
        self.assertEqual(self.stubs.Append(request, timeout=CALL_S).result.stored, 6)
        request.batch.events[5].payload += b"p"
        words = ("batch", "batch_bytes_max", 16 * MIB + 1, 16 * MIB)
        self.refuse_call("Append", request, INVALID, *words)

    def test_event_time(self):
        """The range of Timestamp: years 1 to 9999, nanos below a second."""
        time = self.contract["google.protobuf.Timestamp"]
        self.create("event-time")
        for sequence, good in enumerate((time(seconds=LAST_SECOND, nanos=999999999),
                                         time(seconds=-62135596800)), 1):
            self.append("event-time", sequence=sequence, event_time=good)
        for words, bad in [((LAST_SECOND + 1, LAST_SECOND), time(seconds=LAST_SECOND + 1)),
                           ((-62135596801, -62135596800), time(seconds=-62135596801)),
                           ((1000000000, 999999999), time(nanos=1000000000)),
                           ((-1,), time(nanos=-1))]:
            with self.subTest(words):
                self.refuse_event("event_time", *words, event_time=bad)

    def test_producer_bytes(self):
        """256."""
        def call(size, stream):
            request = self.message("AppendRequest", stream=stream, producer="p" * size,
                                   batch=self.batch(sequence=1))
            return self.stubs.Append(request, timeout=CALL_S)
        self.create("producer")
        self.assertEqual(call(256, "producer").result.stored, 1)
        self.refuse(lambda: call(257, "s"), INVALID, "producer", 257, 256)

    def test_one_bad_event_refuses_its_batch(self):
        """Nothing of a batch is stored where one event is bad; the message says which."""
        batch = self.message("EventBatch")
        for sequence in range(1, 11):
            batch.events.add(sequence=sequence, key=b"k" * (64 * KIB + 1 if sequence == 7 else 1))
        request = self.message("AppendRequest", stream="s", batch=batch)
        self.refuse_call("Append", request, INVALID, "key", 6)

    def test_later_fields(self):
        """What is in the contract and not built yet is refused by name."""
        self.refuse_event("previous", code=UNIMPLEMENTED, previous=0)
        self.refuse_event("initial", initial=True)  # its stream is GLOBAL
        self.refuse_event("last", last=True)
        for name, value in [("covers", self.message("SequenceRange", start=1, end=2)),
                            ("voids", [self.message("VoidStatement", start=1, end=2)])]:
            request = self.message("AppendRequest", stream="s", batch=self.batch(sequence=1),
                                   **{name: value})
            self.refuse_call("Append", request, UNIMPLEMENTED, name)

    def test_statuses_by_time(self):
        """A status has no event time to begin at."""
        request = self.message("SubscribeRequest", stream="s", processor="p", key_statuses=True)
        request.event_time.seconds = 1
        self.refuse_call("Subscribe", request, grpc.StatusCode.INVALID_ARGUMENT,
                         "event_time", "key_statuses")

    def test_incarnation(self):
        """That of another life of the stream."""
        failed = grpc.StatusCode.FAILED_PRECONDITION
        batch = self.batch(sequence=1)
        for method, more in (("Append", {"batch": batch}), ("Subscribe", {"at": 1})):
            request = self.message(method + "Request", stream="s", incarnation=b"x" * 24, **more)
            self.refuse_call(method, request, failed, "incarnation")

    # ---- a call of many batches

    def test_bad_batch_in_a_call(self):
        """Earlier batches are answered first; the bad one and all after it are not stored."""
        for what, bad in [
            ("bad key", self.message("AppendStreamRequest",
                                     batch=self.batch(sequence=3, key=b"k" * (64 * KIB + 1)))),
            ("malformed", field(2, b"\x0a\x7f")),
            ("empty", self.message("AppendStreamRequest")),
            ("other stream", self.message("AppendStreamRequest", stream="companion",
                                          batch=self.batch(sequence=3))),
        ]:
            with self.subTest(what):
                stream = what.replace(" ", "-")
                self.create(stream)
                good = [self.message("AppendStreamRequest", stream=stream,
                                     batch=self.batch(sequence=i)) for i in (1, 2, 4)]
                call = self.stubs.AppendStream(iter(good[:2] + [bad] + good[2:]), timeout=CALL_S)
                answers = [next(call), next(call)]
                self.assertEqual([a.ordinal for a in answers], [0, 1])
                self.refuse(lambda: call, INVALID)
                status = self.status(stream)
                self.assertEqual((status.frontier, status.highest, status.stored_total), (3, 2, 2))

    # ---- reading

    def test_subscribe_start(self):
        """It must be given, and not lie below the earliest."""
        subscribe = lambda **fields: self.stubs.Subscribe(  # noqa: E731
            self.message("SubscribeRequest", stream="s", **fields), timeout=CALL_S)
        self.refuse(lambda: subscribe(), INVALID, "start")
        self.refuse(lambda: subscribe(at=0), INVALID, "at", 0)
        self.refuse(lambda: subscribe(position=0), grpc.StatusCode.OUT_OF_RANGE, "position", 0, 1)
        time = self.contract["google.protobuf.Timestamp"](nanos=-1)
        self.refuse(lambda: subscribe(event_time=time), INVALID, "event_time")

    def test_filter_limits(self):
        """1,000 keys and prefixes, 64 KiB."""
        def subscribe(**fields):
            request = self.message("SubscribeRequest", stream="s", at=1, progress_interval_ms=50,
                                   filter=self.message("Filter", **fields))
            return self.stubs.Subscribe(request, timeout=CALL_S)
        for good in (dict(keys=[b"k"] * 999, key_prefixes=[b"p"]), dict(keys=[b"k" * 64 * KIB])):
            call = subscribe(**good)
            self.assertTrue(next(call).HasField("progress"))
            call.cancel()
        self.refuse(lambda: subscribe(keys=[b"k"] * 999, key_prefixes=[b"p"] * 2), INVALID,
                    "filter", 1001, 1000)
        self.refuse(lambda: subscribe(keys=[b"k" * 64 * KIB], key_prefixes=[b"p"]), INVALID,
                    "filter", 64 * KIB + 1, 64 * KIB)

    def test_pages(self):
        """A token that is not ours; a key that can't be."""
        for method, more in (("ListStreams", {}), ("ListKeys", {"stream": "s"}),
                             ("ReadKey", {"stream": "s", "key": b"k"})):
            request = self.message(method + "Request", page_token="not-a-token", **more)
            with self.subTest(method):
                self.refuse_call(method, request, INVALID, "page_token")
        request = self.message("ReadKeyRequest", stream="s", key=b"k" * (64 * KIB + 1))
        self.refuse_call("ReadKey", request, INVALID, "key", 64 * KIB + 1,
                    64 * KIB)

    # ---- limits that refuse single events, status OK

    def windowed(self, name, **limits):
        self.create(name, limits=self.message("StreamLimits", **limits))

    def append_many(self, stream, sequences, payload=b""):
        batch = self.message("EventBatch")
        for sequence in sequences:
            batch.events.add(sequence=sequence, payload=payload)
        request = self.message("AppendRequest", stream=stream, batch=batch)
        return self.stubs.Append(request, timeout=CALL_S).result

    def full(self, count, reason):
        return (count, self.outcomes["OUTCOME_WINDOW_FULL"],
                self.reasons["OUTCOME_REASON_" + reason])

    def stored(self, count):
        return (count, self.outcomes["OUTCOME_STORED"], 0)

    def test_ahead_max(self):
        self.windowed("ahead", ahead_max=10)
        result = self.append_many("ahead", [10, 11])
        self.assertEqual(self.runs(result), [self.stored(1), self.full(1, "AHEAD")])
        self.assertEqual(result.window_end, 11)

    def test_held_events_max(self):
        self.windowed("held-events", held_events_max=1000)
        self.assertEqual(self.runs(self.append_many("held-events", range(2, 1002))),
                         [self.stored(1000)])
        self.assertEqual(self.runs(self.append_many("held-events", [1002])),
                         [self.full(1, "HELD_EVENTS")])
        # What is released at once needs no room: nothing locks.
        self.assertEqual(self.append_many("held-events", [1]).frontier, 1002)

    def test_held_bytes_max(self):
        self.windowed("held-bytes", held_bytes_max=MIB)
        result = self.append_many("held-bytes", range(2, 22), payload=b"p" * 64 * KIB)
        stored, full = self.runs(result)
        self.assertEqual(full, self.full(20 - stored[0], "HELD_BYTES"))
        self.assertEqual(stored, self.stored(15))  # 15 frames and little more make 1 MiB
        self.assertLessEqual(self.status("held-bytes").held_bytes, MIB)

    def test_gaps_max(self):
        self.windowed("gaps", gaps_max=2)
        self.assertEqual(self.runs(self.append_many("gaps", [2, 4, 6])),
                         [self.stored(2), self.full(1, "GAPS")])
        self.assertEqual(self.status("gaps").gaps_total, 2)

    # ---- limits of the whole server

    def test_huge_request(self):
        """More than the server receives at all: refused; this connection and its calls go on."""
        request = field(1, b"s") + field(2, b"\0" * 40 * MIB)
        with self.assertRaises(grpc.RpcError) as caught:
            self.stubs.Append(request, timeout=CALL_S)
        self.assertIn(caught.exception.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, INVALID))

    def test_server_limits(self):
        """Streams, subscriptions, calls: one too many is RESOURCE_EXHAUSTED, the others go on."""
        exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
        flags = ("--streams-max=3", "--subscriptions-max=2", "--calls-max=16")
        with Server(HOLDBACKD, *flags) as server, server.channel() as channel:
            stubs = Stubs(self.contract, channel)

            def create(name):
                config = self.message("StreamConfig", name=name, mode=1, first_sequence=1)
                request = self.message("CreateStreamRequest", config=config)
                return stubs.CreateStream(request, timeout=CALL_S)

            def subscribe():
                request = self.message("SubscribeRequest", stream="default", at=1,
                                       progress_interval_ms=50)
                return stubs.Subscribe(request, timeout=CALL_S)

            create("a")
            create("b")
            self.refuse(lambda: create("c"), exhausted, "streams_max", 3)
            open_calls = [subscribe() for _ in range(2)]
            for call in open_calls:
                next(call)
            self.refuse(subscribe, exhausted, "subscriptions_max", 2)
            release = threading.Event()
            appends = [stubs.AppendStream(iter(release.wait, True)) for _ in range(13)]
            self.addCleanup(release.set)
            get = self.message("GetServerRequest")
            stubs.GetServer(get, timeout=CALL_S)  # the sixteenth
            appends.append(stubs.AppendStream(iter(release.wait, True)))
            self.wait_for_refusal(lambda: stubs.GetServer(get, timeout=CALL_S), exhausted)
            open_calls[0].cancel()
            next(open_calls[1])

    def wait_for_refusal(self, call, code):
        """Calls are opened by other threads of this client: until the last one is there."""
        deadline = time.monotonic() + CALL_S
        while time.monotonic() < deadline:
            try:
                call()
            except grpc.RpcError as error:
                self.assertEqual(error.code(), code)
                reason, domain, message = error_info(self.contract, error)
                self.assertEqual(domain, "holdback")
                self.assertTrue(reason)
                self.assertIn("calls_max", message)
                self.assertIn("16", message)
                return
        self.fail("never refused")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
