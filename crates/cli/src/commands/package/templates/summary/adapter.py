"""Counts rows and sums their amounts by label."""

import lazaret

value = lazaret.read_input()
sums = {}
for row in value["rows"]:
    sums[row["label"]] = sums.get(row["label"], 0) + row["amount"]
lazaret.write_output({
    "count": len(value["rows"]),
    "sums": [{"label": label, "amount": sums[label]} for label in sorted(sums)],
})
