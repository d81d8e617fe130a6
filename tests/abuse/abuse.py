"""What the abuse tests share: a server that is held to its promises at the end, requests as bytes,
and clients that keep working while others misbehave.
"""
import atexit
import pathlib
import re
import subprocess
import sys
import threading
import time

import grpc

sys.path.insert(0, "tests/lib")
sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from holdback import Contract, Server, Stubs, load_descriptors  # noqa: E402

HOLDBACKD, HOLDBACK, DESCRIPTORS = sys.argv[1:4]
FULL = "--full" in sys.argv
KIB, MIB = 1024, 1 << 20
OVER_S = 30  # I9: so long after its end was due no call may be open
SERVICE = "/holdback.v1."
# Sanitizers keep what was freed, and more: their memory says nothing about ours.
SANITIZED = any(name in pathlib.Path(HOLDBACKD).read_bytes()
                for name in (b"__asan_init", b"__tsan_init"))
LIVE_KINDS = 8

contract = Contract(load_descriptors(DESCRIPTORS))
OUTCOMES = contract.enum("holdback.v1.Outcome")
PRESENT = {OUTCOMES["OUTCOME_STORED"], OUTCOMES["OUTCOME_DUPLICATE"]}


def size(gate, full):
    """The gate's size, or the one that --full asks for."""
    return full if FULL else gate


def message(name, /, **fields):
    return contract["holdback.v1." + name](**fields)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def append_request(first, count, stream="default", payload=b"p", stream_kind=""):
    batch = message("EventBatch")
    for sequence in range(first, first + count):
        batch.events.add(sequence=sequence, key=b"k", payload=payload)
    return message(f"Append{stream_kind}Request", stream=stream, batch=batch)


class AbusedServer(Server):
    """A server that must be well at the end: exit 0, and nothing lives any more."""

    def __init__(self, *flags):
        super().__init__(HOLDBACKD, *flags)
        self.channels = []

    def __exit__(self, kind, *rest):
        try:
            if kind is None and self.process is not None:
                self.stop_clean()
        finally:
            self.close_channels()
            super().__exit__(kind, *rest)
            if kind is not None:
                print("the server's log ends with:\n" + "".join(self.log[-40:]), flush=True)

    def rss_mib(self, peak=False):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        name = "VmHWM" if peak else "VmRSS"
        return int(re.search(name + r":\s+(\d+)", text).group(1)) // 1024

    def check_rss(self, max_mib, grown_from=None):
        """Its peak, or what it has grown by now, is at most so much."""
        used = self.rss_mib(peak=True) if grown_from is None else self.rss_mib() - grown_from
        if used > max_mib and not SANITIZED:
            raise AssertionError(f"RSS {used} MiB, at most {max_mib}")

    def stubs(self):
        """Stubs over a connection of their own."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channels.append(grpc.insecure_channel(self.address, options=options))
        return Stubs(contract, self.channels[-1])

    def close_channels(self):
        for channel in self.channels:
            channel.close()
        self.channels.clear()

    def stop_clean(self):
        self.close_channels()  # python3-grpcio is slow to answer a server's farewell
        code = self.stop()
        last = self.log[-1]
        live = dict(re.findall(r" live_(\w+)=(-?\d+)", last))
        if code != 0 or "event=stopped" not in last or len(live) != LIVE_KINDS or \
                any(count != "0" for count in live.values()):
            raise AssertionError(f"exit code {code}, at the end:\n" + "".join(self.log[-20:]))


def is_over(stream):
    return stream.statuses > 0


def check_statuses(connections, streams, timeout_s=OVER_S):
    """The watchdog: each of `streams` (h2.Stream) gets its one status in time (I9)."""
    h2.run(connections, lambda: all(is_over(s) for s in streams), timeout_s,
           f"{sum(not is_over(s) for s in streams)} of {len(streams)} calls have no status")
    twice = [s.number for s in streams if s.statuses != 1]
    if twice:
        raise AssertionError(f"streams with more than one status: {twice[:5]}")


class Bystander:
    """A well-behaved producer on a thread: one event at a time, tried again where gRPC says that
    it may be. What it was told is stored must be all that it sent, in order."""

    RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)

    def __init__(self, server, stream):
        self.server, self.stream = server, stream
        self.acked = 0
        self.retried = 0
        self.longest_s = 0.0
        self.error = None
        self.stopping = threading.Event()
        stubs = server.stubs()
        config = message("StreamConfig", name=stream, mode=1, first_sequence=1)
        stubs.CreateStream(message("CreateStreamRequest", config=config), timeout=OVER_S)
        self.thread = threading.Thread(target=self._run, args=(stubs,))
        self.thread.start()
        atexit.register(self.stopping.set)

    def _run(self, stubs):
        try:
            while not self.stopping.is_set():
                began = time.monotonic()
                self._one(stubs, began)
                self.acked += 1
                self.longest_s = max(self.longest_s, time.monotonic() - began)
                self.stopping.wait(0.01)
        except BaseException as error:  # shown by finish()
            self.error = error

    def _one(self, stubs, began):
        request = append_request(self.acked + 1, 1, self.stream)
        while True:
            try:
                answer = stubs.Append(request, timeout=OVER_S)
                if [(run.count, run.outcome in PRESENT) for run in answer.result.runs] != [(1, True)]:
                    raise AssertionError(str(answer))
                return
            except grpc.RpcError as error:
                if error.code() not in self.RETRIED or time.monotonic() - began > OVER_S:
                    raise
                self.retried += 1
                self.stopping.wait(0.05)

    def wait_acks(self, more, connections=()):
        """Until `more` further events are acknowledged."""
        target = self.acked + more
        deadline = time.monotonic() + OVER_S
        while self.acked < target:
            if self.error or time.monotonic() > deadline:
                raise self.error or AssertionError(f"no {more} acks within {OVER_S} s")
            if not h2.step(connections, 0.05):
                time.sleep(0.05)

    def finish(self):
        self.stopping.set()
        self.thread.join()
        if self.error:
            raise self.error
        status = self.server.stubs().GetStream(
            message("GetStreamRequest", stream=self.stream), timeout=OVER_S).status
        if status.frontier != self.acked + 1 or status.stored_total != self.acked:
            raise AssertionError(f"{self.acked} were acknowledged, the stream says\n{status}")
        print(f"bystander: {self.acked} acknowledged, {self.retried} tries failed, the longest "
              f"took {self.longest_s:.2f} s", flush=True)


def command(server, *arguments, stdin=None):
    """A `holdback` process."""
    return subprocess.Popen([HOLDBACK, "--server", server.address, *arguments],
                            stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
