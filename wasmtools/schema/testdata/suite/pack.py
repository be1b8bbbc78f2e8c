"""Packs the tests of a JSON-Schema-Test-Suite checkout, given as the only argument, into suite.jsonl beside this file.

Each line is one group of tests that have a schema. What is the same in several drafts is one line.
"""
import json, pathlib, sys

DRAFTS = {
    "4": ("draft4", "http://json-schema.org/draft-04/schema#"),
    "6": ("draft6", "http://json-schema.org/draft-06/schema#"),
    "7": ("draft7", "http://json-schema.org/draft-07/schema#"),
    "2019-09": ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    "2020-12": ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
}
# What needs another server, is about what we refuse as a whole, or about formats that only document here.
SKIPPED = {"refRemote", "vocabulary", "format", "optional/cross-draft", "optional/format-assertion", "optional/format/idn-hostname", "optional/format/idn-email"}

groups = {}
for draft, (folder, uri) in DRAFTS.items():
    tests = pathlib.Path(sys.argv[1]) / "tests" / folder
    for path in sorted(tests.rglob("*.json")):
        name = path.relative_to(tests).with_suffix("").as_posix()
        if name in SKIPPED:
            continue
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and schema.get("$schema") == uri:
                del schema["$schema"]
            line = {"file": name, "group": group["description"], "schema": schema}
            line["tests"] = [{k: t[k] for k in ("description", "data", "valid")} for t in group["tests"]]
            groups.setdefault(json.dumps(line, separators=(",", ":")), []).append(draft)
with open(pathlib.Path(__file__).with_name("suite.jsonl"), "w") as out:
    for text, drafts in groups.items():
        out.write('{"drafts":' + json.dumps(drafts, separators=(",", ":")) + "," + text[1:] + "\n")
