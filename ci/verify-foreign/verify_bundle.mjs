// Other people's verifier of Sigstore bundles.
//
// Called with DIR and the place where install.sh put the packages. Reads
// DIR/cases.json as verify_documents.py does and takes the cases of the tool
// "bundle". A bundle names its key by a hint; there is no certificate, no time and no
// public log, so all three thresholds are 0. Exits 0 if every answer was the expected
// one, 1 if not, 3 if the tool is missing.

import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

const [directory, place] = process.argv.slice(2);
const require = createRequire(join(resolve(place), "package.json"));
let bundles, verify;
try {
  bundles = require("@sigstore/bundle");
  verify = require("@sigstore/verify");
} catch (error) {
  if (error.code !== "MODULE_NOT_FOUND") throw error;
  console.error(`missing: ${error.message}`);
  process.exit(3);
}

const read = (name) => readFileSync(join(directory, name), "utf8");

// Believes the P-256 key that lies beside the bundle, under its own id alone.
const trust = (folder) => ({
  certificateAuthorities: [],
  timestampAuthorities: [],
  tlogs: [],
  ctlogs: [],
  publicKey: (hint) => {
    const { p256 } = JSON.parse(read(join(folder, "keys.json")));
    if (hint !== p256) {
      throw new verify.VerificationError({ code: "PUBLIC_KEY_ERROR", message: `no key ${hint}` });
    }
    const publicKey = createPublicKey(read(join(folder, "p256.pem")));
    return { publicKey, validFor: () => true };
  },
});
const thresholds = { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 };

let wrong = 0;
for (const { tool, file, expect } of JSON.parse(read("cases.json"))) {
  if (tool !== "bundle") continue;
  let answer = "accept";
  let why = "";
  try {
    const bundle = bundles.bundleFromJSON(JSON.parse(read(file)));
    bundles.assertBundleLatest(bundle);
    const verifier = new verify.Verifier(trust(dirname(file)), thresholds);
    verifier.verify(verify.toSignedEntity(bundle));
  } catch (error) {
    const refusal =
      error instanceof verify.VerificationError ||
      error instanceof bundles.ValidationError ||
      error instanceof SyntaxError;
    if (!refusal) throw error;
    answer = "refuse";
    why = ` (${error.name}: ${String(error.message).slice(0, 100)})`;
  }
  const fits = answer === expect;
  wrong += fits ? 0 : 1;
  console.log(`${fits ? "ok" : "WRONG"} ${tool} ${file}: ${answer}${why}`);
}
process.exit(wrong === 0 ? 0 : 1);
