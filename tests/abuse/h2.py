"""A client of HTTP/2 that does what no library would: it stops in the middle of a message, never
reads, drops the connection, and counts what the server lets it send.

Frames are written by hand (RFC 9113) and headers as literals; the server is told to use no dynamic
table, so that what it answers can be read without one. One thread: nothing moves but in step().
"""
import collections
import select
import socket
import struct
import time

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 6, 7, 8, 9)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
CANCEL, ENHANCE_YOUR_CALM = 8, 11

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_MAX = 16384
BACKLOG_MAX = 1 << 20  # bytes that wait for the socket
ZEROS = memoryview(bytes(1 << 20))

# RFC 7541, appendix A: the names that a server's answer uses, by index.
STATIC = {8: (b":status", b"200"), 31: (b"content-type", b""), 9: (b":status", b"204")}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def message(payload):
    """gRPC's prefix and the message."""
    return struct.pack(">BI", 0, len(payload)) + payload


# ---- headers


def _integer(value, bits, first):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out = bytearray([first | limit])
    value -= limit
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def encode_headers(pairs):
    """Literals without indexing (RFC 7541, 6.2.2)."""
    return b"".join(b"\0" + _integer(len(name), 7, 0) + name + _integer(len(value), 7, 0) + value
                    for name, value in pairs)


