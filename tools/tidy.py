#!/usr/bin/env python3
"""Rules that no compiler knows: layers, banned calls, sizes, leftovers.

  tools/tidy.py              checks every file that git tracks; one line per finding, exit 1
  tools/tidy.py --self-test  plants one breach of each rule in a folder of its own and demands that
                             it is found: a check that can't fail is none

CONTRIBUTING.md says why each rule is there.
"""
import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile

FUNCTION_LINES_MAX = 80
FILE_LINES_MAX = 700

# call: (replacement, where it may stand all the same)
# storage/cost.c is a program that measures single steps, no part of the store.
TEST = r"(^storage/cost\.c$|_test\.c|^tests/|^bench/|/test_|_fixture|_model\.c)"
PRINTS = r"(^storage/cost\.c$|^server/main|^client/cmd/|^bench/|^demo/|^examples/|^tests/|^tools/|^bazel/|_test\.c$)"
GRPC = r"^server/rpc/|^server/main|^client/|^bench/|^tests/"
CALLS = {
    r"clock_gettime|gettimeofday|time|clock|localtime":
        # bench/ reads CPU time too; clock_test has clocks of its own, in the place of base/clock.c.
        ("hb_clock_*", r"^base/clock\.c$|^tests/peers/clock_test\.c$|^bench/"),
    r"gpr_now": ("hb_clock_*; gRPC's clock makes gRPC's deadlines and nothing else", GRPC),
    r"sleep|usleep|nanosleep|clock_nanosleep|gpr_sleep_until":
        ("waiting for the event itself", None),
    r"strcpy|strcat|sprintf|vsprintf|gets|strncpy|strncat|stpcpy":
        ("snprintf, hb_buf or hb_slice", TEST),
    r"atoi|atol|atoll|atof": ("strtoll with a check, hb_limits_parse", None),
    r"alloca|tmpnam|mktemp|rand|srand|setjmp": ("nothing", None),
    r"malloc|calloc|realloc|strdup|strndup":
        # A processor of somebody else's has none of ours.
        ("hb_alloc, hb_calloc, hb_realloc, hb_strdup, hb_memdup",
         r"^base/alloc\.c$|^examples/\w+/processor\.c$|" + TEST),
    r"printf|puts|putchar|perror|vprintf":
        ("hb_err below server/, hb_log in it", PRINTS),
    r"assert": ("HB_ASSERT, which stays on in every build", TEST),
    r"exit|_exit|quick_exit|abort":
        ("an error that main turns into an exit code",
         r"^base/(assert|alloc)\.c$|^server/main|^client/cmd/|^demo/|^bazel/|" + TEST),
}
# fprintf writes files too: only the terminal's streams are logging.
STREAMS = re.compile(r"\b(?:v?fprintf|fputs|fputc|fwrite)\s*\([^;]*\b(?:stderr|stdout)\b")
STREAMS_ALLOWED = re.compile(PRINTS + r"|^base/(log|assert|alloc)\.c$")

# What must not be included, and the only places where it may be.
INCLUDES = {
    r"rocksdb/": r"^storage/engine\w*\.[ch]$|^storage/\w*_test\.c$|^tests/|^bench/floor/",
    r"grpc/": GRPC,
    r"protobuf-c/|.*\.pb-c\.h": r"^proto/|" + GRPC,
    r"jansson": r"^client/cmd/|^bench/|^demo/|^tests/",
    r"pthread\.h|threads\.h": r"^(?!ordering/|base/frame/|proto/)",
    r"sys/socket\.h|netinet/|unistd\.h|fcntl\.h|time\.h":
        r"^(?!ordering/|base/frame/|proto/)|_test\.c$",
}
# folder: what of ours it may include. Tests and benchmarks may include everything.
LAYERS = {
    "base/": ["base/"],
    "proto/": ["proto/", "base/"],
    "ordering/": ["ordering/", "base/"],
    "storage/": ["storage/", "base/"],
    "processing/": ["processing/", "ordering/", "storage/", "base/"],
    "server/": ["server/", "processing/", "ordering/", "storage/", "proto/", "base/"],
    "client/": ["client/", "proto/", "base/"],
    "demo/": ["demo/", "client/", "tests/lib/", "base/"],
    "examples/": ["examples/", "demo/", "client/", "tests/lib/", "processing/holdback/", "base/"],
}
# page: the head of the column that names tests, and the folder that paths there begin in too
PAGES_OF_TESTS = {"docs/FAULTS.md": ("forced by", "tests/"), "tests/README.md": ("test", "tests/")}
OURS = ["base/", "proto/", "ordering/", "storage/", "processing/", "server/", "client/", "tests/",
        "bench/", "tools/", "demo/", "examples/"]

