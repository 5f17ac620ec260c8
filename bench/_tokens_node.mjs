// node _tokens_node.mjs NODE_FOLDER MODEL_FOLDER RUNS FILE...: tokenizes the texts of each file (a
// JSON string per line) with @lenml/tokenizers, and prints {"files": [{"seconds", "tokens", "digest"}]}.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [nodeFolder, modelFolder, runs, ...files] = process.argv.slice(2);
const { TokenizerLoader } = createRequire(`${nodeFolder}/`)('@lenml/tokenizers');
const read = (name) => JSON.parse(readFileSync(`${modelFolder}/${name}`, 'utf8'));
console.warn = () => {};
const tokenizer = TokenizerLoader.fromPreTrained({
  tokenizerJSON: read('tokenizer.json'),
  tokenizerConfig: read('tokenizer_config.json'),
});

const encode = (text) => tokenizer.encode(text, { add_special_tokens: false });

function measure(file) {
  const texts = readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  const seconds = [];
  let ids = [];
  for (let run = 0; run < Number(runs); ++run) {
    const begun = process.hrtime.bigint();
    ids = texts.map(encode);
    seconds.push(Number(process.hrtime.bigint() - begun) / 1e9);
  }
  let tokens = 0;
  let digest = 0;
  for (const list of ids) {
    tokens += list.length;
    for (const id of list) digest = (Math.imul(digest, 31) + id) >>> 0;
  }
  return { seconds, tokens, digest };
}

console.log(JSON.stringify({ files: files.map(measure) }));