def _read_integer(data, at, bits):
    limit = (1 << bits) - 1
    value = data[at] & limit
    at += 1
    if value < limit:
        return value, at
    shift = 0
    while True:
        value += (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def _read_string(data, at):
    huffman = data[at] & 0x80
    size, at = _read_integer(data, at, 7)
    return (None if huffman else bytes(data[at:at + size])), at + size


def decode_headers(data):
    """A dictionary; a value in Huffman code (gRPC: only of -bin) is None."""
    out, at = {}, 0
    while at < len(data):
        first = data[at]
        if first & 0x80:  # indexed
            index, at = _read_integer(data, at, 7)
            name, value = STATIC.get(index, (b"index %d" % index, b""))
        elif first & 0xE0 == 0x20:  # table size
            _, at = _read_integer(data, at, 5)
            continue
        else:
            index, at = _read_integer(data, at, 6 if first & 0x40 else 4)
            if index:
                name = STATIC.get(index, (b"index %d" % index, b""))[0]
            else:
                name, at = _read_string(data, at)
            value, at = _read_string(data, at)
        out[name] = value
    return out


# ---- streams and connections


class Stream:
    """One call. `status` is set when it is over: a gRPC status, or "reset N", "gone"."""

    def __init__(self, connection, number, path):
        self.connection, self.number, self.path = connection, number, path
        self.window = connection.initial_window
        self.pending = collections.deque()  # memoryviews
        self.pending_bytes = 0
        self.sent = 0
        self.ends = False  # END_STREAM after what is pending
        self.ended = False
        self.body = bytearray()
        self.headers = {}
        self.statuses = 0  # how many ends were seen: must become exactly one (I9)
        self.status = None
        self.message = ""

    def send(self, data):
        if not data:
            return self
        self.pending.append(memoryview(data))
        self.pending_bytes += len(data)
        self.connection.wake(self)
        return self

    def send_zeros(self, size):
        while size > 0:
            part = ZEROS[:size]
            self.send(part)
            size -= len(part)
        return self

    def end(self):
        self.ends = True
        self.connection.wake(self)
        return self

    def reset(self, code=CANCEL):
        """What a client's cancel or deadline is on the wire."""
        self.pending.clear()
        self.pending_bytes = 0
        self.ended = True
        self.connection.put(frame(RST_STREAM, 0, self.number, struct.pack(">I", code)))
        self.connection.forget(self)

    def take_messages(self):
        out = []
        while len(self.body) >= 5:
            size = struct.unpack_from(">I", self.body, 1)[0]
            if len(self.body) < 5 + size:
                break
            out.append(bytes(self.body[5:5 + size]))
            del self.body[:5 + size]
        return out

    def over(self, status, text=""):
        self.statuses += 1
        self.status, self.message = status, text


class Connection:
    """`reads`: give the server window for what it sends; else it may send `window` bytes, once."""

    def __init__(self, address, reads=True, window=1 << 20):
        self.reads = reads
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address.removeprefix("unix:"))
        self.socket.setblocking(False)
        self.streams = {}
        self.next_stream = 1
        self.initial_window = 65535
        self.window = 65535
        self.ready = collections.OrderedDict()  # streams with something to send
        self.output = bytearray()
        self.input = bytearray()
        self.block = None  # headers that go on in a CONTINUATION
        self.is_open = True
        self.going_away = None
        self.pings = 0
        settings = struct.pack(">HIHI", 1, 0, 4, window)  # no dynamic table, initial window
        self.put(PREFACE + frame(SETTINGS, 0, 0, settings))
        if reads:
            self.put(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))

    # ---- out

    def put(self, data):
        self.output += data

    def wake(self, stream):
        self.ready[stream] = True

    def forget(self, stream):
        self.ready.pop(stream, None)
        self.streams.pop(stream.number, None)

    def open(self, path, timeout=None):
        stream = Stream(self, self.next_stream, path)
        self.next_stream += 2
        self.streams[stream.number] = stream
        headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
                   (b":authority", b"abuse"), (b"te", b"trailers"),
                   (b"content-type", b"application/grpc")]
        if timeout:
            headers.append((b"grpc-timeout", timeout.encode()))
        self.put(frame(HEADERS, END_HEADERS, stream.number, encode_headers(headers)))
        return stream

    def ping(self):
        self.put(frame(PING, 0, 0, b"abuse..."))

    def close(self):
        """Without a word, as a killed process does."""
        if self.is_open:
            self._lost()

    def _send_part(self, stream):
        part = stream.pending[0]
        size = min(len(part), FRAME_MAX, stream.window, self.window)
        if size <= 0:
            return False
        stream.pending[0] = part[size:]
        if len(part) == size:
            stream.pending.popleft()
        stream.window -= size
        self.window -= size
        stream.pending_bytes -= size
        stream.sent += size
        last = stream.ends and not stream.pending
        stream.ended = stream.ended or last
        self.put(frame(DATA, END_STREAM if last else 0, stream.number))
        size_at = len(self.output) - 9
        self.output[size_at:size_at + 3] = struct.pack(">I", size)[1:]
        self.put(part[:size])
        return True

    def _fill(self):
        for stream in list(self.ready):
            while len(self.output) < BACKLOG_MAX and stream.pending and self._send_part(stream):
                pass
            if len(self.output) >= BACKLOG_MAX:
                return
            if not stream.pending and stream.ends and not stream.ended:
                stream.ended = True
                self.put(frame(DATA, END_STREAM, stream.number))
            if not stream.pending or stream.window <= 0:
                self.ready.pop(stream, None)

    def _write(self):
        self._fill()
        while self.output:
            try:
                done = self.socket.send(self.output)
            except BlockingIOError:
                return
            except OSError:
                self._lost()
                return
            del self.output[:done]
            self._fill()

    # ---- in

    def _lost(self):
        self.is_open = False
        self.socket.close()
        self.ready.clear()
        for stream in list(self.streams.values()):
            stream.over("gone")
        self.streams.clear()

    def _read(self):
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self.input += data
        at = 0
        while len(self.input) - at >= 9:
            size = int.from_bytes(self.input[at:at + 3], "big")
            if len(self.input) - at < 9 + size:
                break
            kind, flags, number = struct.unpack_from(">BBI", self.input, at + 3)
            self._take(kind, flags, number, bytes(self.input[at + 9:at + 9 + size]))
            at += 9 + size
        del self.input[:at]

    def _take(self, kind, flags, number, payload):
        stream = self.streams.get(number)
        if kind == SETTINGS and not flags & ACK:
            self._settings(payload)
        elif kind == PING and flags & ACK:
            self.pings += 1
        elif kind == PING:
            self.put(frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            self.going_away = struct.unpack(">II", payload[:8]) + (payload[8:],)
        elif kind == WINDOW_UPDATE and number == 0:
            self.window += struct.unpack(">I", payload)[0]
        elif stream is None:
            pass  # of a call that we have reset
        elif kind == WINDOW_UPDATE:
            stream.window += struct.unpack(">I", payload)[0]
            if stream.pending or stream.ends:
                self.wake(stream)
        elif kind == DATA:
            self._data(stream, flags, payload)
        elif kind == RST_STREAM:
            self.forget(stream)
            stream.over("reset %d" % struct.unpack(">I", payload))
        elif kind in (HEADERS, CONTINUATION):
            self._headers(stream, kind, flags, payload)

    def _settings(self, payload):
        for name, value in struct.iter_unpack(">HI", payload):
            if name == 4:
                for stream in self.streams.values():
                    stream.window += value - self.initial_window
                    if stream.pending or stream.ends:
                        self.wake(stream)
                self.initial_window = value
        self.put(frame(SETTINGS, ACK, 0))

    def _data(self, stream, flags, payload):
        stream.body += payload
        if self.reads and payload:
            update = struct.pack(">I", len(payload))
            self.put(frame(WINDOW_UPDATE, 0, 0, update))
            self.put(frame(WINDOW_UPDATE, 0, stream.number, update))
        if flags & END_STREAM:
            self.forget(stream)
            stream.over("no trailers")

    def _headers(self, stream, kind, flags, payload):
        if kind == HEADERS:
            self.block, self.block_ends = b"", bool(flags & END_STREAM)
        self.block += payload
        if not flags & END_HEADERS:
            return
        stream.headers.update(decode_headers(self.block))
        if self.block_ends:
            self.forget(stream)
            stream.over(int(stream.headers[b"grpc-status"]),
                        (stream.headers.get(b"grpc-message") or b"").decode())


def step(connections, wait_s=0.1):
    """Let bytes move once; False: no connection is left."""
    poll = select.poll()
    by_fd = {}
    for c in connections:
        if not c.is_open:
            continue
        c._write()
        if c.is_open:
            by_fd[c.socket.fileno()] = c
            poll.register(c.socket, select.POLLIN | (select.POLLOUT if c.output else 0))
    if not by_fd:
        return False
    for fd, events in poll.poll(wait_s * 1000):
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            by_fd[fd]._read()
    return True


def run(connections, until, timeout_s, what):
    """Step until `until()`; an error that says `what` where that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not until():
        left = deadline - time.monotonic()
        if left <= 0:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        step(connections, min(left, 0.1))


def settle(connections, quiet_s=1.0, timeout_s=60):
    """Step until nothing was sent for `quiet_s`: the server lets nobody send any more."""
    def sent():
        return sum(s.sent for c in connections for s in c.streams.values())
    deadline = time.monotonic() + timeout_s
    last, since = -1, time.monotonic()
    while time.monotonic() - since < quiet_s and time.monotonic() < deadline:
        now = sent()
        if now != last:
            last, since = now, time.monotonic()
        step(connections, 0.05)
    return last
