"""Runs the module lazaret on many cases, outside any sandbox.

Arguments: the module's source, a file for the input, a file for the output.
Each line of standard input is "format HEX", with a document, or
"write INDENT EXPRESSION"; each line of standard output answers one: "accept
HEX" with the bytes written, or "reject REASON".
"""

# Before 3.12 the C scanner fails without it; the closure's versions import it
# themselves when they need it.
import json.decoder  # noqa: F401
import os
import sys
import types

source, input_path, output_path = sys.argv[1:]

# Likewise before 3.12: this limit counts the C scanner's own recursion.
sys.setrecursionlimit(20_000)

lazaret = types.ModuleType("lazaret")
with open(source, encoding="utf-8") as file:
    exec(compile(file.read(), source, "exec"), lazaret.__dict__)
lazaret._INPUT_PATH = input_path
lazaret._OUTPUT_PATH = output_path


def forget(path):
    """Some file systems sync a file that is truncated and written again."""
    if os.path.exists(path):
        os.unlink(path)


def answer(line):
    verb, _, rest = line.rstrip("\n").partition(" ")
    forget(input_path)
    forget(output_path)
    try:
        if verb == "format":
            with open(input_path, "wb") as file:
                file.write(bytes.fromhex(rest))
            lazaret.write_output(lazaret.read_input(), indent=2)
        else:
            indent, _, expression = rest.partition(" ")
            lazaret.write_output(eval(expression), indent=eval(indent))
    except (lazaret.InputError, lazaret.OutputError) as error:
        return "reject " + str(error).partition(":")[0]
    with open(output_path, "rb") as file:
        return "accept " + file.read().hex()


for line in sys.stdin:
    print(answer(line))
