// Drives the openai client by its Responses API: node responses.mjs BASE_URL CALLS; see calls.mjs.
// In the fields, `after` is the number of the call whose response is gone on from, and `of` that of
// the one that is asked for.
import OpenAI from 'openai';
import { runCalls } from './calls.mjs';

const client = new OpenAI({
  baseURL: `${process.argv[2]}/v1`,
  apiKey: process.env.KEY ?? 'none',
  maxRetries: 0,
});

function body({ after, ...fields }, results) {
  const going_on = after === undefined ? {} : { previous_response_id: results[after].id };
  return { model: 'mock-model', input: 'hello there', ...going_on, ...fields };
}
const idOf = ({ of, id }, results) => id ?? results[of].id;

await runCalls({
  create: (fields, results) => client.responses.create(body(fields, results)),
  retrieve: (fields, results) => client.responses.retrieve(idOf(fields, results)),
  cancel: (fields, results) => client.responses.cancel(idOf(fields, results)),
  delete: async (fields, results) => {
    await client.responses.delete(idOf(fields, results));
    return { deleted: true };
  },

  // Every event, and the response that the client makes of them.
  stream: async (fields, results, onFirstEvent) => {
    const events = [];
    const stream = client.responses.stream(body(fields, results));
    stream.once('event', onFirstEvent);
    stream.on('event', (event) => events.push(event.type));
    const response = await stream.finalResponse();
    return { id: response.id, events, response };
  },

  // Without the client's own bookkeeping: what a program sees that only loops over the events.
  events: async (fields, results, onFirstEvent) => {
    const events = [];
    const stream = await client.responses.create({ ...body(fields, results), stream: true });
    for await (const event of stream) {
      if (events.push(event.type) === 1) onFirstEvent();
    }
    return { events };
  },
});
