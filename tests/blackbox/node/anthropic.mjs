// Drives the anthropic client as an agent would: node anthropic.mjs BASE_URL CALLS; see calls.mjs.
import Anthropic from '@anthropic-ai/sdk';
import { runCalls } from './calls.mjs';

const client = new Anthropic({
  baseURL: process.argv[2],
  apiKey: process.env.KEY ?? 'none',
  maxRetries: 0,
});
const counted = (fields) => ({
  model: 'mock-model',
  messages: [{ role: 'user', content: 'hello there' }],
  ...fields,
});
const body = (fields) => ({ max_tokens: 4, ...counted(fields) });

await runCalls({
  create: (fields) => client.messages.create(body(fields)),
  beta: (fields) => client.beta.messages.create(body(fields)),
  count: (fields) => client.messages.countTokens(counted(fields)),

  // Every event, and the message that the client makes of them.
  stream: async (fields, _, onFirstEvent) => {
    const events = [];
    const texts = [];
    const stream = client.messages.stream(body(fields));
    stream.once('streamEvent', onFirstEvent);
    stream.on('streamEvent', (event) => events.push(event.type));
    stream.on('text', (text) => texts.push(text));
    const message = await stream.finalMessage();
    return { events, text: texts.join(''), message };
  },

  // Without the client's own bookkeeping: what a program sees that only loops over the events.
  events: async (fields, _, onFirstEvent) => {
    const events = [];
    for await (const event of await client.messages.create({ ...body(fields), stream: true })) {
      if (events.push(event.type) === 1) onFirstEvent();
    }
    return { events };
  },
});
