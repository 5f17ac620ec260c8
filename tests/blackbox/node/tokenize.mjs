// An independent tokenizer, and chat templates with it: node tokenize.mjs FOLDER [TEMPLATE_FILE].
//
// FOLDER has tokenizer.json and tokenizer_config.json. Reads one JSON value per line: a string, or
// {"text", "add_special_tokens"}, or {"messages", "tools", "add_generation_prompt", ...}. Prints one
// per line, in order: {"ids"}, {"prompt", "ids"}, or {"error"}.
import { readFileSync, writeSync } from 'node:fs';
import { Template } from '@huggingface/jinja'; // newer than the one inside @lenml/tokenizers
import { TokenizerLoader } from '@lenml/tokenizers';

const [folder, templateFile] = process.argv.slice(2);
const read = (name) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'));
const config = read('tokenizer_config.json');
const source = templateFile ? readFileSync(templateFile, 'utf8') : config.chat_template;
const template = source && new Template(source);
const names = Object.fromEntries(
  ['bos_token', 'eos_token', 'unk_token', 'pad_token']
    .filter((name) => config[name])
    .map((name) => [name, config[name].content ?? config[name]]),
);
console.warn = () => {}; // that a class is not known by name is no news
const tokenizer = TokenizerLoader.fromPreTrained({
  tokenizerJSON: read('tokenizer.json'),
  tokenizerConfig: config,
});

function chat(values) {
  const prompt = template.render({ ...names, ...values });
  return { prompt, ids: tokenizer.encode(prompt, { add_special_tokens: false }) };
}

function answer(question) {
  if (typeof question === 'string') return { ids: tokenizer.encode(question) };
  if (question.messages) return chat(question);
  const { text, ...options } = question;
  return { ids: tokenizer.encode(text, options) };
}

function answerLine(line) {
  try {
    return answer(JSON.parse(line));
  } catch (error) {
    return { error: String(error.message) };
  }
}

// The pipe may be full.
function print(text) {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

// By hand: readline takes U+2028 for the end of a line.
let rest = '';
process.stdin.setEncoding('utf8');
for await (const chunk of process.stdin) {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  for (const line of lines) print(`${JSON.stringify(answerLine(line))}\n`);
}
