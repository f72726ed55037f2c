"""Sums the minutes of a time ledger by category, the largest sum first."""

import lazaret


def summarize(rows):
    sums = {}
    for row in rows:
        name = row["category"]
        entries, minutes = sums.get(name, (0, 0))
        sums[name] = (entries + 1, minutes + row["minutes"])
    categories = [
        {"category": name, "entries": entries, "minutes": minutes}
        for name, (entries, minutes) in sums.items()
    ]
    # Equal sums are ordered by name, so that one ledger has one summary.
    categories.sort(key=lambda found: (-found["minutes"], found["category"]))
    return {
        "categories": categories,
        "entries": len(rows),
        "minutes": sum(row["minutes"] for row in rows),
    }


lazaret.write_output(summarize(lazaret.read_input()["rows"]))
