"""vanish_test.py HOLDBACKD HOLDBACK DESCRIPTORS [--full]: clients that send and are gone.

Killed in the middle of what they do, or their connections dropped in the middle of a message: what
they sent is there as whole batches or not at all, sending it again completes it, and nothing that
belonged to them stays behind. HOLDBACK_SEED repeats a run.
"""
import json
import os
import random
import subprocess
import sys
import time
import unittest

sys.path.insert(0, "tests/abuse")
import h2  # noqa: E402
from abuse import (AbusedServer, Bystander, OUTCOMES, OVER_S, SERVICE, append_request,  # noqa: E402
                   command, message, size)

KILLS = size(8, 60)
DROPS = size(40, 400)
EVENTS = 20_000
BATCH = 10


class VanishTest(unittest.TestCase):

    def setUp(self):
        seed = int(os.environ.get("HOLDBACK_SEED", time.time_ns() % 2**32))
        print(f"seed: --test_env=HOLDBACK_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        self.server = self.enterContext(AbusedServer())

    def frontier(self, stream):
        request = message("GetStreamRequest", stream=stream)
        return self.server.stubs().GetStream(request, timeout=OVER_S).status.frontier

    def expect(self, *arguments, code=0, stdin=None):
        process = command(self.server, *arguments, stdin=subprocess.PIPE)
        try:
            out, err = process.communicate(stdin or "", timeout=2 * OVER_S)
        finally:
            process.kill()
        self.assertEqual(process.returncode, code, err)
        return out

    def test_killed_processes(self):
        """SIGKILL to `holdback send` and `holdback tail` at random moments, two of each at a time."""
        lines = [json.dumps({"sequence": n, "key": f"k{n % 7}", "payload": f"payload {n}"}) + "\n"
                 for n in range(1, EVENTS + 1)]
        bystander = Bystander(self.server, "bystander")
        for _ in range(KILLS):
            shuffled = lines[:]
            self.random.shuffle(shuffled)
            text = "".join(shuffled[:self.random.randrange(EVENTS)])
            senders = [command(self.server, "send", "-", stdin=subprocess.PIPE)
                       for _ in range(2)]
            tail = command(self.server, "tail", "--from", "start")
            cut = self.random.randrange(len(text) + 1)
            for sender in senders:
                sender.stdin.write(text[:cut])
                sender.stdin.flush()
            bystander.wait_acks(self.random.randrange(3))
            for process in (*senders, tail):
                process.kill()
            for process in (*senders, tail):
                process.communicate(timeout=OVER_S)
        print(f"frontier after {KILLS} kills: {self.frontier('default')}", flush=True)
        answer = self.expect("send", "-", "--json", stdin="".join(lines))
        counts = json.loads(answer.splitlines()[-1])
        self.assertEqual(counts["stored"] + counts["duplicate"], EVENTS)
        out = self.expect("tail", "--from", "start", "--count", str(EVENTS))
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([e["sequence"] for e in events], list(range(1, EVENTS + 1)))
        self.assertTrue(all(e["payload"] == f"payload {e['sequence']}" for e in events))
        bystander.wait_acks(3)
        bystander.finish()

    def test_dropped_connections(self):
        """The connection ends after a random byte of a row of batches."""
        bystander = Bystander(self.server, "bystander")
        first = 1
        batches = []
        while len(batches) < DROPS * 5:
            connection = h2.Connection(self.server.address)
            call = connection.open(SERVICE + "IngestService/AppendStream")
            data = b""
            for _ in range(5):
                # Beyond a gap each: nothing of them is released, all of it is held.
                request = append_request(first + 1, BATCH, payload=self.random.randbytes(300),
                                         stream_kind="Stream")
                data += h2.message(request.SerializeToString())
                batches.append(request.batch)
                first += BATCH + 1
            call.send(data[:self.random.randrange(len(data) + 1)])
            h2.run([connection], lambda c=call: not c.pending, OVER_S, "bytes sent")
            if self.random.random() < 0.5:
                h2.step([connection], 0)
            connection.close()
        bystander.wait_acks(3)
        self.check_whole(batches)
        bystander.finish()

    def check_whole(self, batches):
        """Each batch is there as a whole or not at all, and is complete once it is sent again."""
        stubs = self.server.stubs()
        present = 0
        for again in (False, True):
            for batch in batches:
                request = message("AppendRequest", stream="default", batch=batch)
                runs = stubs.Append(request, timeout=OVER_S).result.runs
                self.assertEqual(len(runs), 1, "a part of a batch was stored")
                duplicate = runs[0].outcome == OUTCOMES["OUTCOME_DUPLICATE"]
                self.assertTrue(duplicate or runs[0].outcome == OUTCOMES["OUTCOME_STORED"])
                self.assertTrue(duplicate or not again)
                present += duplicate and not again
        print(f"{present} of {len(batches)} batches had arrived", flush=True)
        self.assertIn(present, range(1, len(batches)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
