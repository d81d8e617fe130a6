#!/usr/bin/env python3
"""Counts what `bazel test --build_event_json_file=FILE` did: prints `PASSED FAILED`, then the
labels of what failed. A target that did not build, test or not, counts as failed."""
import json
import sys

results = {}
with open(sys.argv[1], encoding="utf-8") as stream:
    for line in stream:
        event = json.loads(line)
        identity = event["id"]
        if "testSummary" in identity:
            passed = event["testSummary"].get("overallStatus") == "PASSED"
            results[identity["testSummary"]["label"]] = passed
        elif "targetCompleted" in identity and "aborted" not in event:
            if not event.get("completed", {}).get("success"):
                results.setdefault(identity["targetCompleted"]["label"], False)
failed = sorted(label for label, passed in results.items() if not passed)
print(len(results) - len(failed), len(failed))
for label in failed:
    print(label)
