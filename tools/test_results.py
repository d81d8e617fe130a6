#!/usr/bin/env python3
"""Counts what `bazel test --build_event_json_file=FILE` did: prints `PASSED FAILED`, then a line
`LABEL LOG` for each target that failed; LOG is `-` where there is none. A target that did not
build, test or not, counts as failed."""
import json
import sys
import urllib.parse

passed = {}
logs = {}
with open(sys.argv[1], encoding="utf-8") as stream:
    for line in stream:
        event = json.loads(line)
        identity = event["id"]
        if "testSummary" in identity:
            label = identity["testSummary"]["label"]
            status = event["testSummary"].get("overallStatus")
            passed[label] = status in ("PASSED", "FLAKY")
            if status == "FLAKY":
                print("flaky:", label, file=sys.stderr)
        elif "testResult" in identity:
            for output in event["testResult"].get("testActionOutput", []):
                if output["name"] == "test.log":
                    path = urllib.parse.urlparse(output.get("uri", "")).path
                    logs[identity["testResult"]["label"]] = urllib.parse.unquote(path)
        elif "targetCompleted" in identity and "aborted" not in event:
            if not event.get("completed", {}).get("success"):
                passed.setdefault(identity["targetCompleted"]["label"], False)
failed = sorted(label for label in passed if not passed[label])
print(len(passed) - len(failed), len(failed))
for label in failed:
    print(label, logs.get(label) or "-")
