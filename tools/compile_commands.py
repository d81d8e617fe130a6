#!/usr/bin/env python3
"""Writes compile_commands.json from what Bazel would run, for clang's tools."""
import json
import pathlib
import subprocess

root = pathlib.Path(__file__).resolve().parent.parent
execroot = subprocess.run(["bazel", "info", "execution_root"], cwd=root, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout.strip()
actions = json.loads(
    subprocess.run(
        ["bazel", "aquery", "--config=clang", "--output=jsonproto", 'mnemonic("CppCompile", //...)'],
        cwd=root, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)["actions"]
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
