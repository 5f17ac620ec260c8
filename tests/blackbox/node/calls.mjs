// Runs the calls of a test with one client, since a process of node takes long to start.
//
// The calls are [[NAME, FIELDS], ...], from the program's last argument. Prints one JSON list: what
// came back of each, or the error that the client raised. With CONCURRENT set all of them run at
// once, and "begun" is written to stderr when each stream has had its first event.

function described(error) {
  const { status, code, message } = error;
  const type = error.error?.error?.type ?? error.type;
  return { raised: error.constructor.name, status, code, type, message };
}

export async function runCalls(commands) {
  const calls = JSON.parse(process.argv[3]);
  const results = [];
  let begun = 0;
  const onFirstEvent = () => {
    if (++begun === calls.length) process.stderr.write('begun\n');
  };
  const run = async ([name, fields]) => {
    try {
      return await commands[name](fields, results, onFirstEvent);
    } catch (error) {
      return described(error);
    }
  };
  if (process.env.CONCURRENT) {
    results.push(...(await Promise.all(calls.map(run))));
  } else {
    for (const call of calls) results.push(await run(call));
  }
  console.log(JSON.stringify(results));
}
