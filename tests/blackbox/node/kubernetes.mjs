// What is wrong with these Kubernetes objects, by the schemas that Kubernetes and the Prometheus operator
// publish? Reads an object per line, in JSON, and prints a list of problems for each.
import { createInterface } from 'node:readline';

const SOURCES = ['kubernetes-models', '@kubernetes-models/prometheus-operator'];

async function modelOf({ apiVersion, kind }) {
  for (const source of SOURCES) {
    const found = await import(`${source}/${apiVersion}`).catch(() => ({}));
    if (found[kind]) return found[kind];
  }
  throw new Error(`there is no ${kind} in ${apiVersion}`);
}

// The schemas let unknown fields pass, and a misspelt one does nothing. But they look at every field that they
// know, so what nobody has looked at is not known.
function watched(value, place, looks) {
  if (value === null || typeof value !== 'object') return value;
  const seen = new Set();
  looks.push({ value, place, seen });
  return new Proxy(value, {
    get(target, key) {
      seen.add(key);
      return watched(target[key], `${place}/${String(key)}`, looks);
    },
  });
}

function unknownFields(looks) {
  const known = new Map();  // an object may have been looked at twice
  for (const { value, place, seen } of looks) {
    if (Array.isArray(value)) continue;
    const entry = known.get(value) ?? { place, seen: new Set() };
    for (const key of seen) entry.seen.add(key);
    known.set(value, entry);
  }
  return [...known].flatMap(([value, { place, seen }]) =>
    Object.keys(value).filter((key) => !seen.has(key)).map((key) => `${place}/${key} is not known`));
}

async function problemsOf(object) {
  const looks = [];
  const model = await modelOf(object);
  try {
    model.prototype.validate.call(watched(object, '', looks));
  } catch (error) {
    return [error.message];
  }
  return unknownFields(looks);
}

for await (const line of createInterface({ input: process.stdin })) {
  const problems = await problemsOf(JSON.parse(line)).catch((error) => [error.message]);
  console.log(JSON.stringify(problems));
}
