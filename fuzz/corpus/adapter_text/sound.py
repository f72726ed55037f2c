"""Lays out a table as lines of text with aligned columns."""

import sys
import unicodedata

import lazaret

GAP = "  "


def width(text):
    """Columns that a terminal uses: two for wide characters, none for marks."""
    columns = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        columns += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return columns


def pad(text, columns, align):
    spaces = " " * (columns - width(text))
    return spaces + text if align == "right" else text + spaces


def align(columns, rows):
    for number, row in enumerate(rows, start=1):
        if len(row) != len(columns):
            sys.exit(f"row {number} has {len(row)} cells, the table has {len(columns)} columns")
    titles = [column["title"] for column in columns]
    widths = [max(width(cell) for cell in cells) for cells in zip(titles, *rows)]
    rule = ["-" * columns for columns in widths]
    lines = []
    for row in [titles, rule, *rows]:
        cells = [
            pad(cell, wide, column["align"])
            for cell, wide, column in zip(row, widths, columns)
        ]
        lines.append(GAP.join(cells).rstrip(" "))
    return {"lines": lines}


table = lazaret.read_input()
lazaret.write_output(align(table["columns"], table["rows"]))