# Put together from pieces, so that this file does not find itself.
LEFTOVERS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
PLACES = re.compile(r"(?<![\w.])/(?:ro" + r"ot|wo" + r"rk|ho" + r"me)/|\.\./sha" + "red")
TEXT = re.compile(r"(\.(c|h|cc|py|sh|md|proto|bzl|json|yaml|yml|txt|bazelrc)|BUILD|WORKSPACE|bazelw|/run)$")

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(text):
    """The text without comments, strings and characters; line numbers stay."""
    return NOT_CODE.sub(lambda m: "\n" * m.group().count("\n") or " ", text)


class Tidy:
    def __init__(self, root, files):
        self.root = root
        self.files = files
        self.findings = []
        self.looked_at = {}

    def find(self, rule, path, line, text):
        self.findings.append("%s:%d: %s: %s" % (path, line, rule, text))

    def count(self, rule, number=1):
        self.looked_at[rule] = self.looked_at.get(rule, 0) + number

    def run(self):
        for path in self.files:
            full = self.root / path
            if full.is_symlink() or not full.is_file():
                self.find("tracked", path, 1, "neither a file nor a folder: git rm it")
                continue
            if not TEXT.search(path):
                continue
            text = full.read_text(encoding="utf-8")
            self.leftovers(path, text)
            if path.endswith((".c", ".h")):
                self.sizes(path, text)
                self.opening(path, text)
                self.calls(path, code_only(text))
                self.includes(path, text)
            if path.endswith(".h"):
                self.guard(path, text)
        self.readmes()
        self.named_tests()

    def leftovers(self, path, text):
        self.count("leftover")
        for number, line in enumerate(text.split("\n"), 1):
            if LEFTOVERS.search(line):
                self.find("leftover", path, number, "a note to oneself: do it or file an issue")
            if PLACES.search(line):
                self.find("place", path, number, "a path of one machine")
            if line.startswith("#if 0"):
                self.find("leftover", path, number, "code that is switched off: delete it")

    def sizes(self, path, text):
        lines = text.split("\n")
        self.count("file length")
        if len(lines) - 1 > FILE_LINES_MAX:
            self.find("file length", path, 1, "%d lines, at most %d" % (len(lines) - 1, FILE_LINES_MAX))
        start = None
        for number, line in enumerate(lines, 1):
            # clang-format sees to it that a body ends with a brace in column 0.
            if start is None and line.endswith("{") and ")" in line and "=" not in line:
                start = number
            if line == "};":
                start = None
            if line == "}" and start is not None:
                self.count("function length")
                if number - start + 1 > FUNCTION_LINES_MAX:
                    self.find("function length", path, start,
                              "%d lines, at most %d" % (number - start + 1, FUNCTION_LINES_MAX))
                start = None

    def opening(self, path, text):
        if path.endswith("_test.c"):
            return
        self.count("opening")
        if not text.startswith("/*"):
            self.find("opening", path, 1, "the file does not open with what it is for")

    def calls(self, path, code):
        for names, (instead, allowed) in CALLS.items():
            self.count("banned call")
            if allowed and re.search(allowed, path):
                continue
            for match in re.finditer(r"(?<![\w.>])(?:%s)\s*\(" % names, code):
                line = code.count("\n", 0, match.start()) + 1
                self.find("banned call", path, line, "%s: use %s" % (match.group(), instead))
        if not STREAMS_ALLOWED.search(path):
            for match in STREAMS.finditer(code):
                self.find("banned call", path, code.count("\n", 0, match.start()) + 1,
                          "output: only server/ and the command talk to a terminal")

    def includes(self, path, text):
        folder = next((f for f in LAYERS if path.startswith(f)), None)
        is_test = re.search(TEST, path)
        for number, line in enumerate(text.split("\n"), 1):
            match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
            if not match:
                continue
            self.count("include")
            name = match.group(1)
            for pattern, allowed in INCLUDES.items():
                if re.match(pattern, name) and not re.search(allowed, path):
                    self.find("include", path, number, "%s does not belong here" % name)
            if folder and not is_test and name.startswith(tuple(OURS)) \
                    and not name.startswith(tuple(LAYERS[folder])) and ".pb-c." not in name:
                self.find("layer", path, number, "%s may not use %s" % (folder, name))

    def guard(self, path, text):
        self.count("guard")
        if path.endswith("_table.h"):
            return  # included more than once by design
        place = re.sub(r"\W", "_", path).upper()
        wanted = ["HB_" + place, place]
        if path == "client/holdback.h":
            wanted = ["HOLDBACK_H"]
        if not any("#ifndef %s\n#define %s\n" % (name, name) in text for name in wanted):
            self.find("guard", path, 1, "the include guard is not " + wanted[0])

    def readmes(self):
        for folder in sorted({str(pathlib.PurePath(p).parent) for p in self.files if p.endswith(".c")}):
            self.count("readme")
            readme = ("tests" if folder.startswith("tests/") else folder) + "/README.md"
            if readme not in self.files:
                self.find("readme", folder, 1, "no README.md that says what belongs here")


    def named_tests(self):
        """Pages that say which test forces what: each row names one, and it is there."""
        for page, (column, base) in PAGES_OF_TESTS.items():
            if page not in self.files:
                continue
            tests = Tests(self.root, self.files)
            head = None
            for number, line in enumerate((self.root / page).read_text().split("\n"), 1):
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                is_head = cells and not head
                head = head or cells if cells else None
                if is_head and page == "docs/FAULTS.md" and head[-1] != column:
                    self.find("named test", page, number, "the table has no column '%s'" % column)
                if not cells or is_head or head[-1] != column or set(cells[0]) <= set("-: "):
                    continue
                self.count("named test")
                names = [name for name in re.findall(r"`([^`]+)`", cells[-1])
                         if re.fullmatch(r"(//)?[a-z][\w/:*]*", name)]
                for name in names:
                    if not tests.has(name, base):
                        self.find("named test", page, number, "%s: there is no such test" % name)
                if not names and "the same" not in cells[-1]:
                    self.find("named test", page, number, "no test is named")
                if head[0] == "row" and not tests.has_row(cells[0], names, base):
                    self.find("named test", page, number, "no test begins with %s" % cells[0])


