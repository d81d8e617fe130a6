"""A client of Holdback that shares no code with it: python3-grpcio and descriptors alone.

Messages and methods are made at run time from FileDescriptorProtos, which come either from the
build (a descriptor set, load_descriptors) or from a server's reflection service.
"""
import pathlib
import queue
import shutil
import signal
import subprocess
import tempfile
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

READY_S = 20
CALL_S = 20


def load_descriptors(path):
    """The files of a descriptor set (several concatenated ones are one)."""
    files = descriptor_pb2.FileDescriptorSet()
    files.ParseFromString(pathlib.Path(path).read_bytes())
    return list(files.file)


class Contract:
    """Messages and services of some files: contract["holdback.v1.Event"](sequence=1)."""

    def __init__(self, files):
        self.pool = descriptor_pool.DescriptorPool()
        waiting = {file.name: file for file in files}
        while waiting:
            ready = [f for f in waiting.values() if not any(d in waiting for d in f.dependency)]
            if not ready:
                raise ValueError("files import each other in a circle")
            for file in ready:
                self.pool.Add(waiting.pop(file.name))
        self.files = files
        self.factory = message_factory.MessageFactory(self.pool)

    def __getitem__(self, name):
        return self.factory.GetPrototype(self.pool.FindMessageTypeByName(name))

    def enum(self, name):
        """Numbers of an enum by value name."""
        return {v.name: v.number for v in self.pool.FindEnumTypeByName(name).values}

    def methods(self):
        """(service, method name, method descriptor, client streams, server streams) of all."""
        for file in self.files:
            for service in file.service:
                name = f"{file.package}.{service.name}"
                described = self.pool.FindServiceByName(name)
                for method in service.method:
                    yield (name, method.name, described.methods_by_name[method.name],
                           method.client_streaming, method.server_streaming)


class Stubs:
    """stubs.Append(request, timeout=...): every method of the contract over one channel.

    A method name that several services have needs its service as well: stubs["a.b.Service/Method"].
    """

    def __init__(self, contract, channel):
        self.calls = {}
        kinds = {
            (False, False): channel.unary_unary,
            (False, True): channel.unary_stream,
            (True, False): channel.stream_unary,
            (True, True): channel.stream_stream,
        }
        for service, name, method, client, server in contract.methods():
            answer = contract.factory.GetPrototype(method.output_type)
            call = kinds[client, server](
                f"/{service}/{name}",
                request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
                response_deserializer=answer.FromString)
            self.calls[f"{service}/{name}"] = call
            self.calls.setdefault(name, call)

    def __getitem__(self, name):
        return self.calls[name]

    def __getattr__(self, name):
        try:
            return self.calls[name]
        except KeyError:
            raise AttributeError(name) from None


def error_info(contract, error):
    """(reason, domain, message of the Status) out of an RpcError; None where it carries none."""
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        status = contract["google.rpc.Status"].FromString(value)
        if status.code != error.code().value[0] or len(status.details) != 1:
            raise AssertionError(f"Status {status} does not go with {error.code()}")
        if status.details[0].type_url != "type.googleapis.com/google.rpc.ErrorInfo":
            raise AssertionError(status.details[0].type_url)
        info = contract["google.rpc.ErrorInfo"].FromString(status.details[0].value)
        return info.reason, info.domain, status.message
    return None


class Server:
    """A holdbackd on a Unix socket in a folder of its own; gone after `with`."""

    def __init__(self, binary, *flags):
        self.binary, self.flags = binary, flags
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hb-py-", dir="/tmp"))
        self.address = f"unix:{self.folder}/socket"
        self.process = None
        self.log = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "--data-dir", str(self.folder / "data"), "--listen", self.address,
             *self.flags],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(self.process.stderr, lines))
        self.reader.start()
        while True:
            line = lines.get(timeout=READY_S)
            if line is None:
                raise AssertionError("the server ended:\n" + "".join(self.log))
            if "event=ready" in line:
                return

    def _read(self, stream, lines):
        for line in stream:
            self.log.append(line)
            lines.put(line)
        lines.put(None)

    def kill(self):
        if self.process is not None:
            ended = self.process.poll()
            self.process.kill()
            self._end()
            if ended:
                print(f"the server ended by itself ({ended}):\n" + "".join(self.log))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self):
        code = self.process.wait(timeout=READY_S)
        self.reader.join()
        self.process.stderr.close()
        self.process = None
        return code

    def channel(self, *options):
        """Default options: what a client gets that sets none."""
        return grpc.insecure_channel(self.address, options)
