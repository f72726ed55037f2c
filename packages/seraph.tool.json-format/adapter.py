"""Formats one JSON document: sorted keys, two spaces per level, one newline."""

import lazaret

lazaret.write_output(lazaret.read_input(), indent=2)
