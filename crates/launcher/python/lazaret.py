"""Strict JSON in and out of a package, on CPython's C accelerator.

This module is frozen into the closure.  A package that needs no more than

    import lazaret
    lazaret.write_output(do_something(lazaret.read_input()))

pays for no import of json or re.  The rules are those of the host's parser
(crates/contract, module json): both sides refuse the same documents for the
same reasons, looked for in the same order, and write the same bytes.

Nothing here is a boundary: the host parses input and output again.
"""

from _json import encode_basestring as _quote, make_scanner as _make_scanner

__all__ = ["InputError", "OutputError", "read_input", "write_output"]

_INPUT_PATH = "/input.json"
_OUTPUT_PATH = "/out/result.json"

_INPUT_BYTES_MAX = 32 * 1024
_OUTPUT_BYTES_MAX = 64 * 1024
_DEPTH_MAX = 32
_NODES_MAX = 4096
# More open brackets than this are not followed: the C scanner recurses.
_NESTING_FOLLOWED_MAX = 4096


class InputError(ValueError):
    """The input is refused; the text begins with the reason's name."""


class OutputError(ValueError):
    """The output is refused; the text begins with the reason's name."""


def read_input():
    """Return the value of the input document, or raise InputError."""
    with open(_INPUT_PATH, "rb", buffering=0) as file:
        document = b""
        while len(document) <= _INPUT_BYTES_MAX:
            piece = file.read(_INPUT_BYTES_MAX + 1 - len(document))
            if not piece:
                break
            document += piece
    return _parse(document)


def write_output(value, indent=None):
    """Write value as the one output of the package, or raise OutputError.

    The bytes are compact JSON with sorted keys, or, with indent=2, what the
    formatter writes.  A second call replaces the output of the first.
    """
    if indent is None:
        text = _encode(value, 0, "", "", ":", [_NODES_MAX - 1])
    elif indent == 2:
        text = _encode(value, 0, "\n", "  ", ": ", [_NODES_MAX - 1]) + "\n"
    else:
        raise ValueError("indent must be None or 2")
    try:
        output = text.encode()
    except UnicodeEncodeError:
        raise OutputError("lone_surrogate: half of a surrogate pair") from None
    if len(output) > _OUTPUT_BYTES_MAX:
        raise OutputError(f"size_out: {len(output)} bytes, at most {_OUTPUT_BYTES_MAX} are allowed")
    with open(_OUTPUT_PATH, "wb", buffering=0) as file:
        rest = memoryview(output)
        while rest:
            rest = rest[file.write(rest):]


def _parse(document):
    if len(document) > _INPUT_BYTES_MAX:
        raise InputError(f"size_in: more than {_INPUT_BYTES_MAX} bytes")
    try:
        text = document.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"invalid_utf8: {error.reason} at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise InputError("bom: the document begins with a byte order mark")
    if text.count("[") + text.count("{") > _NESTING_FOLLOWED_MAX:
        _refuse_deep_nesting(text)
    value = _scan(text)
    _check_size(value)
    # Only an escape can make a lone surrogate.
    if "\\ud" in text or "\\uD" in text:
        _check_surrogates(value)
    return value


def _scan(text):
    start = _skip_white_space(text, 0)
    try:
        value, end = _scan_once(text, start)
    except StopIteration as error:
        raise InputError(f"syntax: expected a value at character {error.value}") from None
    except InputError:
        raise
    except ValueError as error:
        # The scanner's own errors have a position; int() gives a plain one.
        if hasattr(error, "pos"):
            raise InputError(f"syntax: {error}") from None
        raise InputError("int_digits: an integer of more than 4300 digits") from None
    end = _skip_white_space(text, end)
    if end != len(text):
        raise InputError(f"syntax: extra data at character {end}")
    return value


def _skip_white_space(text, at):
    while text[at : at + 1] in (" ", "\n", "\r", "\t"):
        at += 1
    return at


def _object(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"duplicate_key: {key!a:.80}")
            seen.add(key)
    return members


def _float(token):
    value = float(token)
    if value - value != 0.0:
        raise InputError("nonfinite: a number too large for a double")
    return value


def _constant(name):
    raise InputError(f"nonfinite: {name} is not a JSON number")


class _Rules:
    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_object)
    parse_float = staticmethod(_float)
    parse_int = int
    parse_constant = staticmethod(_constant)


_scan_once = _make_scanner(_Rules)


def _check_size(value):
    """Depth first, then the number of values: the host's order."""
    level = [value]
    depth = nodes = 0
    while level:
        if depth > _DEPTH_MAX:
            raise InputError(f"depth: nested deeper than {_DEPTH_MAX} levels")
        nodes += len(level)
        below = []
        for item in level:
            kind = type(item)
            if kind is dict:
                below += item.values()
            elif kind is list:
                below += item
        level = below
        depth += 1
    if nodes > _NODES_MAX:
        raise InputError(f"nodes: {nodes} values, at most {_NODES_MAX} are allowed")


def _check_surrogates(value):
    waiting = [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is dict:
            waiting += item
            waiting += item.values()
        elif kind is list:
            waiting += item
        elif kind is str:
            try:
                item.encode()
            except UnicodeEncodeError:
                raise InputError("lone_surrogate: half of a surrogate pair") from None


def _refuse_deep_nesting(text):
    """Refuse text that opens too many brackets, unless a fault comes first.

    The brackets are counted outside strings; where one too many opens, null is
    put in its place and the text ends.  If the scanner's complaint is that the
    text ends behind that null, everything before it was sound.
    """
    nesting = at = 0
    end = len(text)
    while at < end:
        c = text[at]
        if c == '"':
            at += 1
            while at < end and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif c in "[{":
            if nesting == _NESTING_FOLLOWED_MAX:
                break
            nesting += 1
        elif c in "]}":
            nesting -= 1
        at += 1
    else:
        return
    try:
        _scan_once(text[:at] + "null", _skip_white_space(text, 0))
    except StopIteration:
        return
    except ValueError as error:
        if getattr(error, "pos", None) == at + 4:
            raise InputError(f"depth: nested deeper than {_DEPTH_MAX} levels") from None


def _encode(value, depth, newline, step, colon, budget):
    """Return the text of value.

    newline begins the line of value's closing bracket, and with one step more
    the lines of its members; both are empty in the compact form.
    """
    kind = type(value)
    if kind is str:
        return _quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        try:
            return int.__repr__(value)
        except ValueError:
            raise OutputError("int_digits: an integer of more than 4300 digits") from None
    if isinstance(value, float):
        if value - value != 0.0:
            raise OutputError("nonfinite: JSON has no such number")
        return float.__repr__(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, dict):
        brackets = "{}"
    elif isinstance(value, (list, tuple)):
        brackets = "[]"
    else:
        raise OutputError(f"type: {kind.__name__} is not a JSON type")
    if not value:
        return brackets
    if depth == _DEPTH_MAX:
        raise OutputError(f"depth: nested deeper than {_DEPTH_MAX} levels")
    budget[0] -= len(value)
    if budget[0] < 0:
        raise OutputError(f"nodes: more than {_NODES_MAX} values")
    inner = newline + step
    if brackets == "[]":
        members = [_encode(item, depth + 1, inner, step, colon, budget) for item in value]
    else:
        for key in value:
            if not isinstance(key, str):
                raise OutputError(f"type: a key must be str, not {type(key).__name__}")
        members = [
            _quote(key) + colon + _encode(value[key], depth + 1, inner, step, colon, budget)
            for key in sorted(value)
        ]
    return brackets[0] + inner + ("," + inner).join(members) + newline + brackets[1]
