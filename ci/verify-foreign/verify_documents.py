"""Other people's verifiers of DSSE envelopes, in-toto statements and CycloneDX.

Reads DIR/cases.json, a list of {"tool", "file", "expect"}, gives each file to its
tool and compares the answer ("accept" or "refuse") with the expected one. Prints one
line per case; exits 0 if every answer was the expected one, 1 if not, 3 if a tool is
missing. It judges nothing itself: what a tool raises is a refusal, and any other
fault of this script ends it.
"""

import base64
import json
import pathlib
import sys

try:
    import in_toto_attestation.predicates.provenance.v1.provenance_pb2 as provenance_pb2
    import in_toto_attestation.predicates.test_result.v0.test_result_pb2 as test_result_pb2
    import in_toto_attestation.v1.statement_pb2 as statement_pb2
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from google.protobuf import json_format
    from in_toto_attestation.v1.statement import Statement
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import Error as SecureSystemsError
    from securesystemslib.signer import SSlibKey
except ImportError as error:
    print(f"missing: {error}", file=sys.stderr)
    sys.exit(3)

IN_TOTO = "application/vnd.in-toto+json"

# Predicates that the attestation project has a schema for. Its release has one for
# the verification summary as well, which takes a string where SLSA's own
# specification has the list verifiedLevels; such statements are checked without it.
PREDICATES = {
    "https://slsa.dev/provenance/v1": provenance_pb2.Provenance,
    "https://in-toto.io/attestation/test-result/v0.1": test_result_pb2.TestResult,
}


class Refusal(Exception):
    """A tool said no without raising."""


def keys(directory):
    """The two public keys of the directory, under the ids that receipts name."""
    ids = json.loads((directory / "keys.json").read_text())
    kinds = {
        "ed25519": ("ed25519", "ed25519"),
        "p256": ("ecdsa", "ecdsa-sha2-nistp256"),
    }
    found = []
    for name, (keytype, scheme) in kinds.items():
        pem = (directory / f"{name}.pem").read_text()
        if name == "ed25519":
            # This library wants the 32 bytes of this algorithm's key in hexadecimal.
            der = base64.b64decode("".join(pem.splitlines()[1:-1]))
            public = der[-32:].hex()
        else:
            public = pem
        found.append(SSlibKey(ids[name], keytype, scheme, {"public": public}))
    return found


def verify_dsse(path):
    """securesystemslib: both signatures, and the payload's type."""
    envelope = Envelope.from_dict(json.loads(path.read_bytes()))
    envelope.verify(keys(path.parent), threshold=2)
    if envelope.payload_type != IN_TOTO:
        raise Refusal(f"payload type {envelope.payload_type}")


def verify_statement(path):
    """in-toto-attestation: the statement, and its predicate where there is a schema."""
    envelope = json.loads(path.read_bytes())
    payload = json.loads(base64.b64decode(envelope["payload"], validate=True))
    parsed = json_format.ParseDict(payload, statement_pb2.Statement())
    Statement.copy_from_pb(parsed).validate()
    schema = PREDICATES.get(payload["predicateType"])
    if schema is not None:
        # Our one extension member is dropped; nothing else may be unknown.
        predicate = {key: value for key, value in payload["predicate"].items() if key != "lazaret"}
        json_format.ParseDict(predicate, schema())


def verify_cyclonedx(path):
    """cyclonedx-python-lib: the strict JSON schema of version 1.6."""
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text())
    if fault is not None:
        raise Refusal(str(fault)[:200])


TOOLS = {
    "dsse": verify_dsse,
    "statement": verify_statement,
    "cyclonedx": verify_cyclonedx,
}

# What these tools raise when they refuse, and nothing wider: a fault of ours must
# not pass for a refusal.
REFUSALS = (Refusal, SecureSystemsError, json_format.ParseError, ValueError, KeyError)


def main(directory):
    """Gives every case to its tool."""
    wrong = 0
    cases = json.loads((directory / "cases.json").read_text())
    for case in cases:
        tool = TOOLS.get(case["tool"])
        if tool is None:
            continue
        try:
            tool(directory / case["file"])
            answer, why = "accept", ""
        except REFUSALS as error:
            answer, why = "refuse", f" ({type(error).__name__}: {str(error)[:100]})"
        fits = answer == case["expect"]
        wrong += not fits
        mark = "ok" if fits else "WRONG"
        print(f"{mark} {case['tool']} {case['file']}: {answer}{why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
