"""JSON schemas drawn at random, and a validator of what they use. Standard library only.

Strings, lists and objects are short, so that a model that says nonsense comes to an end."""
import json
import re

WORDS = ["name", "age", "tags", "id", "street", "is_ok", "ÿ", "a b", "x-y", "größe", "q\"uote", "back\\slash", "not", "type"]
PATTERNS = ["^[a-f]{2,4}$", "^(yes|no)$", "^[0-9]{1,3}(-[A-Z])?$", "^a+b?$"]
TEXTS = ["red", "green", "", "naïve", "two words", "\"", "tab\t"]


def scalar(random):
    kind = random.randrange(10)
    if kind == 0:
        low = random.randint(-500, 500)
        return {"type": "integer", "minimum": low, "maximum": low + random.randint(0, 2000)}
    if kind == 1:
        return {"type": "integer"}
    if kind == 2:
        low = random.randint(-20, 20)
        return {"type": "number", "minimum": low, "maximum": low + random.randint(1, 100)}
    if kind == 3:
        low = random.randint(0, 4)
        return {"type": "string", "minLength": low, "maxLength": low + random.randint(0, 8)}
    if kind == 4:
        return {"type": "string", "pattern": random.choice(PATTERNS)}
    if kind == 5:
        return {"enum": random.sample([*TEXTS, 1, -2.5, None, True], random.randint(1, 4))}
    if kind == 6:
        return {"const": random.choice([*TEXTS, 7, None, False])}
    if kind == 7:
        return {"type": random.sample(["boolean", "null", "integer"], 2)}
    return {"type": random.choice(["boolean", "null"])}


def draw(random, depth=3):
    kind = random.randrange(7) if depth > 0 else 0
    if kind in (1, 2, 3):
        names = random.sample(WORDS, random.randint(0, 4))
        schema = {"type": "object", "properties": {name: draw(random, depth - 1) for name in names},
                  "required": [name for name in names if random.random() < 0.7]}
        if random.random() < 0.6:
            schema["additionalProperties"] = False
        return schema
    if kind == 4:
        low = random.randint(0, 2)
        return {"type": "array", "items": draw(random, depth - 1), "minItems": low, "maxItems": low + random.randint(0, 2)}
    if kind == 5:
        return {"anyOf": [draw(random, depth - 1), scalar(random)]}
    return scalar(random)


def document(random):
    """An object on the outside, sometimes with a part that refers to itself."""
    schema = draw(random, 3)
    if random.random() < 0.2:
        schema = {"type": "object", "properties": {"left": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                                                   "value": schema}, "required": ["left", "value"],
                  "$defs": {"node": {"type": "object", "properties": {"left": {"type": "null"}, "n": scalar(random)},
                                     "required": ["n"], "additionalProperties": False}}}
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
    return schema


def is_type(value, name):
    if name == "integer":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}[name])


def same(left, right):
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def valid(value, schema, root):
    if "$ref" in schema:
        return valid(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "const" in schema and not same(value, schema["const"]):
        return False
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        return False
    if "anyOf" in schema and not any(valid(value, each, root) for each in schema["anyOf"]):
        return False
    types = schema.get("type", [])
    if types and not any(is_type(value, name) for name in ([types] if isinstance(types, str) else types)):
        return False
    if isinstance(value, str):
        return (schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) and
                re.search(schema.get("pattern", ""), value) is not None)
    if isinstance(value, list):
        return (schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)) and
                all(valid(each, schema.get("items", {}), root) for each in value))
    if isinstance(value, dict):
        named = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False
        return (all(name in value for name in schema.get("required", [])) and
                not (closed and any(name not in named for name in value)) and
                all(valid(each, named.get(name, {}), root) for name, each in value.items()))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def fits(text, schema):
    """Whether the text is JSON that is valid against the schema."""
    try:
        return valid(json.loads(text), schema, schema)
    except json.JSONDecodeError:
        return False
