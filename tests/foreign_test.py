"""foreign_test.py HOLDBACKD DESCRIPTORS: clients that are not ours, with default channel options.

One rule per test, in the words of its name and the sentence under it.
"""
import sys
import threading
import unittest

import grpc

sys.path.insert(0, "tests/lib")
from holdback import CALL_S, Contract, Server, Stubs, load_descriptors  # noqa: E402

HOLDBACKD, DESCRIPTORS = sys.argv[1:3]
REFLECTION = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
SERVICES = {
    "holdback.v1.StreamService", "holdback.v1.IngestService", "holdback.v1.DeliveryService",
    "holdback.v1.ServerService", "holdback.v1.ProcessorService", "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
}


class ForeignTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = Server(HOLDBACKD).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.contract = Contract(load_descriptors(DESCRIPTORS))
        cls.channel = cls.server.channel()
        cls.addClassCleanup(cls.channel.close)
        cls.stubs = Stubs(cls.contract, cls.channel)
        cls.outcomes = cls.contract.enum("holdback.v1.Outcome")
        cls.starts = cls.contract.enum("holdback.v1.StartPoint")

    def message(self, name, /, **fields):
        return self.contract["holdback.v1." + name](**fields)

    def new_stream(self, first=1):
        name = self.id().rsplit(".", 1)[1].replace("test_", "").replace("_", "-")
        config = self.message("StreamConfig", name=name, mode=1, first_sequence=first)
        self.stubs.CreateStream(self.message("CreateStreamRequest", config=config), timeout=CALL_S)
        return name

    def events(self, sequences, payload=b"p", keys=5):
        return self.message("EventBatch", events=[
            self.message("Event", sequence=s, key=b"k%d" % (s % keys), payload=payload)
            for s in sequences
        ])

    def append(self, stream, sequences, **kwargs):
        batch = self.events(sequences, **kwargs)
        request = self.message("AppendRequest", stream=stream, batch=batch)
        return self.stubs.Append(request, timeout=CALL_S).result

    def subscribe(self, stream, **fields):
        if not {"at", "position", "event_time"} & set(fields):
            fields["at"] = self.starts["START_POINT_EARLIEST"]
        request = self.message("SubscribeRequest", stream=stream, progress_interval_ms=100,
                               **fields)
        call = self.stubs.Subscribe(request, timeout=CALL_S)
        self.addCleanup(call.cancel)
        return call

    @staticmethod
    def read_until_caught_up(call, frontier):
        """Events until a Progress says that all below `frontier` was passed; and that Progress."""
        events = []
        for answer in call:
            events += answer.batch.events
            progress = answer.progress
            if progress.caught_up and progress.frontier >= frontier:
                return events, progress
        raise AssertionError("the call ended")

    def runs(self, result):
        return [(r.first_index, r.count, r.outcome) for r in result.runs]

    def test_append_and_subscribe(self):
        """Out of order in, in order out; Progress says what blocks; the gap filled, the rest."""
        stream = self.new_stream()
        result = self.append(stream, [2, 1, 5, 3])
        stored = self.outcomes["OUTCOME_STORED"]
        self.assertEqual(self.runs(result), [(0, 4, stored)])
        self.assertEqual((result.stored, result.frontier, result.complete_to, result.highest),
                         (4, 4, 4, 5))
        self.assertEqual([(g.start, g.end) for g in result.lowest_gaps], [(4, 5)])
        call = self.subscribe(stream)
        events, progress = self.read_until_caught_up(call, 4)
        self.assertEqual([e.sequence for e in events], [1, 2, 3])
        while not progress.HasField("blocked_by"):
            progress = next(call).progress
        self.assertEqual((progress.blocked_by.start, progress.blocked_by.end), (4, 5))
        self.assertEqual((progress.held_events, progress.highest, progress.next_position),
                         (1, 5, 4))
        self.append(stream, [4])
        events, progress = self.read_until_caught_up(call, 6)
        self.assertEqual([e.sequence for e in events], [4, 5])
        self.assertFalse(progress.HasField("blocked_by"))

    def test_bytes_come_back_as_they_were(self):
        """The server carries an event as bytes: an unknown field comes out again."""
        stream = self.new_stream()
        event = self.message("Event", sequence=1, key=b"\0\xff", payload=b"\0" * 10)
        event.headers.add(name="h", value=b"\x01")
        event.event_time.seconds = 12
        frame = event.SerializeToString() + b"\x98\x06\x2a"  # field 99, varint 42
        batch = b"\x0a" + bytes([len(frame)]) + frame
        name = stream.encode()
        request = b"\x0a" + bytes([len(name)]) + name + b"\x12" + bytes([len(batch)]) + batch
        self.stubs.Append(request, timeout=CALL_S)
        raw = self.channel.unary_stream("/holdback.v1.DeliveryService/Subscribe",
                                        response_deserializer=bytes)
        request = self.message("SubscribeRequest", stream=stream, at=1)
        for answer in raw(request.SerializeToString(), timeout=CALL_S):
            if frame in answer:
                return
            parsed = self.message("SubscribeResponse")
            parsed.ParseFromString(answer)
            self.assertFalse(parsed.HasField("batch"), "a batch without the event's own bytes")

    def test_append_stream_answers_in_order(self):
        """Pipelined batches: an answer each, ordinals from 0, in order."""
        stream = self.new_stream()
        requests = [
            self.message("AppendStreamRequest", stream=stream if i == 0 else "",
                         batch=self.events(range(1 + 10 * i, 11 + 10 * i)))
            for i in range(20)
        ]
        answers = list(self.stubs.AppendStream(iter(requests), timeout=CALL_S))
        self.assertEqual([a.ordinal for a in answers], list(range(20)))
        self.assertEqual([a.result.stored for a in answers], [10] * 20)
        self.assertEqual(answers[-1].result.frontier, 201)

    def test_65536_twice(self):
        """The largest batch; the same again is one run of duplicates. Default channel options."""
        stream = self.new_stream()
        first = self.append(stream, range(1, 65537), payload=b"x" * 50)
        self.assertEqual(self.runs(first), [(0, 65536, self.outcomes["OUTCOME_STORED"])])
        self.assertEqual((first.stored, first.complete_to), (65536, 65537))
        again = self.append(stream, range(1, 65537), payload=b"x" * 50)
        self.assertEqual(self.runs(again), [(0, 65536, self.outcomes["OUTCOME_DUPLICATE"])])
        self.assertEqual((again.stored, again.complete_to), (0, 65537))
        # A commit releases at most 4 MiB, so the frontier may come a little later.
        events, _ = self.read_until_caught_up(self.subscribe(stream), 65537)
        self.assertEqual([e.sequence for e in events], list(range(1, 65537)))

    def test_worst_answer_fits(self):
        """65,536 runs of alternating outcomes stay below what a client receives by default."""
        stream = self.new_stream()
        numbers = range(1, 32769)
        self.append(stream, numbers)
        events = self.events([])
        for number in numbers:
            events.events.add(sequence=number, key=b"k%d" % (number % 5), payload=b"p")
            events.events.add(sequence=number, key=b"other", payload=b"other")
        result = self.stubs.Append(
            self.message("AppendRequest", stream=stream, batch=events), timeout=CALL_S).result
        self.assertEqual(len(result.runs), 65536)
        duplicate, conflict = [self.outcomes["OUTCOME_" + n] for n in ("DUPLICATE", "CONFLICT")]
        self.assertEqual({r.outcome for r in result.runs[::2]}, {duplicate})
        self.assertEqual({r.outcome for r in result.runs[1::2]}, {conflict})
        self.assertLess(result.ByteSize(), 2 << 20)

    def test_outcomes_within_a_batch(self):
        """Decided in arrival order: the first copy wins, whatever comes after it in the batch."""
        stream = self.new_stream(first=10)
        batch = self.message("EventBatch")
        for sequence, payload in [(10, b"a"), (10, b"a"), (10, b"b"), (9, b"c"), (2**63 - 1, b"d")]:
            batch.events.add(sequence=sequence, payload=payload)
        result = self.stubs.Append(
            self.message("AppendRequest", stream=stream, batch=batch), timeout=CALL_S).result
        self.assertEqual(self.runs(result), [
            (i, 1, self.outcomes["OUTCOME_" + name])
            for i, name in enumerate(
                ["STORED", "DUPLICATE", "CONFLICT", "BEFORE_FIRST", "OUT_OF_RANGE"])
        ])

    def test_filters(self):
        """Keys or prefixes: only theirs come, and next_position passes over the others."""
        stream = self.new_stream()
        self.append(stream, range(1, 101), keys=20)
        for fields, wanted in [
            (dict(keys=[b"k3"]), {3}),
            (dict(keys=[b"k3", b"k4"]), {3, 4}),
            (dict(key_prefixes=[b"k1"]), {1} | set(range(10, 20))),
            (dict(keys=[b"k5"], key_prefixes=[b"k19"]), {5, 19}),
            (dict(keys=[b"nobody"]), set()),
        ]:
            with self.subTest(fields):
                call = self.subscribe(stream, filter=self.message("Filter", **fields))
                events, progress = self.read_until_caught_up(call, 101)
                self.assertEqual([e.sequence for e in events],
                                 [s for s in range(1, 101) if s % 20 in wanted])
                self.assertEqual(progress.next_position, 101)

    def test_starts(self):
        """earliest, now, a position, one above the frontier, an event time."""
        stream = self.new_stream()
        batch = self.events(range(1, 11))
        for event in batch.events:
            event.event_time.seconds = 1000 + 10 * event.sequence
        self.stubs.Append(self.message("AppendRequest", stream=stream, batch=batch), timeout=CALL_S)
        time = self.contract["google.protobuf.Timestamp"](seconds=1055)
        calls = [
            (self.subscribe(stream), 1),
            (self.subscribe(stream, at=self.starts["START_POINT_NOW"]), 11),
            (self.subscribe(stream, position=4), 4),
            (self.subscribe(stream, position=13), 13),
            (self.subscribe(stream, event_time=time), 6),
        ]
        # A start is fixed when the call is accepted: the first answer says that it was.
        firsts = [next(call) for call, _ in calls]
        self.append(stream, range(11, 16))
        for (call, start), first in zip(calls, firsts):
            with self.subTest(start):
                events, _ = self.read_until_caught_up(call, 16)
                sequences = [e.sequence for e in list(first.batch.events) + events]
                self.assertEqual(sequences, list(range(start, 16)))

    def test_read_key_pages_while_released(self):
        """What was there when paging began comes exactly once, however it moves meanwhile."""
        stream = self.new_stream()
        there = list(range(1, 500)) + list(range(501, 2001))  # 500 is missing: the rest is held
        self.append(stream, there, keys=1)
        seen, token, pages = [], "", 0
        while True:
            page = self.stubs.ReadKey(
                self.message("ReadKeyRequest", stream=stream, key=b"k0", page_size=100,
                             page_token=token), timeout=CALL_S)
            seen += [entry.event.sequence for entry in page.entries]
            token, pages = page.next_page_token, pages + 1
            if pages == 3:  # released, and the list goes on, in the middle of the paging
                self.append(stream, [500], keys=1)
                self.append(stream, range(2001, 2101), keys=1)
            if not token:
                break
        self.assertEqual(sorted(seen), sorted(set(seen)), "an entry came twice")
        self.assertEqual(seen, sorted(seen), "not in order")
        self.assertEqual([s for s in there if s not in set(seen)], [], "an entry was missed")

    def test_read_key_states(self):
        """RELEASED below the frontier, HELD above it; released_only skips those."""
        stream = self.new_stream()
        states = self.contract.enum("holdback.v1.EntryState")
        self.append(stream, [1, 2, 3, 5, 7], keys=2)

        def read(**fields):
            page = self.stubs.ReadKey(
                self.message("ReadKeyRequest", stream=stream, key=b"k1", **fields), timeout=CALL_S)
            return [(e.event.sequence, e.position, e.state) for e in page.entries]

        released = [(s, s, states["ENTRY_STATE_RELEASED"]) for s in (1, 3)]
        held = [(s, s, states["ENTRY_STATE_HELD"]) for s in (5, 7)]
        self.assertEqual(read(), released + held)
        self.assertEqual(read(released_only=True), released)
        self.assertEqual(read(from_position=2), released[1:] + held)
        keys = self.stubs.ListKeys(self.message("ListKeysRequest", stream=stream), timeout=CALL_S)
        self.assertEqual([k.key for k in keys.keys], [b"k0", b"k1"])

    def test_two_subscribers_and_a_producer(self):
        """Both see every event in order while it is being sent."""
        stream = self.new_stream()
        got = [[], []]

        def read(call, into):
            into += [e.sequence for e in self.read_until_caught_up(call, 3001)[0]]

        threads = [
            threading.Thread(target=read, args=(self.subscribe(stream), into)) for into in got
        ]
        for thread in threads:
            thread.start()
        for start in range(3000 - 99, 0, -100):  # the last hundred first: all waits for the first
            self.append(stream, range(start, start + 100))
        for thread in threads:
            thread.join()
        self.assertEqual(got, [list(range(1, 3001))] * 2)

    def test_numbers_have_presence(self):
        """From first seen: nothing is said before an event is stored; then the lowest is first."""
        config = self.message("StreamConfig", name="seen", mode=1, first_seen=True)
        self.stubs.CreateStream(self.message("CreateStreamRequest", config=config), timeout=CALL_S)
        get = self.message("GetStreamRequest", stream="seen")
        status = self.stubs.GetStream(get, timeout=CALL_S).status
        for name in ("first_sequence", "frontier", "complete_to", "highest", "earliest"):
            self.assertFalse(status.HasField(name), name)
        call = self.subscribe("seen")
        self.append("seen", [2**62 + 1, 2**62, 2**62 + 3])
        status = self.stubs.GetStream(get, timeout=CALL_S).status
        self.assertEqual((status.first_sequence, status.frontier, status.highest),
                         (2**62, 2**62 + 2, 2**62 + 3))
        events, _ = self.read_until_caught_up(call, 2**62 + 2)
        self.assertEqual([e.sequence for e in events], [2**62, 2**62 + 1])

    def reflect(self, package, **request):
        stub = self.stubs[f"{package}.ServerReflection/ServerReflectionInfo"]
        message = self.contract[f"{package}.ServerReflectionRequest"](**request)
        answers = list(stub(iter([message]), timeout=CALL_S))
        self.assertEqual(len(answers), 1)
        return answers[0]

    def test_reflection_lists_services(self):
        """v1 and v1alpha name every service."""
        for package in REFLECTION:
            with self.subTest(package):
                answer = self.reflect(package, list_services="*").list_services_response
                self.assertEqual({s.name for s in answer.service}, SERVICES)

    def test_client_by_reflection_alone(self):
        """What reflection gives is enough to make messages and to call."""
        from google.protobuf import descriptor_pb2
        stream = self.new_stream()
        for package in REFLECTION:
            with self.subTest(package):
                files = {}
                for service in ("IngestService", "StreamService"):
                    answer = self.reflect(package, file_containing_symbol="holdback.v1." + service)
                    for raw in answer.file_descriptor_response.file_descriptor_proto:
                        file = descriptor_pb2.FileDescriptorProto.FromString(raw)
                        files[file.name] = file
                contract = Contract(list(files.values()))
                stubs = Stubs(contract, self.channel)
                request = contract["holdback.v1.AppendRequest"](stream=stream)
                request.batch.events.add(sequence=1, payload=b"reflected")
                stubs.Append(request, timeout=CALL_S)
                get = contract["holdback.v1.GetStreamRequest"](stream=stream)
                self.assertEqual(stubs.GetStream(get, timeout=CALL_S).status.frontier, 2)

    def test_reflection_of_unknown_symbol(self):
        """An error in the answer, not of the call."""
        for package in REFLECTION:
            answer = self.reflect(package, file_containing_symbol="no.such.Thing")
            self.assertEqual(answer.error_response.error_code, grpc.StatusCode.NOT_FOUND.value[0])

    def test_health(self):
        """SERVING for the server and each of its services; an unknown one is NOT_FOUND."""
        request = self.contract["grpc.health.v1.HealthCheckRequest"]
        for service in ["", "holdback.v1.IngestService", "holdback.v1.DeliveryService"]:
            answer = self.stubs.Check(request(service=service), timeout=CALL_S)
            self.assertEqual(answer.status, 1, service)
        with self.assertRaises(grpc.RpcError) as caught:
            self.stubs.Check(request(service="no.such.Service"), timeout=CALL_S)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_get_server(self):
        """The server says its version, its store and its limits, each within its bounds."""
        answer = self.stubs.GetServer(self.message("GetServerRequest"), timeout=CALL_S)
        self.assertTrue(answer.version)
        self.assertEqual(len(answer.store_id), 16)
        limits = {limit.name: limit for limit in answer.limits}
        self.assertEqual(limits["batch_events_max"].value, 65536)
        self.assertEqual(limits["event_bytes_max"].value, 1 << 20)
        for limit in answer.limits:
            self.assertTrue(limit.min <= limit.value <= limit.max, limit.name)
            self.assertTrue(limit.unit and limit.help, limit.name)

    def test_default_stream(self):
        """The store is made with a stream `default` that starts at 1."""
        status = self.stubs.GetStream(self.message("GetStreamRequest", stream="default"),
                                      timeout=CALL_S)
        self.assertEqual((status.config.first_sequence, status.status.frontier), (1, 1))
        self.assertEqual(status.config.mode, 1)

    def test_server_stops(self):
        """A drain: what was answered stays; open calls are told, and the exit code is 0."""
        with Server(HOLDBACKD) as server, server.channel() as channel:
            stubs = Stubs(self.contract, channel)
            append = self.message("AppendRequest", stream="default", batch=self.events([1, 3]))
            stubs.Append(append, timeout=CALL_S)
            call = stubs.Subscribe(
                self.message("SubscribeRequest", stream="default", at=1), timeout=CALL_S)
            self.read_until_caught_up(call, 2)
            self.assertEqual(server.stop(), 0)
            with self.assertRaises(grpc.RpcError) as caught:
                list(call)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertIn("server stops", caught.exception.details())
            server.start()
            # Python sees the end of an idle connection only when it uses it: a new one, of its own.
            with server.channel(("grpc.use_local_subchannel_pool", 1)) as later:
                get = self.message("GetStreamRequest", stream="default")
                status = Stubs(self.contract, later).GetStream(get, timeout=CALL_S).status
            self.assertEqual((status.frontier, status.held_events), (2, 1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
