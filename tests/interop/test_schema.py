"""The JSON schemas of configurations and studies, checked with jsonschema: they accept what gyre accepts and refuse what it refuses."""
import copy
import json
import pathlib
import re
import subprocess
import tomllib

import jsonschema
import pytest

from gyre_programs import BUILD, gyre

ROOT = pathlib.Path(__file__).resolve().parents[2]


def schema_of(command):
    schema = json.loads(gyre(command, "--schema"))
    jsonschema.Draft7Validator.check_schema(schema)
    return schema


RUN, STUDY = schema_of("init"), schema_of("study")
VALIDATORS = {"run": jsonschema.Draft7Validator(RUN), "study": jsonschema.Draft7Validator(STUDY)}


def fits(value, kind="run"):
    return VALIDATORS[kind].is_valid(value)


def options(schema, table=()):
    """(path of tables, key, schema) of every option, except those of data sources."""
    for key, inner in schema["properties"].items():
        if inner["type"] == "object":
            yield from options(inner, (*table, key))
        elif key != "source":
            yield table, key, inner


def toml_value(value):
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return json.dumps(value)


def gyre_takes(table, key, value, folder):
    """Whether gyre accepts this key when it reads the file. The words of an error show whether it is about several keys."""
    path = folder / "one.toml"
    tokens = "" if (table, key) == (("data",), "tokens") else '[data]\ntokens = "x"\n' if table != ("data",) else ""
    own = f"[{'.'.join(table)}]\n" + ('tokens = "x"\n' if table == ("data",) and key != "tokens" else "")
    path.write_text(f"{tokens}{own}{json.dumps(key)} = {toml_value(value)}\n")
    told = subprocess.run([BUILD / "apps/gyre/gyre", "schedule", path], capture_output=True, text=True).stderr
    return not any(words in told for words in (f"] {key} ", "unknown key", "unknown table", "must be")), told


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_takes_the_examples(path):
    kind = "study" if path.name.startswith("study-") else "run"
    errors = [error.message for error in VALIDATORS[kind].iter_errors(tomllib.loads(path.read_text()))]
    assert not errors


def test_takes_what_init_prints_and_has_every_key_of_it():
    template = tomllib.loads(gyre("init"))
    assert fits(template)
    for table, key, inner in options(RUN):
        place = template
        for name in table:
            place = place[name]
        assert place[key] == inner["default"], (table, key)
        assert inner["description"]


def test_refuses_what_gyre_refuses(tmp_path):
    refused = 0
    for table, key, inner in options(RUN):
        if (table, key) in ((("data",), "tokens"), (("pipeline",), "schedule")):
            continue  # paths
        kind = inner["type"]
        values = [{"string": 7, "boolean": "yes", "integer": "ten", "number": "fast", "array": 3}[kind]]
        if kind == "integer":
            values.append(1.5)
        if "enum" in inner:
            values += [inner["enum"][-1], inner["enum"][-1] + "n"]
        for bound, beyond in (("minimum", -1), ("maximum", 1)):
            if bound in inner and abs(inner[bound]) < 2**62:
                values += [inner[bound], inner[bound] + beyond * max(1, abs(inner[bound]) * 0.01) if kind == "number" else inner[bound] + beyond]
        for value in values:
            document = {table[0]: {key: value}} if len(table) == 1 else {table[0]: {table[1]: {key: value}}}
            taken, told = gyre_takes(table, key, value, tmp_path)
            if not fits(document):
                assert not taken, (table, key, value)
                refused += 1
            elif not taken:  # because of other keys, which only gyre can check
                assert not re.search(r"must be|unknown|give (at least|one of|[-+.e0-9]+ to) ", told), told
    assert refused > 200


def test_refuses_wrong_files():
    good = {"model": {"layers": 4}, "data": {"source": [{"name": "web", "tokens": "x", "weight": 2}]}}
    assert fits(good)
    for change in (lambda c: c["model"].update(layer=4), lambda c: c["model"].update(layers=0),
                   lambda c: c["model"].update(layers="four"), lambda c: c.update(modle={}), lambda c: c.update(model=3),
                   lambda c: c["data"]["source"][0].update(wieght=2), lambda c: c["data"]["source"][0].update(weight=0),
                   lambda c: c.update(optimizer={"kind": "adam"}), lambda c: c.update(optimizer={"muon": {"interval": 5}}),
                   lambda c: c.update(pipeline={"weights": "old"}), lambda c: c.update(study={})):
        wrong = copy.deepcopy(good)
        change(wrong)
        assert not fits(wrong), wrong
    study = {"study": {"method": [{"name": "a", "set": ["optimizer.lr=1"]}]}}
    assert fits(study, "study")
    for wrong in ({}, {"study": {}}, {"study": {"method": []}}, {"study": {"method": [{"set": []}]}},
                  {"study": {"method": [{"name": "a", "sets": []}]}}, {"study": {"seed": 1, "method": [{"name": "a"}]}}):
        assert not fits(wrong, "study"), wrong
