#!/usr/bin/env python3
"""Writes compile_commands.json from what Bazel would run, for clang's tools."""
import json
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent


def bazel(*arguments):
    done = subprocess.run(["bazel", *arguments], cwd=root, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


execroot = bazel("info", "execution_root").strip()
actions = json.loads(bazel("aquery", "--config=clang", "--output=jsonproto",
                           'mnemonic("CppCompile", //...)'))["actions"]
commands = {}
for action in actions:
    arguments = action["arguments"]
    source = arguments[arguments.index("-c") + 1]
    if source.startswith(("bazel-out/", "external/")):
        continue
    arguments[arguments.index("-c") + 1] = str(root / source)
    # Bazel's layering check is done by its own compilations, whose module maps may be gone.
    arguments = [a for a in arguments if not a.startswith(("-fmodule", "-Wprivate-header"))]
    commands[source] = {"directory": execroot, "file": str(root / source), "arguments": arguments}
(root / "compile_commands.json").write_text(json.dumps(list(commands.values()), indent=1) + "\n")
print(len(commands), "files")