class Tests:
    """What tests there are: targets, files and functions."""

    FUNCTION = re.compile(r"^(?:static void|    def) (\w+)\(", re.M)

    def __init__(self, root, files):
        self.files = set(files)
        self.builds = {str(pathlib.PurePath(p).parent): (root / p).read_text()
                       for p in files if pathlib.PurePath(p).name == "BUILD"}
        self.functions = {p: set(self.FUNCTION.findall((root / p).read_text()))
                          for p in files if re.search(r"_test\.(c|py)$", p)}

    def sources(self, name, base):
        """Files of `//folder:target`, `folder/file` (of the root or of base), or a bare file's name."""
        name = name[2:].replace(":", "/") if name.startswith("//") else name
        wanted = [folder + name + end for folder in ("", base) for end in (".c", ".py")]
        found = [path for path in self.functions
                 if any(fnmatch.fnmatch(path, pattern) for pattern in wanted)]
        if not found and "/" not in name:
            found = [path for path in self.functions if pathlib.PurePath(path).stem == name]
        return found

    def has(self, name, base):
        if self.sources(name, base):
            return True
        if name.startswith("//"):
            folder, target = name[2:].split(":") if ":" in name else (name[2:], "")
            build = self.builds.get(folder, "")
            stem = re.sub(r"_fuzz_test$", "_fuzz", target)
            numbered = re.sub(r"\d+$", "%d", target)
            return any('"%s"' % each in build for each in (target, stem, numbered))
        wanted = {name, "test_" + name}
        return any(wanted & functions for functions in self.functions.values())

    def has_row(self, ids, names, base):
        """Of a row of other people's reports: a test in tests/peers has its name."""
        paths = [path for name in names for path in self.sources(name, base) if "/peers/" in path]
        starts = tuple(test + each.strip().lower() + "_" for each in ids.split(",") for test in ("", "test_"))
        return not paths or any(name.startswith(starts) for path in paths for name in self.functions[path])


def check(root, files):
    tidy = Tidy(root, files)
    tidy.run()
    return tidy


