// Calls tools of an MCP server by the TypeScript SDK: node client.mjs SDK CALLS COMMAND ARGUMENTS...
// Prints the result of each call of CALLS, a list of [tool, arguments], or {"throws": message}, as one JSON.
const [sdk, calls, command, ...args] = process.argv.slice(2);
const { Client } = await import(`${sdk}/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);

const client = new Client({ name: "test", version: "0" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit", env: process.env }));
await client.listTools(); // from now on the client checks results against the output schemas
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  try {
    results.push(await client.callTool({ name, arguments: given }));
  } catch (error) {
    results.push({ throws: String(error.message) });
  }
}
console.log(JSON.stringify(results));
await client.close();
