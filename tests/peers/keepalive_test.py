"""T16 of tests/README.md, by itself since it waits for nothing to happen."""
import queue
import sys
import threading

import grpc

sys.path.insert(0, "tests/peers")
from rows import RowsTest, main  # noqa: E402

PING_MS = 10000
# gRPC's servers by themselves send a client away for the third ping, after 30 s.
IDLE_S = 38


class KeepaliveTest(RowsTest):

    def test_t16_pings_each_ten_seconds_are_allowed(self):
        """grpc-go 5063 and grpc 18656: an idle subscription whose client pings: the connection
        stays, and what comes later comes through it."""
        stream, answers = self.new_stream(), queue.Queue()
        stubs = self.own_stubs(("grpc.keepalive_time_ms", PING_MS),
                               ("grpc.keepalive_permit_without_calls", 1),
                               ("grpc.http2.max_pings_without_data", 0))
        call = self.subscribe(stream, stubs, progress_interval_ms=600000)

        def read():
            try:
                for answer in call:
                    answers.put(answer)
            except grpc.RpcError as error:
                answers.put(error)

        thread = threading.Thread(target=read)
        thread.start()
        # One Progress: at the start, which has caught up. Then nothing: what the server sends
        # would make it forget the pings.
        self.assertTrue(answers.get(timeout=60).HasField("progress"))
        with self.assertRaises(queue.Empty):
            self.fail(f"after a while: {answers.get(timeout=IDLE_S)}")
        self.append(stream, [1])
        self.assertEqual(answers.get(timeout=60).batch.events[0].sequence, 1)
        call.cancel()
        thread.join()


if __name__ == "__main__":
    main()
