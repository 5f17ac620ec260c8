// Drives the openai client as a user's program would: node client.mjs BASE_URL COMMAND [JSON].
// Prints one JSON object: what came back, or the error that the client raised.
import OpenAI from 'openai';

const [baseURL, command, fields = '{}'] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: process.env.KEY ?? 'none', maxRetries: 0 });
const messages = [{ role: 'user', content: 'hello there' }];
const body = { model: 'mock-model', ...JSON.parse(fields) };

const commands = {
  chat: () => client.chat.completions.create({ messages, ...body }),
  completions: () => client.completions.create({ prompt: 'hello there', ...body }),
  embeddings: () =>
    client.embeddings.create({ input: ['a', 'b'], encoding_format: 'float', ...body }),
  responses: () => client.responses.create({ input: 'hello there', ...body }),
  models: async () => ({ models: (await client.models.list()).data.map((model) => model.id) }),

  // Turns of one conversation, of which only the first is sent; the last one is streamed.
  'responses-turns': async () => {
    const turns = [];
    let previous_response_id;
    for (let turn = 0; turn < 4; turn++) {
      const { data, response } = await client.responses
        .create({ input: `turn ${turn}`, ...body, previous_response_id, stream: turn === 3 })
        .withResponse();
      let made = data;
      if (turn === 3) for await (const event of data) made = event.response ?? made;
      previous_response_id = made.id;
      turns.push({ id: made.id, worker: response.headers.get('x-fathom-worker'), status: made.status });
    }
    return { turns, shown: (await client.responses.retrieve(turns[0].id)).id };
  },

  'chat-stream': async () => {
    const chunks = [];
    const stream = await client.chat.completions.create({ messages, ...body, stream: true });
    for await (const chunk of stream) chunks.push(chunk);
    return { chunks };
  },

  'completions-stream': async () => {
    const chunks = [];
    const stream = await client.completions.create({ prompt: 'hello', ...body, stream: true });
    for await (const chunk of stream) chunks.push(chunk);
    return { chunks };
  },

  abort: async () => {
    let chunks = 0;
    const stream = await client.chat.completions.create({ messages, ...body, stream: true });
    for await (const chunk of stream) {
      if (++chunks === 3) stream.controller.abort();
    }
    return { chunks };
  },
};

try {
  console.log(JSON.stringify(await commands[command]()));
} catch (error) {
  const { status, code, type, message } = error;
  console.log(JSON.stringify({ raised: error.constructor.name, status, code, type, message }));
}