# One breach per line: path, text, the rule that must find it.
OPEN = "/* For a test of the checks. */\n"
BREACHES = [
    ("a/README.md", "TO" + "DO: write\n", "leftover"),
    ("a/x.c", OPEN + "#if 0\n#endif\n", "leftover"),
    ("a/x.c", OPEN + 'const char *p = "/ro' + 'ot/x";\n', "place"),
    ("a/x.c", OPEN + "int x;\n" * FILE_LINES_MAX, "file length"),
    ("a/x.c", OPEN + "int f(void) {\n" + "  f();\n" * FUNCTION_LINES_MAX + "}\n", "function length"),
    ("a/x.c", "int x;\n", "opening"),
    ("base/x.c", OPEN + "int f(void) {\n  return time(0);\n}\n", "banned call"),
    ("base/x_test.c", OPEN + "void f(void) {\n  usleep(1);\n}\n", "banned call"),
    ("base/x.c", OPEN + "void f(char *a) {\n  strcpy(a, a);\n}\n", "banned call"),
    ("storage/x.c", OPEN + "void f(void) {\n  printf(\"\");\n}\n", "banned call"),
    ("storage/x.c", OPEN + "void f(void) {\n  fprintf(\n    stderr, \"\");\n}\n", "banned call"),
    ("server/x.c", OPEN + "void *f(void) {\n  return malloc(1);\n}\n", "banned call"),
    ("server/engine/x.c", OPEN + "#include <rocksdb/c.h>\n", "include"),
    ("server/engine/x.c", OPEN + "#include <grpc/grpc.h>\n", "include"),
    ("ordering/x.c", OPEN + "#include <pthread.h>\n", "include"),
    ("ordering/x.c", OPEN + '#include "storage/store.h"\n', "layer"),
    ("client/x.c", OPEN + '#include "server/engine/engine.h"\n', "layer"),
    ("base/x.h", OPEN + "#ifndef X_H\n#define X_H\n#endif\n", "guard"),
    ("a/x.c", OPEN, "readme"),
    ("docs/FAULTS.md", "| fault | forced by |\n|---|---|\n| a | `//tests:x_test`: `it_does_not` |\n", "named test"),
    ("docs/FAULTS.md", "| fault | forced by |\n|---|---|\n| a | `//tests:y_test` |\n", "named test"),
    ("docs/FAULTS.md", "| fault | forced by |\n|---|---|\n| a | something |\n", "named test"),
    ("docs/FAULTS.md", "| fault | promise |\n|---|---|\n| a | b |\n", "named test"),
    ("tests/README.md", "| row | test |\n|---|---|\n| G2 | `peers/g_test` |\n", "named test"),
]
# What the pages above may name.
TESTS = {"tests/x_test.c": "static void it_holds(void **state) {\n}\n",
         "tests/peers/g_test.c": "static void g1_is_here(void **state) {\n}\n"}
# What must not be found: a word in a comment or a string, a name that only ends like a banned one.
INNOCENT = [
    ("base/x.c", OPEN + "/* time() is base/clock.c's. */\nint f(void) {\n  return hb_clock_time(\"sleep(1)\");\n}\n"),
    ("storage/x.c", OPEN + "void f(struct s *s) {\n  s->time(1);\n  snprintf(s->a, 1, \"printf(\");\n}\n"),
    ("storage/engine_rocksdb.c", OPEN + "#include <rocksdb/c.h>\n"),
    ("docs/FAULTS.md", "| fault | forced by |\n|---|---|\n| a | `//tests:x_test`: `it_holds` |\n| b | the same |\n"),
    ("tests/README.md", "| row | test |\n|---|---|\n| G3, G1 | `peers/g_test` |\n\n| row | why |\n|---|---|\n| G2 | no |\n"),
]


def self_test():
    failures = 0
    for path, text, rule in BREACHES + [(p, t, None) for p, t in INNOCENT]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text(text)
            files = [path]
            for name, test in TESTS.items() if path in PAGES_OF_TESTS else []:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(test)
                files.append(name)
            if path in PAGES_OF_TESTS and path != "tests/README.md":
                (root / "tests/README.md").write_text("What belongs here.\n")
                files.append("tests/README.md")
            if rule != "readme":
                readme = str(pathlib.PurePath(path).parent / "README.md")
                if readme != path:
                    (root / readme).write_text("What belongs here.\n")
                    files.append(readme)
            found = {finding.split(": ")[1] for finding in check(root, files).findings}
        if found != ({rule} if rule else set()):
            failures += 1
            print("self-test: %r in %s: expected %s, found %s" % (text[:60], path, rule, sorted(found)))
    print("%d breaches and %d innocents, %d wrong" % (len(BREACHES), len(INNOCENT), failures))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--self-test", action="store_true")
    if parser.parse_args().self_test:
        return 1 if self_test() else 0
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=root, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    tidy = check(root, [name for name in listed.split("\0") if name])
    for finding in tidy.findings:
        print(finding)
    print(", ".join("%s %d" % item for item in sorted(tidy.looked_at.items())))
    for rule in ["banned call", "include", "function length", "guard", "readme"]:
        if not tidy.looked_at.get(rule):
            print("nothing was looked at for rule '%s'" % rule)
            return 1
    print("%d files" % tidy.looked_at["leftover"])
    return 1 if tidy.findings else 0


if __name__ == "__main__":
    sys.exit(main())
