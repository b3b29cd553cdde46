"""Forms of answers: one choice, one with reasons, and several types."""

ACTION = {
    "title": "action",
    "type": "object",
    "properties": {"action": {"type": "string", "enum": ["0", "1", "click[Buy Now]", "-0.5"]}},
    "required": ["action"],
    "additionalProperties": False,
}
REASONED = {
    "title": "action",
    "type": "object",
    "properties": {"reasoning": {"type": "string", "minLength": 2}, "action": {"type": "string", "enum": ["0", "1"]}},
    "required": ["reasoning", "action"],
    "additionalProperties": False,
}
MIXED = {
    "title": "mixed things!",
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "items": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["success", "n", "items"],
}
