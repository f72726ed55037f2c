"""Formats a JSON document: sorted keys, two spaces per level."""

import json

import lazaret

value = lazaret.read_input()
# A text that is not JSON ends the run with an error; nothing is repaired.
document = json.loads(value["text"])
formatted = json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True)
lazaret.write_output({"text": formatted + "\n"})
