"""What the Python tests of this folder share: one server, short words for its calls."""
import sys
import threading
import unittest

import grpc

sys.path.insert(0, "tests/lib")
from holdback import CALL_S, Contract, Server, Stubs, load_descriptors  # noqa: E402

HOLDBACKD, DESCRIPTORS = sys.argv[1:3]
EARLIEST = 1
STORED, DUPLICATE, CONFLICT, BEFORE_FIRST, OUT_OF_RANGE, WINDOW_FULL = 1, 2, 3, 5, 6, 7


class RowsTest(unittest.TestCase):
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(HOLDBACKD, *cls.FLAGS).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.contract = Contract(load_descriptors(DESCRIPTORS))
        cls.connect()

    @classmethod
    def connect(cls):
        cls.stubs = cls.own_stubs()

    @classmethod
    def own_stubs(cls, *options):
        """Over a connection of its own: channels share them else, and one to a server that was
        killed meanwhile fails its next call."""
        options = [("grpc.use_local_subchannel_pool", 1), *options]
        channel = grpc.insecure_channel(cls.server.address, options)
        cls.addClassCleanup(channel.close)
        return Stubs(cls.contract, channel)

    def message(self, name, /, **fields):
        return self.contract["holdback.v1." + name](**fields)

    def new_stream(self, first=1, **fields):
        name = self.id().rsplit(".", 1)[1].replace("test_", "").replace("_", "-")
        self.create(name, first, **fields)
        return name

    def create(self, name, first=1, **fields):
        config = self.message("StreamConfig", name=name, mode=1, first_sequence=first, **fields)
        self.stubs.CreateStream(self.message("CreateStreamRequest", config=config), timeout=CALL_S)

    def events(self, sequences, payload=b"p", key=lambda s: b"k%d" % (s % 5)):
        return [self.message("Event", sequence=s, key=key(s), payload=payload) for s in sequences]

    def append(self, stream, sequences, **kwargs):
        return self.append_events(stream, self.events(sequences, **kwargs))

    def append_events(self, stream, events):
        batch = self.message("EventBatch", events=events)
        request = self.message("AppendRequest", stream=stream, batch=batch)
        return self.stubs.Append(request, timeout=CALL_S, wait_for_ready=True).result

    def status(self, stream):
        request = self.message("GetStreamRequest", stream=stream)
        return self.stubs.GetStream(request, timeout=CALL_S, wait_for_ready=True).status

    def subscribe(self, stream, stubs=None, **fields):
        if not {"at", "position", "event_time"} & set(fields):
            fields["at"] = EARLIEST
        fields.setdefault("progress_interval_ms", 100)
        request = self.message("SubscribeRequest", stream=stream, **fields)
        call = (stubs or self.stubs).Subscribe(request, timeout=3 * CALL_S)
        self.addCleanup(call.cancel)
        return call

    def read(self, call, until):
        """Sequences until a Progress says that all below `until` was passed. What comes must be
        told in order: positions ascend, and next_position is never behind what was delivered."""
        sequences = []
        for answer in call:
            for event in answer.batch.events:
                self.assertTrue(not sequences or sequences[-1] < event.sequence, "out of order")
                sequences.append(event.sequence)
            if answer.HasField("batch"):
                self.assertTrue(not sequences or sequences[-1] < answer.batch.next_position)
            progress = answer.progress
            if progress.caught_up and progress.frontier >= until:
                return sequences, progress
        raise AssertionError("the call ended")

    def outcomes(self, result):
        """One outcome per event."""
        return [run.outcome for run in result.runs for _ in range(run.count)]

    def restart(self):
        """SIGKILL, and up again at the same address."""
        self.server.kill()
        self.server.start()
        self.connect()

    @staticmethod
    def run_all(*functions):
        """Each in a thread of its own; the first failure is raised."""
        failures = []

        def guarded(function):
            try:
                function()
            except BaseException as error:  # noqa: B902: raised again below
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    @staticmethod
    def is_sanitized():
        """A sanitizer's malloc keeps what was freed: sizes say nothing then."""
        with open(HOLDBACKD, "rb") as file:
            binary = file.read()
        return b"__asan_init" in binary or b"__tsan_init" in binary

    def memory(self):
        """The server's resident bytes."""
        with open(f"/proc/{self.server.process.pid}/status") as file:
            line = next(line for line in file if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
