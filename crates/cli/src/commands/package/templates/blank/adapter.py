"""Gives back what it was given: replace this by what your package does."""

import lazaret

value = lazaret.read_input()
lazaret.write_output({"text": value["text"]})
